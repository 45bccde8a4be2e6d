#include "library/catalog/resolve.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "library/catalog/definition_check.h"

namespace fusion {
namespace {

using Kind = TypePattern::Kind;

bool IsScalarPattern(const TypePattern& pattern) {
  return pattern.kind == Kind::kCollection && pattern.dimensions.empty();
}

// "gemv(a, A, x)"
std::string Signature(const std::string& name, const Overload& overload) {
  return absl::StrCat(
      name, "(",
      absl::StrJoin(overload.operands, ", ",
                    [](std::string* out, const Operand& operand) { out->append(operand.name); }),
      ")");
}

// Tries one overload. Operands are taken in order; the first that does not fit ends the attempt.
class Attempt {
 public:
  Attempt(const std::string& name, const Overload& overload, absl::Span<const std::optional<Type>> types,
          absl::Span<const std::string> given)
      : name_(name), overload_(overload), types_(types), given_(given) {
    call_.overload = &overload;
    extents_.resize(overload.dimensions.size());
    extent_binders_.resize(overload.dimensions.size(), -1);
    parameters_.resize(overload.static_parameters.size(), 0);
    parameter_binders_.resize(overload.static_parameters.size(), -1);
  }

  bool Run() {
    for (matched_ = 0; matched_ < static_cast<int>(types_.size()); ++matched_) {
      if (!MatchDataType(matched_) || !MatchShape(matched_)) return false;
    }
    return CheckWhole() && CheckConstraint() && Finish();
  }

  int matched() const { return matched_; }  // operands that fitted
  const std::string& message() const { return message_; }
  const ResolvedCall& call() const { return call_; }

 private:
  bool Fail(absl::string_view what) {
    message_ = absl::StrCat(Signature(name_, overload_), ": ", what);
    return false;
  }

  std::string Actual(int operand) const {
    return types_[operand].has_value() ? types_[operand]->ToString() : std::string("a literal");
  }

  // "x must be vector[n] because A is matrix[m,n], but it is vector[m]; here x is p and A is B"
  bool FailOperand(int operand, const std::string& expected, const std::set<int>& because) {
    std::vector<std::string> reasons, here;
    const auto name = [&](int of) {
      const std::string& formal = overload_.operands[of].name;
      if (!given_.empty() && !given_[of].empty() && given_[of] != formal)
        here.push_back(absl::StrCat(formal, " is ", given_[of]));
      return formal;
    };
    const std::string at_fault = name(operand);
    for (int other : because) reasons.push_back(absl::StrCat(name(other), " is ", Actual(other)));
    return Fail(absl::StrCat(at_fault, " must be ", expected, reasons.empty() ? "" : " because ",
                             absl::StrJoin(reasons, " and "), ", but it is ", Actual(operand),
                             here.empty() ? "" : "; here ", absl::StrJoin(here, " and ")));
  }

  bool MatchDataType(int operand) {
    if (!types_[operand].has_value()) return true;
    if (data_type_binder_ < 0) {
      data_type_binder_ = operand;
      return true;
    }
    DataType expected = types_[data_type_binder_]->data_type;
    if (types_[operand]->data_type == expected) return true;
    return FailOperand(operand, expected == v1::F64 ? "f64" : "f32", {data_type_binder_});
  }

  bool MatchShape(int operand) {
    const TypePattern& pattern = overload_.operands[operand].pattern;
    switch (pattern.kind) {
      case Kind::kAny:
        return MatchAny(operand);
      case Kind::kElement:
        return MatchElement(operand, pattern);
      case Kind::kCollection:
        return pattern.dimensions.empty() ? MatchScalar(operand) : MatchCollection(operand, pattern);
    }
    return false;
  }

  bool MatchAny(int operand) {
    if (any_binder_ < 0) {
      any_binder_ = operand;
      any_ = types_[operand].value_or(Type::Scalar(v1::F32));
      return true;
    }
    Type actual = types_[operand].value_or(Type::Scalar(v1::F32));
    if (actual.mapped == any_.mapped && actual.element_shape == any_.element_shape &&
        actual.extents == any_.extents) {
      return true;
    }
    return FailOperand(operand, any_.ToString(), {any_binder_});
  }

  // A SCALAR element is a broadcast scalar where there are elements to broadcast to; CheckWhole sees to that.
  bool MatchScalar(int operand) {
    if (!types_[operand].has_value() || types_[operand]->is_scalar()) return true;
    bool elements = overload_.form == v1::ENTRYWISE || overload_.form == v1::ELEMENT;
    if (elements && types_[operand]->mapped && types_[operand]->element_shape.empty()) return true;
    return FailOperand(operand, overload_.form == v1::ELEMENT ? "scalar or SCALAR" : "scalar", {});
  }

  bool MatchCollection(int operand, const TypePattern& pattern) {
    const std::optional<Type>& type = types_[operand];
    bool fits = type.has_value() && !type->mapped && type->extents.size() == pattern.dimensions.size();
    for (size_t i = 0; fits && i < pattern.dimensions.size(); ++i) {
      int d = pattern.dimensions[i];
      fits = extent_binders_[d] < 0 || extents_[d] == type->extents[i];
    }
    if (!fits) return FailCollection(operand, pattern);
    for (size_t i = 0; i < pattern.dimensions.size(); ++i) {
      int d = pattern.dimensions[i];
      if (extent_binders_[d] >= 0) continue;
      extents_[d] = type->extents[i];
      extent_binders_[d] = operand;
    }
    return true;
  }

  bool FailCollection(int operand, const TypePattern& pattern) {
    std::string kind = pattern.dimensions.size() == 1 ? "vector" : "matrix";
    std::set<int> because;
    std::vector<std::string> extents;
    for (int d : pattern.dimensions) {
      extents.push_back(extent_binders_[d] < 0 ? "_" : extents_[d].ToString());
      if (extent_binders_[d] >= 0) because.insert(extent_binders_[d]);
    }
    if (because.empty()) return FailOperand(operand, absl::StrCat("a ", kind), {});
    return FailOperand(operand, absl::StrCat(kind, "[", absl::StrJoin(extents, ","), "]"), because);
  }

  // The value that a shape entry of a pattern demands, 0 when still free, and who bound it (-1: nobody).
  std::pair<int, int> Demanded(const std::string& extent) const {
    int constant = 0;
    if (absl::SimpleAtoi(extent, &constant)) return {constant, -1};
    int p = ParameterIndex(extent);
    return {parameters_[p], parameter_binders_[p]};
  }

  int ParameterIndex(const std::string& name) const {
    auto it = std::find(overload_.static_parameters.begin(), overload_.static_parameters.end(), name);
    return static_cast<int>(it - overload_.static_parameters.begin());
  }

  bool MatchElement(int operand, const TypePattern& pattern) {
    const std::optional<Type>& type = types_[operand];
    if (!type.has_value() && pattern.shape.empty()) return true;
    if (!type.has_value() || !type->mapped || type->element_shape.size() != pattern.shape.size()) {
      return FailElement(operand, pattern);
    }
    for (size_t i = 0; i < pattern.shape.size(); ++i) {
      int demanded = Demanded(pattern.shape[i]).first;
      if (demanded != 0 && demanded != type->element_shape[i]) return FailElement(operand, pattern);
      if (demanded == 0) {
        int p = ParameterIndex(pattern.shape[i]);
        parameters_[p] = type->element_shape[i];
        parameter_binders_[p] = operand;
      }
    }
    return true;
  }

  bool FailElement(int operand, const TypePattern& pattern) {
    if (pattern.shape.empty()) return FailOperand(operand, "SCALAR", {});
    std::string kind = pattern.shape.size() == 1 ? "VECTOR" : "MATRIX";
    std::set<int> because;
    std::vector<std::string> extents;
    bool all_free = true;
    for (const std::string& extent : pattern.shape) {
      auto [value, binder] = Demanded(extent);
      extents.push_back(value == 0 ? "_" : absl::StrCat(value));
      all_free = all_free && value == 0;
      if (binder == operand) return FailOperand(operand, "square", {});
      if (binder >= 0) because.insert(binder);
    }
    if (all_free) return FailOperand(operand, absl::StrCat("an element ", kind), {});
    return FailOperand(operand, absl::StrCat(kind, absl::StrJoin(extents, "x")), because);
  }

  // Checks what only shows when all operands are seen.
  bool CheckWhole() {
    if (data_type_binder_ < 0) return Fail("every operand is a literal; write the value itself");
    call_.result.data_type = types_[data_type_binder_]->data_type;
    bool mapped = any_binder_ >= 0 && any_.mapped;
    if (overload_.form == v1::ELEMENT) {
      mapped =
          std::any_of(types_.begin(), types_.end(), [](const auto& t) { return t.has_value() && t->mapped; });
      if (!mapped) return Fail("at least one operand must be an element (SCALAR, VECTORn or MATRIXrxc)");
    }
    for (size_t i = 0; i < types_.size(); ++i) {
      bool is_element = types_[i].has_value() && types_[i]->mapped;
      if (!IsScalarPattern(overload_.operands[i].pattern) || !is_element || mapped) continue;
      return FailOperand(static_cast<int>(i), "scalar", {any_binder_});
    }
    mapped_ = mapped;
    return true;
  }

  bool CheckConstraint() {
    if (overload_.constraint.empty()) return true;
    if (overload_.form == v1::ELEMENT) {
      absl::StatusOr<bool> holds =
          EvaluateConstraint(overload_.constraint, overload_.static_parameters, parameters_);
      if (holds.ok() && *holds) return true;
      std::vector<std::string> values;
      for (size_t p = 0; p < parameters_.size(); ++p) {
        values.push_back(absl::StrCat(overload_.static_parameters[p], " = ", parameters_[p]));
      }
      return Fail(absl::StrCat("needs ", overload_.constraint, ", but ", absl::StrJoin(values, ", ")));
    }
    absl::StatusOr<std::vector<std::pair<int, int>>> pairs =
        ParseEqualDimensions(overload_.constraint, overload_.dimensions);
    if (!pairs.ok()) return Fail(pairs.status().message());
    for (auto [a, b] : *pairs) {
      if (extents_[a] == extents_[b]) continue;
      if (extent_binders_[a] == extent_binders_[b]) return FailOperand(extent_binders_[a], "square", {});
      return Fail(absl::StrCat("dimensions ", overload_.dimensions[a].name, " (", extents_[a].ToString(),
                               ") and ", overload_.dimensions[b].name, " (", extents_[b].ToString(),
                               ") must be equal"));
    }
    return true;
  }

  bool Finish() {
    DataType data_type = call_.result.data_type;
    switch (overload_.form) {
      case v1::ENTRYWISE:
        call_.result = any_;
        call_.result.data_type = data_type;
        for (const Extent& extent : any_.extents) call_.dimensions.push_back({extent, v1::PARALLEL});
        break;
      case v1::ELEMENT: {
        std::vector<int> shape;
        for (const std::string& extent : overload_.result.shape) shape.push_back(Demanded(extent).first);
        call_.result = Type::Element(data_type, std::move(shape));
        call_.dimensions.push_back({Extent{.name = kElementsSize}, v1::PARALLEL});
        call_.static_parameters = parameters_;
        break;
      }
      default:
        for (size_t d = 0; d < extents_.size(); ++d) {
          call_.dimensions.push_back({extents_[d], overload_.dimensions[d].kind});
        }
        call_.result = Type::Scalar(data_type);
        for (int d : overload_.result.dimensions) call_.result.extents.push_back(extents_[d]);
    }
    bool by_pattern = overload_.form == v1::MAP || overload_.form == v1::REDUCE;
    for (size_t i = 0; i < types_.size(); ++i) {
      call_.operand_maps.push_back(by_pattern
                                       ? overload_.operands[i].pattern.dimensions
                                       : Identity(types_[i].has_value() ? types_[i]->extents.size() : 0));
    }
    call_.result_map = by_pattern ? overload_.result.dimensions : Identity(call_.result.extents.size());
    return true;
  }

  static std::vector<int> Identity(size_t n) {
    std::vector<int> map(n);
    for (size_t i = 0; i < n; ++i) map[i] = static_cast<int>(i);
    return map;
  }

  const std::string& name_;
  const Overload& overload_;
  absl::Span<const std::optional<Type>> types_;
  absl::Span<const std::string> given_;
  ResolvedCall call_;
  std::string message_;
  int matched_ = 0;
  bool mapped_ = false;
  int data_type_binder_ = -1;
  int any_binder_ = -1;
  Type any_;
  std::vector<Extent> extents_;      // by dimension
  std::vector<int> extent_binders_;  // operand that bound it, or -1
  StaticParameters parameters_;      // 0: free
  std::vector<int> parameter_binders_;
};

// A suffix repeats what the operands say already, so it is only compared: with the shape of the first VECTOR
// or MATRIX operand, one number for a square one, or all static parameters.
absl::Status CheckSuffix(const std::string& name, absl::Span<const std::optional<Type>> operands,
                         const ResolvedCall& call, const std::string& suffix) {
  if (suffix.empty()) return absl::OkStatus();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].has_value() || operands[i]->element_shape.empty()) continue;
    const std::vector<int>& shape = operands[i]->element_shape;
    std::string digits = absl::StrJoin(shape, "");
    std::vector<int> numbers;
    for (absl::string_view part : absl::StrSplit(suffix, ',')) {
      int number = 0;
      numbers.push_back(absl::SimpleAtoi(absl::StripAsciiWhitespace(part), &number) ? number : -1);
    }
    bool square = numbers.size() == 1 &&
                  std::all_of(shape.begin(), shape.end(), [&](int extent) { return extent == numbers[0]; });
    if (suffix == digits || numbers == shape || numbers == call.static_parameters || square)
      return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(Signature(name, *call.overload), ": the sizes \"", suffix,
                     "\" in the name do not fit: ", call.overload->operands[i].name, " is ",
                     operands[i]->ToString(), "; write ", name, " or ", name, digits));
  }
  return absl::InvalidArgumentError(absl::StrCat(Signature(name, *call.overload), ": the sizes \"", suffix,
                                                 "\" in the name need a VECTORn or MATRIXrxc operand; write ",
                                                 name));
}

}  // namespace

absl::StatusOr<ResolvedCall> ResolveCall(const ElementaryFunction& function,
                                         absl::Span<const std::optional<Type>> operands,
                                         const std::string& suffix, absl::Span<const std::string> given) {
  int best = -1;
  std::string message;
  std::set<std::string> signatures;
  for (const Overload& overload : function.overloads) {
    signatures.insert(Signature(function.name, overload));
    if (overload.operands.size() != operands.size()) continue;
    Attempt attempt(function.name, overload, operands, given);
    if (attempt.Run()) {
      absl::Status status = CheckSuffix(function.name, operands, attempt.call(), suffix);
      if (!status.ok()) return status;
      return attempt.call();
    }
    if (attempt.matched() <= best) continue;
    best = attempt.matched();
    message = attempt.message();
  }
  if (best < 0) {
    message = absl::StrCat("the call has ", operands.size(), operands.size() == 1 ? " operand" : " operands",
                           "; write ", absl::StrJoin(signatures, " or "));
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace fusion
