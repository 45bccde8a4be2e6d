#include "base/sandbox/confine.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/sandbox/file_access.h"
#include "base/sandbox/privileges.h"
#include "base/sandbox/resource_limits.h"
#include "base/sandbox/system_call_filter.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

absl::Status Failed(const char* what, int error) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(error)));
}

}  // namespace

absl::Status ConfineThisProcess(const SandboxPolicy& policy, const std::string& program) {
  if (policy.use_bubblewrap) LimitThreadsOfNamespace();
  if (const int error = DropPrivileges(); error != 0) return Failed("dropping privileges", error);
  if (policy.use_landlock && LandlockVersion() > 0) {
    SandboxPolicy own = policy;
    own.write.clear();
    FUSION_ASSIGN_OR_RETURN(int rules, LandlockRules(own, program, policy.use_bubblewrap));
    const int error = EnforceLandlockRules(rules);
    close(rules);
    if (error != 0) return Failed("Landlock", error);
  }
  if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0) {
    const int error = InstallFilter(MakeSystemCallFilter(policy.kind, getpid()));
    if (error != 0) return Failed("seccomp", error);
  }
  return absl::OkStatus();
}

}  // namespace fusion
