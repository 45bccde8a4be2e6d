// The library of elementary functions: loads function descriptions and finds functions by name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/catalog.pb.h"
#include "library/catalog/elementary_function.h"

namespace fusion {

// An immutable set of functions. Thread safe after construction; functions live as long as the catalog.
class Catalog {
 public:
  // The functions built into the program (library/functions at build time).
  static absl::StatusOr<std::shared_ptr<const Catalog>> BuiltIn();
  // Reads <directory>/<domain>/<name>/function.textproto and routines.h. Errors name file, line and column.
  static absl::StatusOr<std::shared_ptr<const Catalog>> LoadDirectory(const std::string& directory);
  static absl::StatusOr<std::shared_ptr<const Catalog>> FromDefinitions(
      const std::vector<v1::FunctionDefinition>& definitions);

  // A catalog with more functions on top of this one (inline functions of a submission). A name that exists
  // is an error: a submission must not change the meaning of the library.
  absl::StatusOr<std::shared_ptr<const Catalog>> WithInline(
      const std::vector<v1::FunctionDefinition>& definitions) const;

  // Finds a function by its exact name ("mmul"); null when absent. Suffixed aliases are the caller's business
  // (SplitAlias).
  const ElementaryFunction* Find(std::string_view name) const;
  // Returns the function that a routine ("mmul_tile") is of; null when there is none.
  const ElementaryFunction* FindByRoutine(std::string_view routine) const;
  // All functions by name.
  std::vector<const ElementaryFunction*> functions() const;
  const std::vector<v1::FunctionDefinition>& definitions() const { return definitions_; }
  // Changes when any description or routine changes, but for costs. "sha256:..." hex, 16 digits.
  const std::string& hash() const { return hash_; }
  // The nearest function name by edit distance, or "" when nothing is near.
  std::string Suggest(std::string_view name) const;

 private:
  Catalog() = default;
  absl::Status Add(const v1::FunctionDefinition& definition, bool is_inline);
  void ComputeHash();
  std::map<std::string, std::unique_ptr<ElementaryFunction>, std::less<>> functions_;
  std::map<std::string, std::string, std::less<>> functions_of_routines_;  // their names
  std::vector<v1::FunctionDefinition> definitions_;
  std::string hash_;
};

// "mmul33" -> {"mmul", "33"}; "mmul<3,3>" -> {"mmul", "3,3"}; "gemv" -> {"gemv", ""}. A name that the catalog
// has exactly is not split.
struct FunctionName {
  std::string base;
  std::string suffix;                // digits, or what stands in <>
  bool explicit_parameters = false;  // written with <>
};
FunctionName SplitAlias(const Catalog& catalog, std::string_view name);

}  // namespace fusion
