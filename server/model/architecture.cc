#include "server/model/architecture.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

constexpr char kPrefix[] = "sm_";
// As workers describe hosts.
constexpr size_t kLongestArch = 64;
constexpr const char* kHostArchs[] = {"x86-64", "x86-64-avx2", "x86-64-avx512", "aarch64"};

struct CudaArchitecture {
  int version;  // 10 * major + minor
  // Limits of the architecture.
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int64_t shared_bytes_per_block;  // the opt-in limit
  int64_t shared_bytes_per_multiprocessor;
  // A card.
  const char* card;
  int multiprocessors;
  int64_t l2_bytes;
  int64_t memory_bytes;
  double copy_bytes_per_second;  // 90 % of the memory's rate
  double peak_flops;
};

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

constexpr CudaArchitecture kArchitectures[] = {
    {75, 1024, 16, 64 * kKiB, 64 * kKiB, "T4", 40, 4 * kMiB, 16 * kGiB, 288e9, 8.1e12},
    {80, 2048, 32, 163 * kKiB, 164 * kKiB, "A100", 108, 40 * kMiB, 80 * kGiB, 1835e9, 19.5e12},
    {86, 1536, 16, 99 * kKiB, 100 * kKiB, "A10", 72, 6 * kMiB, 24 * kGiB, 540e9, 31.2e12},
    {89, 1536, 24, 99 * kKiB, 100 * kKiB, "L40S", 142, 96 * kMiB, 48 * kGiB, 778e9, 91.6e12},
    {90, 2048, 32, 227 * kKiB, 228 * kKiB, "H100", 132, 50 * kMiB, 80 * kGiB, 3000e9, 66.9e12},
    {100, 2048, 32, 227 * kKiB, 228 * kKiB, "B200", 148, 126 * kMiB, 180 * kGiB, 7200e9, 75e12},
    {120, 1536, 24, 99 * kKiB, 100 * kKiB, "RTX 5090", 170, 96 * kMiB, 32 * kGiB, 1613e9, 104.8e12},
};

std::string ArchName(int version) { return absl::StrCat(kPrefix, version); }

absl::Status NoArch(v1::Target target, const std::string& arch) {
  const std::string cuda = absl::StrJoin(KnownCudaArchs(), ", ");
  const std::string host = absl::StrJoin(kHostArchs, ", ");
  // What is no name of anything is not repeated: it may hold anything.
  const bool printable =
      arch.size() <= kLongestArch && std::all_of(arch.begin(), arch.end(), absl::ascii_isgraph);
  const std::string given = printable ? absl::StrCat(", not '", arch, "'") : "";
  if (target == v1::CUDA) return absl::InvalidArgumentError(absl::StrCat("must be one of ", cuda, given));
  if (target == v1::HOST)
    return absl::InvalidArgumentError(absl::StrCat("must be one of ", host, " (host)", given));
  return absl::InvalidArgumentError(
      absl::StrCat("must be one of ", cuda, ", or of ", host, " (host)", given));
}

// 10 * major + minor, and the letter behind it or 0. False when the name is not of the form sm_90 or sm_90a.
bool ParseCudaArch(absl::string_view name, int* version, char* letter) {
  if (!absl::ConsumePrefix(&name, kPrefix)) return false;
  *letter = 0;
  if (absl::EndsWith(name, "a") || absl::EndsWith(name, "f")) {
    *letter = name.back();
    name.remove_suffix(1);
  }
  const bool digits =
      (name.size() == 2 || name.size() == 3) && std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
  return digits && name[0] != '0' && absl::SimpleAtoi(name, version);
}

}  // namespace

std::vector<std::string> KnownCudaArchs() {
  std::vector<std::string> names;
  for (const CudaArchitecture& architecture : kArchitectures) names.push_back(ArchName(architecture.version));
  return names;
}

bool IsCudaArch(const std::string& arch) {
  int version = 0;
  char letter = 0;
  return ParseCudaArch(arch, &version, &letter);
}

absl::StatusOr<ArchChoice> ChooseArch(v1::Target target, const std::string& arch) {
  if (arch.empty()) return ArchChoice{};
  // Kinds of Arm processors have names that go on behind the last: aarch64-41-d4f-5c1d2a90.
  const bool host = std::find(std::begin(kHostArchs), std::end(kHostArchs), arch) != std::end(kHostArchs) ||
                    (absl::StartsWith(arch, "aarch64-") && arch.size() <= kLongestArch &&
                     std::all_of(arch.begin(), arch.end(), absl::ascii_isgraph));
  if (host && target != v1::CUDA) return ArchChoice{arch, ""};
  int version = 0;
  char letter = 0;
  if (target == v1::HOST || !ParseCudaArch(arch, &version, &letter)) return NoArch(target, arch);

  const CudaArchitecture* nearest = nullptr;
  for (const CudaArchitecture& architecture : kArchitectures)
    if (architecture.version <= version) nearest = &architecture;
  if (nearest == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(arch, " is older than ",
                                                   ArchName(kArchitectures[0].version),
                                                   ", the oldest architecture that code is made for"));
  ArchChoice choice{ArchName(nearest->version), ""};
  if (nearest->version != version)
    choice.warning =
        absl::StrCat("architecture ", arch, " is not known; taking the nearest older one, ", choice.arch);
  else if (letter != 0)
    choice.warning = absl::StrCat("taking ", choice.arch, " for ", arch,
                                  ": no code is made for the features of one architecture alone");
  return choice;
}

DeviceDescription DescribedCudaDevice(const std::string& known_arch) {
  for (const CudaArchitecture& architecture : kArchitectures) {
    if (ArchName(architecture.version) != known_arch) continue;
    DeviceDescription device = DescribedDevice(v1::CUDA);
    device.set_name(absl::StrCat(architecture.card, " (described, not measured)"));
    device.set_arch(known_arch);
    device.set_multiprocessors(architecture.multiprocessors);
    device.set_max_threads_per_multiprocessor(architecture.threads_per_multiprocessor);
    device.set_max_blocks_per_multiprocessor(architecture.blocks_per_multiprocessor);
    device.set_shared_bytes_per_block(architecture.shared_bytes_per_block);
    device.set_shared_bytes_per_multiprocessor(architecture.shared_bytes_per_multiprocessor);
    device.set_l2_bytes(architecture.l2_bytes);
    device.set_memory_bytes(architecture.memory_bytes);
    device.set_copy_bytes_per_second(architecture.copy_bytes_per_second);
    device.set_peak_flops(architecture.peak_flops);
    return device;
  }
  std::abort();  // not a known architecture: a bug of the caller
}

double F32OverF64(int compute_capability) {
  switch (compute_capability) {
    case 60:
    case 70:
    case 80:
    case 90:
    case 100:
      return 2;
    case 75:
      return 32;
    default:
      return 64;
  }
}

int ComputeCapability(const DeviceDescription& device) {
  int capability = 0;
  if (device.target() == v1::CUDA)
    for (char c : device.arch())
      if (absl::ascii_isdigit(static_cast<unsigned char>(c))) capability = 10 * capability + (c - '0');
  return capability;
}

}  // namespace fusion
