// The processes that a test has started.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace fusion {

// Returns the processes that a process, "self" or a number, has started and not waited for.
inline std::set<pid_t> ChildrenOf(const std::string& process = "self") {
  std::set<pid_t> children;
  std::error_code ended;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + process + "/task", ended)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child = 0; file >> child;) children.insert(child);
  }
  return children;
}

// Returns true when the process has ended, whether or not its parent knows.
inline bool HasEnded(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string before_state, state;
  std::getline(file, before_state, ')');
  return !(file >> state) || state == "Z";
}

}  // namespace fusion
