#include "library/catalog/definition_check.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/sha256.h"
#include "library/catalog/type_pattern.h"

namespace fusion {
namespace {

constexpr size_t kMaximumSourceBytes = 256 << 10;
constexpr int kMaximumOverloads = 64;
constexpr int kMaximumOperands = 16;
constexpr int kMaximumDimensions = 2;
constexpr int kMaximumStaticParameters = 8;

// Returns whether `name` stands in `source` as a whole word followed by "(": its definition, textually.
bool DefinesRoutine(absl::string_view source, absl::string_view name) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = source.find(name); at != absl::string_view::npos; at = source.find(name, at + 1)) {
    if (at > 0 && is_word(source[at - 1])) continue;
    size_t after = at + name.size();
    while (after < source.size() && std::isspace(static_cast<unsigned char>(source[after]))) ++after;
    if (after < source.size() && source[after] == '(') return true;
  }
  return false;
}

class Checker {
 public:
  Checker(const v1::FunctionDefinition& definition, const DefinitionLocator& locate)
      : definition_(definition), locate_(locate) {}

  absl::StatusOr<ElementaryFunction> Run() {
    if (!IsIdentifier(definition_.name())) return Error("name", "the name must be an identifier");
    if (definition_.domain().empty()) return Error("domain", "the domain is missing");
    if (definition_.documentation().empty()) return Error("documentation", "the documentation is missing");
    if (definition_.overloads().empty()) return Error("", "has no overloads");
    if (definition_.overloads_size() > kMaximumOverloads) {
      return Error("overloads", absl::StrCat("has more than ", kMaximumOverloads, " overloads"));
    }
    if (definition_.source().size() > kMaximumSourceBytes) {
      return Error("source", absl::StrCat("the source is longer than ", kMaximumSourceBytes, " bytes"));
    }
    for (double cost : {definition_.cost().gpu_instructions(), definition_.cost().host_operations()})
      if (!(cost >= 0) || !std::isfinite(cost)) return Error("cost", "a cost is a number from 0 on");
    ElementaryFunction function{.name = definition_.name(),
                                .domain = definition_.domain(),
                                .documentation = definition_.documentation(),
                                .source = definition_.source(),
                                .source_hash = Sha256Hex(definition_.source()).substr(0, 16),
                                .gpu_instructions = definition_.cost().gpu_instructions(),
                                .host_operations = definition_.cost().host_operations()};
    for (overload_ = 0; overload_ < definition_.overloads_size(); ++overload_) {
      Overload overload;
      absl::Status status = CheckOverload(definition_.overloads(overload_), &overload);
      if (!status.ok()) return status;
      function.overloads.push_back(std::move(overload));
    }
    return function;
  }

 private:
  absl::Status Error(absl::string_view field, absl::string_view what, int index = -1) const {
    std::string place = locate_ ? locate_(DefinitionPlace{overload_, std::string(field), index}) : "";
    return absl::InvalidArgumentError(
        absl::StrCat(place, place.empty() ? "" : ": ", "function \"", definition_.name(), "\"",
                     overload_ < 0 ? "" : absl::StrCat(", overload ", overload_ + 1), ": ", what));
  }

  absl::Status CheckOverload(const v1::OverloadDefinition& in, Overload* out) {
    out->form = in.form();
    out->formula = in.formula();
    out->routine = in.routine();
    out->monoid = in.monoid();
    out->term_routine = in.term_routine();
    out->finish_routine = in.finish_routine();
    out->part_routine = in.part_routine();
    out->constraint = in.constraint();
    out->flops = in.flops();
    out->rounding = in.rounding();
    if (in.formula().empty()) return Error("formula", "the formula is missing");
    absl::Status status = CheckDimensions(in, out);
    if (status.ok()) status = CheckOperands(in, out);
    if (status.ok()) status = CheckForm(in, *out);
    if (status.ok()) status = CheckRoutines(in, out);
    if (status.ok()) status = CheckExpressions(*out);
    return status;
  }

  absl::Status CheckDimensions(const v1::OverloadDefinition& in, Overload* out) {
    if (in.dimensions_size() > kMaximumDimensions) {
      return Error("dimensions", absl::StrCat("has more than ", kMaximumDimensions, " dimensions"));
    }
    std::set<std::string> names;
    for (int i = 0; i < in.dimensions_size(); ++i) {
      const v1::Dimension& dimension = in.dimensions(i);
      if (!IsIdentifier(dimension.name()) || !names.insert(dimension.name()).second) {
        return Error("dimensions",
                     absl::StrCat("dimension \"", dimension.name(), "\" must be an identifier of its own"),
                     i);
      }
      out->dimensions.push_back({dimension.name(), dimension.kind()});
    }
    if (in.static_parameters_size() > kMaximumStaticParameters) {
      return Error("static_parameters", "has too many static parameters");
    }
    for (int i = 0; i < in.static_parameters_size(); ++i) {
      if (!IsIdentifier(in.static_parameters(i)) || !names.insert(in.static_parameters(i)).second) {
        return Error("static_parameters",
                     absl::StrCat("static parameter \"", in.static_parameters(i),
                                  "\" must be an identifier of its own"),
                     i);
      }
      out->static_parameters.push_back(in.static_parameters(i));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOperands(const v1::OverloadDefinition& in, Overload* out) {
    if (in.operands().empty()) return Error("", "has no operands");
    if (in.operands_size() > kMaximumOperands) return Error("operands", "has too many operands");
    std::set<std::string> names;
    for (int i = 0; i < in.operands_size(); ++i) {
      const v1::OperandDefinition& operand = in.operands(i);
      if (!IsIdentifier(operand.name()) || !names.insert(operand.name()).second) {
        return Error("operands",
                     absl::StrCat("operand \"", operand.name(), "\" must be an identifier of its own"), i);
      }
      absl::StatusOr<TypePattern> pattern = ParseTypePattern(operand.type(), out->dimensions);
      if (!pattern.ok()) {
        return Error("operands", absl::StrCat("operand ", operand.name(), ": ", pattern.status().message()),
                     i);
      }
      out->operands.push_back({operand.name(), *std::move(pattern), operand.domain()});
    }
    absl::StatusOr<TypePattern> result = ParseTypePattern(in.result(), out->dimensions);
    if (!result.ok()) return Error("result", absl::StrCat("result: ", result.status().message()));
    out->result = *std::move(result);
    return absl::OkStatus();
  }

  // Rules of each form: which patterns it may use, and that operands bind what the result needs.
  absl::Status CheckForm(const v1::OverloadDefinition& in, const Overload& overload) {
    using Kind = TypePattern::Kind;
    auto is_scalar = [](const TypePattern& p) { return p.kind == Kind::kCollection && p.dimensions.empty(); };
    std::set<int> bound;
    std::set<std::string> bound_parameters;
    int non_scalars = 0;
    Kind expected = overload.form == v1::ENTRYWISE ? Kind::kAny
                    : overload.form == v1::ELEMENT ? Kind::kElement
                                                   : Kind::kCollection;
    for (size_t i = 0; i < overload.operands.size(); ++i) {
      const TypePattern& pattern = overload.operands[i].pattern;
      if (pattern.kind != expected && !is_scalar(pattern)) {
        return Error("operands",
                     absl::StrCat("operand ", overload.operands[i].name, ": the type \"",
                                  in.operands(static_cast<int>(i)).type(), "\" does not suit form ",
                                  v1::Form_Name(overload.form)),
                     static_cast<int>(i));
      }
      if (!is_scalar(pattern)) ++non_scalars;
      bound.insert(pattern.dimensions.begin(), pattern.dimensions.end());
      for (const std::string& extent : pattern.shape) {
        if (!std::isdigit(static_cast<unsigned char>(extent[0]))) bound_parameters.insert(extent);
      }
    }
    if (overload.result.kind != expected) {
      return Error("result", absl::StrCat("the type \"", in.result(), "\" does not suit form ",
                                          v1::Form_Name(overload.form)));
    }
    if (overload.form == v1::FORM_UNSPECIFIED) return Error("form", "the form is missing");
    if (non_scalars == 0 && (overload.form == v1::ENTRYWISE || overload.form == v1::ELEMENT)) {
      return Error("operands", "at least one operand must be more than a scalar");
    }
    if (overload.form == v1::MAP || overload.form == v1::REDUCE) return CheckIndexSpace(overload, bound);
    if (!overload.dimensions.empty()) return Error("dimensions", "dimensions belong to MAP and REDUCE");
    return overload.form == v1::ELEMENT ? CheckStaticParameters(overload, bound_parameters)
                                        : absl::OkStatus();
  }

  absl::Status CheckIndexSpace(const Overload& overload, const std::set<int>& bound) const {
    int reductions = 0;
    for (int d = 0; d < static_cast<int>(overload.dimensions.size()); ++d) {
      const Dimension& dimension = overload.dimensions[d];
      bool in_result =
          std::count(overload.result.dimensions.begin(), overload.result.dimensions.end(), d) > 0;
      bool parallel = dimension.kind == v1::PARALLEL;
      reductions += parallel ? 0 : 1;
      if (bound.count(d) == 0) {
        return Error("dimensions", absl::StrCat("dimension ", dimension.name, " is in no operand"), d);
      }
      if (parallel != in_result) {
        return Error("result",
                     absl::StrCat("dimension ", dimension.name, " is ",
                                  parallel ? "parallel, so it must be" : "a reduction, so it must not be",
                                  " in the result"));
      }
    }
    if (overload.form == v1::MAP && reductions > 0)
      return Error("dimensions", "a MAP has parallel dimensions only");
    if (overload.form == v1::REDUCE && reductions == 0)
      return Error("dimensions", "a REDUCE needs a reduction");
    return absl::OkStatus();
  }

  absl::Status CheckStaticParameters(const Overload& overload, const std::set<std::string>& bound) const {
    std::set<std::string> declared(overload.static_parameters.begin(), overload.static_parameters.end());
    for (const std::string& name : declared) {
      if (bound.count(name) == 0) {
        return Error("static_parameters", absl::StrCat("static parameter ", name, " is in no operand"));
      }
    }
    for (const std::string& name : bound) {
      if (declared.count(name) == 0) {
        return Error("static_parameters", absl::StrCat("\"", name, "\" is missing from static_parameters"));
      }
    }
    for (const std::string& extent : overload.result.shape) {
      if (!std::isdigit(static_cast<unsigned char>(extent[0])) && bound.count(extent) == 0) {
        return Error("result", absl::StrCat("static parameter ", extent, " of the result is in no operand"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckRoutines(const v1::OverloadDefinition& in, Overload* out) {
    absl::Status status;
    switch (out->form) {
      case v1::REDUCE:
        if (out->monoid == v1::MONOID_UNSPECIFIED) return Error("monoid", "the monoid is missing");
        status = CheckRoutine("term_routine", out->term_routine);
        if (status.ok() && !out->finish_routine.empty())
          status = CheckRoutine("finish_routine", out->finish_routine);
        if (status.ok() && !out->part_routine.empty()) {
          if (out->monoid != v1::SUM || out->finish_routine.empty())
            return Error("part_routine", "only a SUM with a finish_routine can have a part_routine");
          status = CheckRoutine("part_routine", out->part_routine);
        }
        if (status.ok())
          status = ResolveOperands("term_operands", in.term_operands(), *out, &out->term_operands);
        if (status.ok())
          status = ResolveOperands("finish_operands", in.finish_operands(), *out, &out->finish_operands);
        if (status.ok() && out->term_operands.empty()) {
          for (size_t i = 0; i < out->operands.size(); ++i) out->term_operands.push_back(static_cast<int>(i));
        }
        return status.ok() ? CheckFinishOperands(*out) : status;
      case v1::ELEMENT:
        if (in.implementations().empty()) return Error("implementations", "an ELEMENT needs implementations");
        for (int i = 0; i < in.implementations_size(); ++i) {
          const v1::ImplementationDefinition& implementation = in.implementations(i);
          if (implementation.granularity() == v1::GRANULARITY_UNSPECIFIED) {
            return Error("implementations", "the granularity is missing", i);
          }
          if ((implementation.granularity() == v1::THREAD) != (implementation.threads() == v1::ONE)) {
            return Error("implementations", "granularity THREAD goes with threads ONE, and only that", i);
          }
          status = CheckRoutine("implementations", implementation.routine(), i);
          if (!status.ok()) return status;
          Implementation made{.granularity = implementation.granularity(),
                              .threads = implementation.threads(),
                              .routine = implementation.routine(),
                              .constraint = implementation.constraint()};
          for (int type : implementation.data_types()) {
            if (type != v1::F32 && type != v1::F64)
              return Error("implementations", "data_types must be F32 or F64", i);
            made.data_types.push_back(static_cast<v1::DataType>(type));
          }
          out->implementations.push_back(std::move(made));
        }
        if (!out->implementations.front().constraint.empty() ||
            !out->implementations.front().data_types.empty())
          return Error("implementations",
                       "the first implementation must be without constraint and data_types", 0);
        return absl::OkStatus();
      default:
        return CheckRoutine("routine", out->routine);
    }
  }

  // A finish runs once per entry of the result, so it cannot read an operand along the reduction.
  absl::Status CheckFinishOperands(const Overload& overload) const {
    for (int operand : overload.finish_operands) {
      for (int dimension : overload.operands[operand].pattern.dimensions) {
        if (overload.dimensions[dimension].kind == v1::REDUCTION) {
          return Error("finish_operands",
                       absl::StrCat("operand ", overload.operands[operand].name,
                                    " has the reduction dimension ", overload.dimensions[dimension].name));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckRoutine(absl::string_view field, const std::string& routine, int index = -1) const {
    if (!IsIdentifier(routine))
      return Error(field, absl::StrCat("the name of a routine is missing (", field, ")"), index);
    if (!DefinesRoutine(definition_.source(), routine)) {
      return Error(field, absl::StrCat("routine \"", routine, "\" is not defined in the source (routines.h)"),
                   index);
    }
    return absl::OkStatus();
  }

  template <class Names>
  absl::Status ResolveOperands(absl::string_view field, const Names& names, const Overload& overload,
                               std::vector<int>* positions) const {
    for (int i = 0; i < names.size(); ++i) {
      auto it = std::find_if(overload.operands.begin(), overload.operands.end(),
                             [&](const Operand& operand) { return operand.name == names[i]; });
      if (it == overload.operands.end()) {
        return Error(field, absl::StrCat(field, " names \"", names[i], "\", which is not an operand"), i);
      }
      positions->push_back(static_cast<int>(it - overload.operands.begin()));
    }
    return absl::OkStatus();
  }

  absl::Status CheckExpressions(const Overload& overload) const {
    StaticParameters values(overload.static_parameters.size(), 2);
    absl::Status constraint =
        overload.form == v1::ELEMENT
            ? EvaluateConstraint(overload.constraint, overload.static_parameters, values).status()
            : ParseEqualDimensions(overload.constraint, overload.dimensions).status();
    if (!constraint.ok()) return Error("constraint", absl::StrCat("constraint: ", constraint.message()));
    for (size_t i = 0; i < overload.implementations.size(); ++i) {
      const absl::Status status =
          EvaluateConstraint(overload.implementations[i].constraint, overload.static_parameters, values)
              .status();
      if (!status.ok())
        return Error("implementations", absl::StrCat("constraint: ", status.message()), static_cast<int>(i));
    }
    absl::StatusOr<int64_t> flops = EvaluateExpression(overload.flops, overload.static_parameters, values);
    if (!flops.ok()) return Error("flops", absl::StrCat("flops: ", flops.status().message()));
    if (*flops < 0) return Error("flops", "flops must not be negative");
    return absl::OkStatus();
  }

  const v1::FunctionDefinition& definition_;
  const DefinitionLocator& locate_;
  int overload_ = -1;
};

}  // namespace

absl::StatusOr<ElementaryFunction> CheckDefinition(const v1::FunctionDefinition& definition,
                                                   const DefinitionLocator& locate) {
  return Checker(definition, locate).Run();
}

absl::StatusOr<std::vector<std::pair<int, int>>> ParseEqualDimensions(
    const std::string& constraint, const std::vector<Dimension>& dimensions) {
  std::vector<std::pair<int, int>> pairs;
  if (constraint.empty()) return pairs;
  for (absl::string_view comparison : absl::StrSplit(constraint, "&&")) {
    std::vector<std::string> names = absl::StrSplit(comparison, "==");
    std::vector<int> sides;
    for (absl::string_view side : names) {
      absl::string_view name = absl::StripAsciiWhitespace(side);
      for (size_t d = 0; d < dimensions.size(); ++d) {
        if (dimensions[d].name == name) sides.push_back(static_cast<int>(d));
      }
    }
    if (names.size() != 2 || sides.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", comparison, "\" must compare two dimensions, as in \"i == j\""));
    }
    pairs.emplace_back(sides[0], sides[1]);
  }
  return pairs;
}

std::vector<std::string> RoutineNames(const Overload& overload) {
  std::vector<std::string> names;
  for (const std::string* name :
       {&overload.routine, &overload.term_routine, &overload.finish_routine, &overload.part_routine}) {
    if (!name->empty()) names.push_back(*name);
  }
  for (const Implementation& implementation : overload.implementations)
    names.push_back(implementation.routine);
  return names;
}

}  // namespace fusion
