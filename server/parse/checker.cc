#include "server/parse/checker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "library/catalog/resolve.h"
#include "server/parse/graph_builder.h"
#include "server/parse/input_values.h"
#include "server/parse/recursion.h"
#include "server/parse/symbol_table.h"

namespace fusion {
namespace {

class Checker {
 public:
  Checker(const SyntaxTree& tree, const Catalog& catalog, ErrorList* errors)
      : tree_(tree), catalog_(catalog), errors_(errors), symbols_(tree, errors) {}

  void Run() {
    for (const NameSyntax& input : tree_.inputs) CheckInput(input);
    for (const ValuesSyntax& values : tree_.values) CheckValues(values);
    calls_.resize(tree_.calls.size());
    for (size_t i = 0; i < tree_.calls.size(); ++i) CheckCall(static_cast<int>(i));
    CheckOutputs();
    for (const InPlaceSyntax& in_place : tree_.in_place) CheckInPlace(in_place);
    CheckEarlyUses();
    CheckUnused();
  }

  SymbolTable& symbols() { return symbols_; }
  std::vector<CheckedCall>& calls() { return calls_; }

 private:
  // A use of a variable that has no value at that point.
  struct EarlyUse {
    int symbol;
    int call;
    Location location;
  };

  void CheckInput(const NameSyntax& input) {
    input_symbols_.push_back(-1);
    const int position = symbols_.Use(input);
    if (position < 0) return;
    Symbol& symbol = symbols_[position];
    if (symbol.input != nullptr) {
      errors_->Add(input.location, absl::StrCat(Shown(input.text), " is already an input ",
                                                symbol.input->location.InWords()));
      return;
    }
    symbol.input = &input;
    input_symbols_.back() = position;
  }

  void CheckValues(const ValuesSyntax& written) {
    const int position = input_symbols_[written.input];
    if (position < 0) return;
    Symbol& symbol = symbols_[position];
    const std::optional<v1::InputValues> values =
        CheckInputValues(written, symbol.name.text, symbol.type ? &*symbol.type : nullptr, errors_);
    if (values) symbol.values = *values;
  }

  void CheckCall(int index) {
    const CallSyntax& call = tree_.calls[index];
    CheckedCall& checked = calls_[index];
    checked.arguments.reserve(call.arguments.size());
    bool types_known = true;
    std::vector<std::optional<Type>> types;
    types.reserve(call.arguments.size());
    for (const ArgumentSyntax& argument : call.arguments) {
      if (argument.name.empty()) {
        checked.arguments.push_back(-1);
        types.push_back(std::nullopt);
        continue;
      }
      const int position = symbols_.Use({argument.name, argument.location, call.result.order});
      checked.arguments.push_back(position);
      if (position < 0) {
        types_known = false;
        continue;
      }
      Symbol& symbol = symbols_[position];
      symbol.used = true;
      if (symbol.input == nullptr && symbol.computed_by < 0)
        early_uses_.push_back({position, index, argument.location});
      types_known = types_known && symbol.type.has_value();
      types.push_back(symbol.type);
    }
    Resolve(call, types_known, types, &checked);
    CheckResult(call, index, &checked);
  }

  void Resolve(const CallSyntax& call, bool types_known, const std::vector<std::optional<Type>>& types,
               CheckedCall* checked) {
    const FunctionName name = SplitAlias(catalog_, call.function);
    checked->function = catalog_.Find(name.base);
    if (checked->function == nullptr) {
      const std::string similar = errors_->MaySuggest() ? catalog_.Suggest(name.base) : "";
      errors_->Add(call.function_location,
                   absl::StrCat("unknown function ", Shown(call.function),
                                similar.empty() ? "; fusion-client library list shows all functions"
                                                : DidYouMean(similar)));
      return;
    }
    if (!types_known) return;
    std::vector<std::string> given;
    for (const ArgumentSyntax& argument : call.arguments)
      given.push_back(argument.name.empty() ? "" : Shown(argument.name));
    absl::StatusOr<ResolvedCall> resolved = ResolveCall(*checked->function, types, name.suffix, given);
    if (!resolved.ok()) {
      errors_->Add(call.function_location, std::string(resolved.status().message()));
      return;
    }
    checked->resolved = *std::move(resolved);
    if (checked->resolved->result.data_type == v1::F64) return;
    for (const ArgumentSyntax& argument : call.arguments) {
      if (argument.name.empty() && std::fabs(argument.literal) > std::numeric_limits<float>::max())
        errors_->Add(argument.location, "this number is too large for f32; the largest is 3.4e38");
    }
  }

  void CheckResult(const CallSyntax& call, int index, CheckedCall* checked) {
    std::string hint;
    if (checked->resolved)
      hint = absl::StrCat("; add: ", checked->resolved->result.ToString(), " ", Shown(call.result.text), ";");
    checked->result = symbols_.Use(call.result, hint);
    if (checked->result < 0) return;
    Symbol& symbol = symbols_[checked->result];
    if (symbol.input != nullptr) {
      errors_->Add(call.result.location,
                   absl::StrCat(Shown(call.result.text), " is an input (", symbol.input->location.InWords(),
                                ") and cannot be computed"));
      return;
    }
    if (symbol.computed_by >= 0) {
      errors_->Add(
          call.result.location,
          absl::StrCat(Shown(call.result.text), " is already computed ",
                       tree_.calls[symbol.computed_by].result.location.InWords(), "; give it another name"));
      return;
    }
    symbol.computed_by = index;
    if (!checked->resolved) return;
    if (!symbol.known) symbol.type = checked->resolved->result;
    if (symbol.type && *symbol.type != checked->resolved->result) {
      errors_->Add(call.result.location,
                   absl::StrCat(Shown(call.result.text), " is declared ", symbol.type->ToString(), ", but ",
                                Shown(call.function), " gives ", checked->resolved->result.ToString()));
    }
  }

  void CheckOutputs() {
    if (!tree_.has_return && !tree_.return_unclear) {
      const bool is_text = tree_.return_location.position.line > 0;
      errors_->Add(tree_.return_location, is_text ? "return is missing; end the file with return x;"
                                                  : "outputs is empty; name what is computed");
    }
    for (const NameSyntax& output : tree_.outputs) {
      const int position = symbols_.Use(output);
      if (position < 0) continue;
      Symbol& symbol = symbols_[position];
      symbol.used = true;
      if (symbol.returned) {
        errors_->Add(output.location, absl::StrCat(Shown(output.text), " is returned twice"));
      } else if (symbol.input != nullptr) {
        errors_->Add(output.location, absl::StrCat("output ", Shown(output.text),
                                                   " is an input; return only what is computed"));
      } else if (symbol.computed_by < 0) {
        early_uses_.push_back({position, -1, output.location});
      }
      symbol.returned = true;
    }
  }

  void CheckInPlace(const InPlaceSyntax& in_place) {
    const NameSyntax& output = tree_.outputs[in_place.output];
    const int to = symbols_.Use(in_place.input), from = symbols_.Use(output);
    if (to < 0 || from < 0) return;
    Symbol& input = symbols_[to];
    const Symbol& result = symbols_[from];
    const std::string name = Shown(in_place.input.text);
    const auto fail = [&](std::string message) { errors_->Add(in_place.input.location, std::move(message)); };
    if (input.input == nullptr) {
      if (input.known)
        fail(absl::StrCat(name, " is no input; an output takes the memory of an input: return p2 into p;"));
      return;
    }
    if (!input.overwritten_by.empty()) {
      fail(absl::StrCat("the memory of ", name, " is that of ", Shown(input.overwritten_by), " already"));
      return;
    }
    input.overwritten_by = output.text;
    if (!input.type || !result.type || result.computed_by < 0) return;
    if (*input.type != *result.type || input.leading_dimension != result.leading_dimension) {
      const auto declared = [](const Symbol& symbol) {
        Value value;
        value.type = *symbol.type;
        value.leading_dimension = symbol.leading_dimension;
        return DeclaredType(value);
      };
      fail(absl::StrCat(Shown(output.text), " is ", declared(result), ", but ", name, " is ", declared(input),
                        "; an output takes the memory of an input of its own type"));
    } else if (input.type->is_scalar()) {
      fail(absl::StrCat(name, " is a scalar, which is handed over by value; only collections are in memory"));
    } else if (input.type->mapped) {
      fail(absl::StrCat(name,
                        " is a list of small elements, of which an entry may be read after another "
                        "one is written; only vectors and matrices are returned into inputs"));
    } else {
      CheckReadsOfOverwritten(to, result.computed_by);
    }
  }

  // `writer`: the call whose result takes the memory.
  void CheckReadsOfOverwritten(int input, int writer) {
    const CallSyntax& written = tree_.calls[writer];
    for (size_t i = writer; i < calls_.size(); ++i) {
      const CallSyntax& call = tree_.calls[i];
      for (size_t a = 0; a < calls_[i].arguments.size(); ++a) {
        if (calls_[i].arguments[a] != input) continue;
        const std::string name = Shown(symbols_[input].name.text);
        if (static_cast<int>(i) > writer) {
          errors_->Add(
              call.arguments[a].location,
              absl::StrCat(name, " is read after ", Shown(written.result.text), " has taken its memory ",
                           written.result.location.InWords(), "; move this call above that"));
        } else if (calls_[i].resolved && !ReadsEntryByEntry(*calls_[i].resolved, a)) {
          errors_->Add(call.arguments[a].location,
                       absl::StrCat(Shown(call.result.text), " cannot take the memory of ", name, ": ",
                                    Shown(call.function), " does not read it entry by entry"));
        } else {
          continue;
        }
        return;  // one is enough
      }
    }
  }

  // Returns whether each entry of the result needs the same entry of this operand, and no other one of it.
  static bool ReadsEntryByEntry(const ResolvedCall& call, size_t operand) {
    return call.operand_maps[operand] == call.result_map &&
           std::all_of(call.dimensions.begin(), call.dimensions.end(),
                       [](const ResolvedDimension& dimension) { return dimension.kind == v1::PARALLEL; });
  }

  // Each variable once, where it is first used.
  void CheckEarlyUses() {
    if (early_uses_.empty()) return;
    Recursion recursion(tree_, symbols_.symbols(), calls_);
    for (const EarlyUse& use : early_uses_) {
      Symbol& symbol = symbols_[use.symbol];
      if (!symbol.known || symbol.value_reported || tree_.unclear.contains(symbol.name.text)) continue;
      if (symbol.computed_by < 0) {
        if (tree_.result_unclear) continue;
        symbol.value_reported = true;
        errors_->Add(use.location, absl::StrCat(Shown(symbol.name.text),
                                                " has no value: it is neither an input nor ", "computed"));
        continue;
      }
      if (use.call >= 0 && recursion.SameCycle(use.call, symbol.computed_by)) {
        std::string cycle = recursion.DescribeOnce(use.call, symbol.computed_by);
        if (!cycle.empty()) errors_->Add(use.location, absl::StrCat("recursion: ", cycle));
        continue;
      }
      symbol.value_reported = true;
      const Location& computed = tree_.calls[symbol.computed_by].result.location;
      errors_->Add(use.location, absl::StrCat(Shown(symbol.name.text), " is used before it is computed ",
                                              computed.InWords(), "; move its computation up"));
    }
  }

  // Without a readable return it is unknown which results are outputs.
  void CheckUnused() {
    const bool outputs_known = !tree_.outputs.empty() && !tree_.return_unclear;
    for (const Symbol& symbol : symbols_.symbols()) {
      if (symbol.used || !symbol.known || symbol.is_size || tree_.unclear.contains(symbol.name.text))
        continue;
      if (symbol.input != nullptr) {
        errors_->Add(symbol.input->location,
                     absl::StrCat("input ", Shown(symbol.name.text),
                                  " is never used; use it or delete it from the inputs"));
      } else if (symbol.computed_by >= 0 && outputs_known) {
        const Location& computed = tree_.calls[symbol.computed_by].result.location;
        errors_->Add(computed, absl::StrCat(Shown(symbol.name.text),
                                            " is computed but never used; return it or delete the ",
                                            computed.position.line > 0 ? "line" : "call"));
      }
    }
  }

  const SyntaxTree& tree_;
  const Catalog& catalog_;
  ErrorList* errors_;
  SymbolTable symbols_;
  std::vector<int> input_symbols_;  // like SyntaxTree::inputs: positions of symbols; -1: reported
  std::vector<CheckedCall> calls_;  // like SyntaxTree::calls
  std::vector<EarlyUse> early_uses_;
};

}  // namespace

std::shared_ptr<const Graph> CheckGraph(const SyntaxTree& tree, const std::string& name,
                                        std::shared_ptr<const Catalog> catalog, ErrorList* errors) {
  Checker checker(tree, *catalog, errors);
  checker.Run();
  if (!errors->empty()) return nullptr;
  return BuildGraph(tree, name, std::move(catalog), checker.symbols().symbols(), checker.calls());
}

}  // namespace fusion
