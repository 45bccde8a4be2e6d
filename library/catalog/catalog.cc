#include "library/catalog/catalog.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "library/catalog/definition_check.h"
#include "library/catalog/function_files.h"

namespace fusion {
namespace {

absl::StatusOr<std::shared_ptr<const Catalog>> FromFiles(const std::vector<FunctionFiles>& all) {
  std::vector<v1::FunctionDefinition> definitions;
  for (const FunctionFiles& files : all) {
    FUSION_ASSIGN_OR_RETURN(v1::FunctionDefinition definition, ParseFunctionFiles(files));
    definitions.push_back(std::move(definition));
  }
  return Catalog::FromDefinitions(definitions);
}

// Edit distance in which swapping two neighbours counts as one (optimal string alignment).
int EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int>(i + j);
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string_view WithoutDigits(std::string_view name) {
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back()))) name.remove_suffix(1);
  return name;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Catalog>> Catalog::BuiltIn() {
  static const auto* built_in =
      new absl::StatusOr<std::shared_ptr<const Catalog>>(FromFiles(EmbeddedFunctionFiles()));
  return *built_in;
}

absl::StatusOr<std::shared_ptr<const Catalog>> Catalog::LoadDirectory(const std::string& directory) {
  FUSION_ASSIGN_OR_RETURN(std::vector<FunctionFiles> files, ReadFunctionDirectory(directory));
  return FromFiles(files);
}

absl::StatusOr<std::shared_ptr<const Catalog>> Catalog::FromDefinitions(
    const std::vector<v1::FunctionDefinition>& definitions) {
  std::shared_ptr<Catalog> catalog(new Catalog);
  for (const v1::FunctionDefinition& definition : definitions) {
    absl::Status status = catalog->Add(definition, /*is_inline=*/false);
    if (!status.ok()) return status;
  }
  catalog->ComputeHash();
  return catalog;
}

absl::StatusOr<std::shared_ptr<const Catalog>> Catalog::WithInline(
    const std::vector<v1::FunctionDefinition>& definitions) const {
  std::shared_ptr<Catalog> catalog(new Catalog);
  catalog->definitions_ = definitions_;
  catalog->functions_of_routines_ = functions_of_routines_;
  for (const auto& [name, function] : functions_) {
    catalog->functions_.emplace(name, std::make_unique<ElementaryFunction>(*function));
  }
  for (const v1::FunctionDefinition& definition : definitions) {
    absl::Status status = catalog->Add(definition, /*is_inline=*/true);
    if (!status.ok()) return status;
  }
  catalog->ComputeHash();
  return catalog;
}

absl::Status Catalog::Add(const v1::FunctionDefinition& definition, bool is_inline) {
  FUSION_ASSIGN_OR_RETURN(ElementaryFunction function, CheckDefinition(definition, nullptr));
  if (Find(function.name) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("function \"", function.name,
                     is_inline ? "\" exists in the library; give it another name" : "\" is described twice"));
  }
  // One kernel may include the routines of several functions.
  std::set<std::string> routines;
  for (const Overload& overload : function.overloads)
    for (std::string& name : RoutineNames(overload)) routines.insert(std::move(name));
  for (const std::string& routine : routines)
    if (const auto other = functions_of_routines_.find(routine); other != functions_of_routines_.end())
      return absl::AlreadyExistsError(absl::StrCat("function \"", function.name, "\": routine \"", routine,
                                                   "\" is also a routine of function \"", other->second,
                                                   "\"; begin its name with that of the function"));
  for (const std::string& routine : routines) functions_of_routines_.emplace(routine, function.name);
  function.is_inline = is_inline;
  definitions_.push_back(definition);
  functions_.emplace(definition.name(), std::make_unique<ElementaryFunction>(std::move(function)));
  return absl::OkStatus();
}

void Catalog::ComputeHash() {
  std::sort(
      definitions_.begin(), definitions_.end(),
      [](const v1::FunctionDefinition& a, const v1::FunctionDefinition& b) { return a.name() < b.name(); });
  std::string all;
  for (v1::FunctionDefinition definition : definitions_) {
    definition.clear_cost();  // other predictions: neither another function nor other code
    std::string bytes = definition.SerializeAsString();
    absl::StrAppend(&all, bytes.size(), ":", bytes);
  }
  hash_ = absl::StrCat("sha256:", Sha256Hex(all).substr(0, 16));
}

const ElementaryFunction* Catalog::Find(std::string_view name) const {
  auto it = functions_.find(name);
  return it == functions_.end() ? nullptr : it->second.get();
}

const ElementaryFunction* Catalog::FindByRoutine(std::string_view routine) const {
  const auto function = functions_of_routines_.find(routine);
  return function == functions_of_routines_.end() ? nullptr : Find(function->second);
}

std::vector<const ElementaryFunction*> Catalog::functions() const {
  std::vector<const ElementaryFunction*> all;
  for (const auto& [name, function] : functions_) all.push_back(function.get());
  return all;
}

std::string Catalog::Suggest(std::string_view name) const {
  constexpr size_t kLongestName = 100;  // keeps the distance cheap for hostile input
  if (name.empty() || name.size() > kLongestName) return "";
  std::string best;
  int best_distance = std::numeric_limits<int>::max();
  for (std::string_view written : {name, WithoutDigits(name)}) {
    int limit = written.size() <= 3 ? 1 : 2;
    for (const auto& [candidate, function] : functions_) {
      int distance = EditDistance(written, candidate);
      if (distance > limit || distance >= best_distance || distance >= static_cast<int>(written.size()))
        continue;
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

FunctionName SplitAlias(const Catalog& catalog, std::string_view name) {
  if (catalog.Find(name) != nullptr) return {std::string(name), "", false};
  size_t open = name.find('<');
  if (open != std::string_view::npos && name.back() == '>') {
    return {std::string(name.substr(0, open)), std::string(name.substr(open + 1, name.size() - open - 2)),
            true};
  }
  // The longest known function that leaves digits: names may themselves end in one (nrm2).
  std::string_view base = WithoutDigits(name);
  for (size_t length = name.size(); length-- > base.size();) {
    if (catalog.Find(name.substr(0, length)) != nullptr) {
      return {std::string(name.substr(0, length)), std::string(name.substr(length)), false};
    }
  }
  return {std::string(base), std::string(name.substr(base.size())), false};
}

}  // namespace fusion
