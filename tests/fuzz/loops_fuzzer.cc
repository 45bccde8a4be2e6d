// Loops in C, read, judged, and made kernels of.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/loop_kernels/interface.h"
#include "server/loop_kernels/launches.h"
#include "server/loop_kernels/lowering.h"
#include "server/loops/check.h"
#include "server/loops/mapping.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto checked =
      fusion::CheckLoops(absl::string_view(reinterpret_cast<const char*>(data), size), "x.c");
  if (!checked.ok()) return 0;
  for (const fusion::CheckedLoop& loop : checked->loops) (void)fusion::LoopText(loop, "x.c");
  fusion::ErrorList errors("x.c");
  const fusion::MappedLoops mapped = fusion::MapLoops(*checked, {}, &errors);
  const fusion::LoopInterface interface = fusion::InterfaceOf(mapped.program, &errors);
  fusion::IntegerValues constants;
  for (const fusion::CParameter& parameter : mapped.program.parameters) constants[parameter.name] = 2;
  const fusion::LoopCode code = fusion::LowerLoops(mapped, {.constants = constants, .cached = true}, &errors);
  for (const std::string& name : interface.integers) constants.emplace(name, 3);
  if (errors.empty())
    fusion::ForEachLaunch(code, constants, [](int, int64_t, const fusion::IntegerValues&) {
      return absl::OkStatus();
    }).IgnoreError();
  return 0;
}
