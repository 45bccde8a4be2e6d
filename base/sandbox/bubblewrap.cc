#include "base/sandbox/bubblewrap.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

// Where the program's own libraries may be: the lib folder of a package (deploy/package.sh).
std::string PackageLibraries(const std::string& program) {
  if (absl::StartsWith(program, "/usr/")) return "";
  const std::filesystem::path folder = std::filesystem::path(program).parent_path().parent_path() / "lib";
  std::error_code error;
  return std::filesystem::is_directory(folder, error) ? folder.string() : "";
}

}  // namespace

std::vector<std::string> BubblewrapCommand(const std::string& bubblewrap, const SandboxPolicy& policy,
                                           const std::vector<std::string>& command,
                                           const std::string& directory, int filter_descriptor) {
  // No session of its own: Spawn has made one, and what left its group would outlive a bubblewrap that is
  // killed in the milliseconds before --die-with-parent is in force.
  std::vector<std::string> arguments = {bubblewrap,
                                        "--unshare-user",
                                        "--unshare-pid",
                                        "--unshare-ipc",
                                        "--unshare-uts",
                                        "--unshare-net",
                                        "--unshare-cgroup-try",
                                        "--die-with-parent",
                                        "--cap-drop",
                                        "ALL",
                                        "--size",
                                        absl::StrCat(kPrivateFolderBytes),
                                        "--tmpfs",
                                        "/tmp"};
  auto add = [&](std::initializer_list<std::string> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  auto bind = [&](const char* how, const std::string& path) { add({how, path, path}); };
  // Proc of the new process namespace: nobody else's processes are in it.
  if (policy.kind == SandboxKind::kHostCode || policy.kind == SandboxKind::kDeviceCode) {
    add({"--proc", "/proc"});
  } else {
    for (const std::string& file : ReadableProcessFiles(policy)) bind("--ro-bind", file);
  }
  // A folder before what is in it: in alphabetical order.
  std::error_code error;
  for (const std::string& place : ReadablePlaces(policy)) {
    const std::filesystem::path path(place);
    if (path.parent_path() == "/" && std::filesystem::is_symlink(path, error)) {
      add({"--symlink", std::filesystem::read_symlink(path, error).string(), place});
    } else {
      bind("--ro-bind", place);
    }
  }
  add({"--size", "65536", "--tmpfs", "/dev"});
  for (const std::string& node : DeviceNodes(policy)) bind("--dev-bind", node);
  add({"--remount-ro", "/dev"});
  bind("--ro-bind", command.at(0));
  if (const std::string libraries = PackageLibraries(command[0]); !libraries.empty())
    bind("--ro-bind", libraries);
  for (const std::string& folder : policy.write) bind("--bind", folder);
  add({"--remount-ro", "/", "--chdir", directory.empty() ? "/" : directory});
  if (filter_descriptor >= 0) add({"--seccomp", absl::StrCat(filter_descriptor)});
  add({"--"});
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

}  // namespace fusion
