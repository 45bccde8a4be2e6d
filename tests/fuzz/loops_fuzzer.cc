// Loops in C, read and judged.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/loops/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto checked =
      fusion::CheckLoops(absl::string_view(reinterpret_cast<const char*>(data), size), "x.c");
  if (checked.ok())
    for (const fusion::CheckedLoop& loop : checked->loops) (void)fusion::LoopText(loop, "x.c");
  return 0;
}
