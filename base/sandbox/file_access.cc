#include "base/sandbox/file_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

// linux/landlock.h of later kernels than the headers of Debian 12.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kVersionFlag = 1;
constexpr int kPathBeneath = 1;
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3,
                   kTruncate = 1 << 14, kControlDevice = 1 << 15;
constexpr uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kControlDevice;

struct Ruleset {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scoped = 0;
};

struct __attribute__((packed)) PathRule {
  uint64_t allowed = 0;
  int32_t parent = -1;
};

// All accesses to files that a version knows: what is not granted below is denied.
Ruleset Handled(int version) {
  Ruleset ruleset;
  ruleset.files = (uint64_t{1} << 13) - 1;
  if (version >= 2) ruleset.files |= 1 << 13;  // linking and renaming between folders
  if (version >= 3) ruleset.files |= kTruncate;
  if (version >= 4) ruleset.network = 3;  // binding and connecting TCP
  if (version >= 5) ruleset.files |= kControlDevice;
  if (version >= 6) ruleset.scoped = 3;  // abstract sockets, signals
  return ruleset;
}

size_t SizeOfRuleset(int version) { return version >= 6 ? 24 : version >= 4 ? 16 : 8; }

// A path that does not exist needs no rule.
absl::Status Allow(int rules, const std::string& path, uint64_t access) {
  PathRule rule;
  rule.parent = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (rule.parent < 0) return absl::OkStatus();
  struct stat info {};
  if (fstat(rule.parent, &info) == 0 && !S_ISDIR(info.st_mode)) access &= kOfFiles;
  rule.allowed = access;
  const long added = syscall(kAddRule, rules, kPathBeneath, &rule, 0);
  const int error = errno;
  close(rule.parent);
  if (added == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("Landlock rule for ", path, ": ", std::strerror(error)));
}

}  // namespace

int LandlockVersion() {
  const long version = syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
  return version > 0 ? static_cast<int>(version) : 0;
}

absl::StatusOr<int> LandlockRules(const SandboxPolicy& policy, const std::string& program,
                                  bool private_temporary_folder) {
  const int version = LandlockVersion();
  if (version == 0) return absl::UnavailableError("this kernel has no Landlock");
  const Ruleset handled = Handled(version);
  const int rules = static_cast<int>(syscall(kCreateRuleset, &handled, SizeOfRuleset(version), 0));
  if (rules < 0) return absl::InternalError(absl::StrCat("Landlock: ", std::strerror(errno)));

  uint64_t read = kReadFile | kReadFolder;
  if (policy.kind == SandboxKind::kHostCompiler) read |= kExecute;
  absl::Status status = Allow(rules, program, read);
  for (const std::string& place : ReadablePlaces(policy)) status.Update(Allow(rules, place, read));
  for (const std::string& file : ReadableProcessFiles(policy))
    status.Update(Allow(rules, file, kReadFile | kReadFolder));
  // CUDA's driver writes the names of its threads there, and does not start where it cannot (driver 580,
  // H100: cuInit gives CUDA_ERROR_OPERATING_SYSTEM).
  if (policy.kind == SandboxKind::kDeviceCode)
    status.Update(Allow(rules, "/proc/self/task", (read | kWriteFile | kTruncate) & handled.files));
  for (const std::string& node : DeviceNodes(policy))
    status.Update(
        Allow(rules, node, (kReadFile | kWriteFile | kControlDevice | kReadFolder) & handled.files));
  // Everything but programs: what is written is never started.
  for (const std::string& folder : policy.write)
    status.Update(Allow(rules, folder, handled.files & ~kExecute));
  if (private_temporary_folder) status.Update(Allow(rules, "/tmp", handled.files & ~kExecute));
  if (status.ok()) return rules;
  close(rules);
  return status;
}

int EnforceLandlockRules(int rules) { return syscall(kRestrictSelf, rules, 0) == 0 ? 0 : errno; }

}  // namespace fusion
