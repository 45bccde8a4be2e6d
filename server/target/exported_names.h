// An exported folder calls its files, functions and kernels as a person asked, so that the code of several
// folders goes into one program.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fusion {

class ExportedNames {
 public:
  // Texts of exported code are written with this name: fused.h, fused_launch, FUSED_OK.
  static constexpr absl::string_view kDefault = "fused";

  // Returns InvalidArgument for what can begin no name of a function, or names another file of the folder.
  static absl::Status Check(absl::string_view name);

  // "" is the default; any other must pass Check.
  explicit ExportedNames(absl::string_view name = "");

  const std::string& name() const { return name_; }
  // Returns the text with this name in the place of the default: gelu.h, gelu_launch, GELU_OK. Give it no
  // words of people: what they call something may begin alike.
  std::string In(absl::string_view text) const;
  // Returns the name of a kernel that was lowered as "fused_...".
  std::string Kernel(absl::string_view kernel) const;

 private:
  std::string name_;
  std::string macro_;  // in capitals
};

}  // namespace fusion
