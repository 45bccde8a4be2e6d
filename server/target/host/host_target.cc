#include "server/target/host/host_target.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/target/profile.h"

namespace fusion {
namespace {

// Workers describe hosts by these names: what -march=native gives.
constexpr const char* kArchs[] = {"x86-64", "x86-64-avx2", "x86-64-avx512", "aarch64"};

class Host final : public Target {
 public:
  Host() : Target(ProfileNamed("host")) {}

  bool simt() const override { return false; }
  bool exports_binaries() const override { return false; }
  const char* suffix() const override { return "cc"; }
  std::string Print(const ir::Kernel& kernel) const override { return PrintHost(kernel); }
  const ExportedCode& exported() const override { return HostExportedCode(); }
  DeviceFeatures Features(const DeviceDescription&) const override { return {}; }

  absl::StatusOr<std::optional<ArchChoice>> FindArch(const std::string& arch) const override {
    // Kinds of Arm processors have names that go on behind the last: aarch64-41-d4f-5c1d2a90.
    const bool known = std::find(std::begin(kArchs), std::end(kArchs), arch) != std::end(kArchs) ||
                       (absl::StartsWith(arch, "aarch64-") && arch.size() <= kLongestArch &&
                        std::all_of(arch.begin(), arch.end(), absl::ascii_isgraph));
    if (!known) return std::nullopt;
    return ArchChoice{arch, ""};
  }
  std::string ArchsText() const override { return absl::StrCat(absl::StrJoin(kArchs, ", "), " (host)"); }
};

}  // namespace

const Target& HostTarget() {
  static const Host* const target = new Host();
  return *target;
}

}  // namespace fusion
