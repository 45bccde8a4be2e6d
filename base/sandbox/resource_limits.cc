#include "base/sandbox/resource_limits.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fusion {
namespace {

constexpr uint64_t kMebi = 1 << 20, kGibi = 1 << 30;

// Sanitizers reserve terabytes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitMemory = false;
#else
constexpr bool kLimitMemory = true;
#endif

void Lower(int resource, uint64_t value) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, value);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

}  // namespace

uint64_t MachineBytes() {
  struct sysinfo info {};
  return sysinfo(&info) == 0 ? static_cast<uint64_t>(info.totalram) * info.mem_unit : 0;
}

ResourceLimits LimitsOf(SandboxKind kind) {
  ResourceLimits limits;
  switch (kind) {
    case SandboxKind::kHostCode:
      limits.data_bytes = MachineBytes() / 10 * 9;
      limits.file_bytes = 32 * kMebi;
      limits.descriptors = 256;
      break;
    case SandboxKind::kDeviceCode:
      limits.file_bytes = kGibi;
      limits.descriptors = 4096;
      break;
    case SandboxKind::kDeviceCompiler:
      limits.data_bytes = 4 * kGibi;
      limits.file_bytes = 32 * kMebi;
      limits.descriptors = 256;
      break;
    case SandboxKind::kHostCompiler:
      limits.address_space_bytes = 2 * kGibi;
      limits.file_bytes = 256 * kMebi;
      limits.descriptors = 256;
      limits.processor_seconds = 1200;
      break;
  }
  return limits;
}

void ApplyLimits(const ResourceLimits& limits) {
  Lower(RLIMIT_CORE, 0);
  if (limits.address_space_bytes > 0) Lower(RLIMIT_AS, limits.address_space_bytes);
  if (kLimitMemory && limits.data_bytes > 0) Lower(RLIMIT_DATA, limits.data_bytes);
  if (limits.file_bytes > 0) Lower(RLIMIT_FSIZE, limits.file_bytes);
  if (limits.descriptors > 0) Lower(RLIMIT_NOFILE, limits.descriptors);
  if (limits.processor_seconds > 0) Lower(RLIMIT_CPU, limits.processor_seconds);
}

void LimitThreadsOfNamespace() {
  utsname system{};
  int major = 0, minor = 0;
  if (uname(&system) != 0 || std::sscanf(system.release, "%d.%d", &major, &minor) != 2) return;
  if (major * 1000 + minor < 5014) return;
  Lower(RLIMIT_NPROC, 4 * static_cast<uint64_t>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN))) + 64);
}

}  // namespace fusion
