#include "worker/build/host_arch.h"

#include <sys/utsname.h>

#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fusion {
namespace {

constexpr size_t kDigestLetters = 8;

#if defined(__x86_64__)
// Tells whether there is what x86-64-v3 has beside AVX2, FMA and BMI2: MOVBE, F16C, LZCNT and BMI1.
bool HasSmallInstructionsOfLevel3() {
  constexpr unsigned kMovbe = 1u << 22, kF16c = 1u << 29, kLzcnt = 1u << 5, kBmi1 = 1u << 3;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kMovbe) == 0 || (c & kF16c) == 0) return false;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || (c & kLzcnt) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & kBmi1) != 0;
}
#endif

}  // namespace

std::string NativeArch(std::string_view machine, std::string_view cpuinfo) {
  std::set<std::string> parts, told;
  std::string implementer, part;
  const auto processor_ends = [&] {
    if (!part.empty()) parts.insert(absl::StrCat(implementer, "-", part));
    implementer.clear();
    part.clear();
  };
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(cpuinfo.data(), cpuinfo.size()), '\n', absl::AllowEmpty())) {
    const std::pair<absl::string_view, absl::string_view> split =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(split.first);
    const absl::string_view value = absl::StripAsciiWhitespace(split.second);
    if (key.empty() || key == "processor") processor_ends();
    if (key == "CPU implementer") implementer = std::string(absl::StripPrefix(value, "0x"));
    if (key == "CPU part") part = std::string(absl::StripPrefix(value, "0x"));
    for (const char* wanted :
         {"CPU implementer", "CPU part", "CPU variant", "CPU architecture", "Features", "features", "flags",
          "isa", "uarch", "cpu", "machine", "model name", "cpu model"})
      if (key == wanted) told.insert(absl::StrCat(key, "=", value));
  }
  processor_ends();
  std::string name = absl::StrCat(absl::string_view(machine.data(), machine.size()), "-");
  if (!parts.empty()) absl::StrAppend(&name, absl::StrJoin(parts, "+"), "-");
  return name + Sha256Hex(absl::StrJoin(told, "\n")).substr(0, kDigestLetters);
}

std::string HostArch() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool level_3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                       __builtin_cpu_supports("bmi2") && HasSmallInstructionsOfLevel3();
  if (level_3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "x86-64-avx512";
  return level_3 ? "x86-64-avx2" : "x86-64";
#else
  utsname system{};
  uname(&system);
  std::ostringstream cpuinfo;
  cpuinfo << std::ifstream("/proc/cpuinfo").rdbuf();
  return NativeArch(system.machine, std::move(cpuinfo).str());
#endif
}

std::string HostArchOption(const std::string& arch) {
  if (arch == "x86-64-avx512") return "-march=x86-64-v4";
  if (arch == "x86-64-avx2") return "-march=x86-64-v3";
  if (arch == "x86-64") return "-march=x86-64";
  return absl::StartsWith(arch, "aarch64") ? "-mcpu=native" : "-march=native";
}

bool IsNativeArch(const std::string& arch) { return absl::EndsWith(HostArchOption(arch), "=native"); }

}  // namespace fusion
