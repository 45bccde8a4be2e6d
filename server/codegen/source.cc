#include "server/codegen/source.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "server/codegen/device_runtime.h"
#include "server/codegen/kernel_versions.h"

namespace fusion {

std::string PrintSource(const FusionCode& code, const Target& target, bool standalone,
                        const SizeValues* sizes) {
  std::string source = standalone ? DeviceRuntime() : "#include \"fusion_device.h\"\n";
  for (const ElementaryFunction* function : code.functions)
    absl::StrAppend(&source, "\n// ", function->name, "\n", function->source);
  for (const KernelLaunch& launch : code.launches)
    for (const ir::Kernel& kernel : sizes == nullptr
                                        ? LaunchableKernels(launch)
                                        : std::vector{LaunchedKernel(launch, LaunchesWhole(launch, *sizes))})
      absl::StrAppend(&source, "\n", target.Print(kernel));
  return source;
}

}  // namespace fusion
