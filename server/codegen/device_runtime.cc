#include "server/codegen/device_runtime.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "library/catalog/embedded_files.h"

namespace fusion {

const std::string& DeviceRuntime() {
  static const auto* const text = [] {
    auto* joined = new std::string(EmbeddedFiles().at("device/fusion_device.h"));
    for (const auto& [path, content] : EmbeddedFiles()) {
      absl::string_view name = path;
      if (absl::ConsumePrefix(&name, "device/"))
        absl::StrReplaceAll({{absl::StrCat("#include \"", name, "\"\n"), content}}, joined);
    }
    return joined;
  }();
  return *text;
}

}  // namespace fusion
