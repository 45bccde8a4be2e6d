#include "base/sandbox/policy.h"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

constexpr SandboxKind kKinds[] = {SandboxKind::kHostCode, SandboxKind::kDeviceCode,
                                  SandboxKind::kDeviceCompiler, SandboxKind::kHostCompiler};

std::vector<std::string> Glob(const char* pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern, 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

// Folders that the loader searches because the system says so: drivers of containers are often there.
std::vector<std::string> LoaderFolders() {
  std::vector<std::string> folders;
  for (const std::string& path : Glob("/etc/ld.so.conf.d/*.conf")) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      if (absl::StartsWith(line, "/")) folders.emplace_back(absl::StripAsciiWhitespace(line));
  }
  return folders;
}

// The nodes of one GPU by what the driver says about each ("GPU UUID:", "Device Minor:"), or of all.
std::vector<std::string> GpuNodes(const std::string& uuid) {
  for (const std::string& path : Glob("/proc/driver/nvidia/gpus/*/information")) {
    std::ifstream file(path);
    std::string found_uuid, minor;
    for (std::string line; std::getline(file, line);) {
      const std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
      if (field.first == "GPU UUID") found_uuid = std::string(absl::StripAsciiWhitespace(field.second));
      if (field.first == "Device Minor") minor = std::string(absl::StripAsciiWhitespace(field.second));
    }
    const std::string node = absl::StrCat("/dev/nvidia", minor);
    if (!uuid.empty() && found_uuid == uuid && !minor.empty() && access(node.c_str(), F_OK) == 0)
      return {node};
  }
  return Glob("/dev/nvidia[0-9]*");
}

std::vector<std::string> Existing(const std::set<std::string>& wanted) {
  std::vector<std::string> existing;
  for (const std::string& path : wanted)
    if (absl::StartsWith(path, "/") && path.size() > 1 && access(path.c_str(), F_OK) == 0)
      existing.push_back(path);
  return existing;
}

}  // namespace

const char* SandboxKindName(SandboxKind kind) {
  switch (kind) {
    case SandboxKind::kHostCode:
      return "host-code";
    case SandboxKind::kDeviceCode:
      return "device-code";
    case SandboxKind::kDeviceCompiler:
      return "device-compiler";
    case SandboxKind::kHostCompiler:
      return "host-compiler";
  }
  return "";
}

std::vector<std::string> PolicyArguments(const SandboxPolicy& policy) {
  std::vector<std::string> arguments = {absl::StrCat("--kind=", SandboxKindName(policy.kind))};
  for (const std::string& path : policy.read) arguments.push_back(absl::StrCat("--read=", path));
  if (!policy.device_uuid.empty()) arguments.push_back(absl::StrCat("--device=", policy.device_uuid));
  if (policy.use_bubblewrap) arguments.push_back("--in-bubblewrap");
  if (!policy.use_landlock) arguments.push_back("--without-landlock");
  return arguments;
}

absl::StatusOr<SandboxPolicy> PolicyFromArguments(const std::vector<std::string>& arguments) {
  SandboxPolicy policy;
  policy.use_bubblewrap = false;
  bool has_kind = false;
  for (const std::string& argument : arguments) {
    absl::string_view value = argument;
    if (absl::ConsumePrefix(&value, "--read=")) {
      policy.read.emplace_back(value);
    } else if (absl::ConsumePrefix(&value, "--device=")) {
      policy.device_uuid = std::string(value);
    } else if (absl::ConsumePrefix(&value, "--kind=")) {
      for (SandboxKind kind : kKinds) {
        if (value != SandboxKindName(kind)) continue;
        policy.kind = kind;
        has_kind = true;
      }
    } else if (value == "--in-bubblewrap") {
      policy.use_bubblewrap = true;
    } else if (value == "--without-landlock") {
      policy.use_landlock = false;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown argument ", argument));
    }
  }
  if (!has_kind) return absl::InvalidArgumentError("no --kind=, or one that is not known");
  return policy;
}

std::vector<std::string> ReadablePlaces(const SandboxPolicy& policy) {
  std::set<std::string> places = {"/lib",
                                  "/lib32",
                                  "/lib64",
                                  "/libx32",
                                  "/usr/lib",
                                  "/usr/lib32",
                                  "/usr/lib64",
                                  "/usr/libx32",
                                  "/etc/ld.so.cache",
                                  "/etc/ld.so.conf",
                                  "/etc/ld.so.conf.d",
                                  "/sys/devices/system"};
  const bool compiles = policy.kind == SandboxKind::kDeviceCompiler;
  if (!compiles) places.insert({"/usr", "/bin", "/sbin", "/etc/alternatives"});
  if (policy.kind == SandboxKind::kHostCode) places.insert("/sys/kernel/mm");
  if (policy.kind == SandboxKind::kDeviceCode)
    places.insert({"/sys", "/run/nvidia", "/run/opengl-driver", "/opt/cuda", "/etc/nvidia", "/etc/OpenCL"});
  for (const std::string& folder : LoaderFolders()) places.insert(folder);
  if (const char* path = std::getenv("LD_LIBRARY_PATH"); path != nullptr)
    for (absl::string_view folder : absl::StrSplit(path, ':')) places.emplace(folder);
  places.insert(policy.read.begin(), policy.read.end());
  std::vector<std::string> outer;
  for (std::string& place : Existing(places))
    if (std::none_of(outer.begin(), outer.end(), [&](const std::string& folder) {
          return absl::StartsWith(place, absl::StrCat(folder, "/"));
        }))
      outer.push_back(std::move(place));
  return outer;
}

std::vector<std::string> ReadableProcessFiles(const SandboxPolicy& policy) {
  std::set<std::string> files = {"/proc/cpuinfo"};
  if (policy.kind == SandboxKind::kHostCode || policy.kind == SandboxKind::kDeviceCode)
    files.insert({"/proc/self", "/proc/meminfo", "/proc/stat", "/proc/sys/kernel/osrelease", "/proc/sys/vm"});
  if (policy.kind == SandboxKind::kDeviceCode)
    files.insert({"/proc/devices", "/proc/driver", "/proc/modules", "/proc/filesystems", "/proc/mounts",
                  "/proc/version", "/proc/sys/kernel"});
  return Existing(files);
}

std::vector<std::string> DeviceNodes(const SandboxPolicy& policy) {
  std::set<std::string> nodes = {"/dev/null"};
  if (policy.kind == SandboxKind::kHostCode || policy.kind == SandboxKind::kDeviceCode)
    nodes.insert({"/dev/full", "/dev/random", "/dev/urandom"});
  // Mapping /dev/zero gives shared memory, which no limit counts: not for code of candidates on the host.
  if (policy.kind == SandboxKind::kDeviceCode) {
    nodes.insert({"/dev/zero", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                  "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels", "/dev/dxg"});
    for (const std::string& node : GpuNodes(policy.device_uuid)) nodes.insert(node);
  }
  return Existing(nodes);
}

}  // namespace fusion
