#include "server/target/cuda/cuda_target.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/target/profile.h"

namespace fusion {
namespace {

using Architecture = v1::TargetProfile::Architecture;

constexpr char kPrefix[] = "sm_";
// An architecture that the profile does not describe has this ratio, as most have.
constexpr double kF32OverF64 = 64;

// 10 * major + minor, and the letter behind it or 0. False when the name is not of the form sm_90 or sm_90a.
bool ParseArch(absl::string_view name, int* version, char* letter) {
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

// 90 for "sm_90" and "sm_90a"; 0 for what is no name of an architecture.
int ComputeCapability(const std::string& arch) {
  int version = 0;
  char letter = 0;
  return ParseArch(arch, &version, &letter) ? version : 0;
}

class Cuda final : public Target {
 public:
  Cuda() : Target(ProfileNamed("cuda")) {}

  bool simt() const override { return true; }
  bool exports_binaries() const override { return true; }
  const char* suffix() const override { return "cu"; }
  std::string Print(const ir::Kernel& kernel) const override { return PrintCuda(kernel); }
  const ExportedCode& exported() const override { return CudaExportedCode(); }

  DeviceFeatures Features(const DeviceDescription& device) const override {
    const int version = ComputeCapability(device.arch());
    double f32_over_f64 = kF32OverF64;
    for (const Architecture& architecture : profile().architectures())
      if (architecture.device().arch() == absl::StrCat(kPrefix, version))
        f32_over_f64 = architecture.f32_over_f64();
    return {.asynchronous_copies = version >= 80,
            .bulk_copies = version >= 90,
            .clusters = version >= 90,
            .overlapping_launches = version >= 90,
            .kept_lines = version >= 80,
            .f64_matrix_units = version >= 80 && f32_over_f64 == 2,
            .f32_over_f64 = f32_over_f64};
  }

  absl::StatusOr<std::optional<ArchChoice>> FindArch(const std::string& arch) const override {
    int version = 0;
    char letter = 0;
    if (!ParseArch(arch, &version, &letter)) return std::nullopt;
    const Architecture* nearest = nullptr;
    for (const Architecture& architecture : profile().architectures())
      if (ComputeCapability(architecture.device().arch()) <= version) nearest = &architecture;
    if (nearest == nullptr)
      return absl::InvalidArgumentError(absl::StrCat(arch, " is older than ",
                                                     profile().architectures(0).device().arch(),
                                                     ", the oldest architecture that code is made for"));
    ArchChoice choice{nearest->device().arch(), ""};
    if (ComputeCapability(choice.arch) != version)
      choice.warning =
          absl::StrCat("architecture ", arch, " is not known; taking the nearest older one, ", choice.arch);
    else if (letter != 0)
      choice.warning = absl::StrCat("taking ", choice.arch, " for ", arch,
                                    ": no code is made for the features of one architecture alone");
    return choice;
  }

  std::string ArchsText() const override {
    return absl::StrJoin(profile().architectures(), ", ",
                         [](std::string* out, const Architecture& architecture) {
                           absl::StrAppend(out, architecture.device().arch());
                         });
  }
};

}  // namespace

const Target& CudaTarget() {
  static const Cuda* const target = new Cuda();
  return *target;
}

}  // namespace fusion
