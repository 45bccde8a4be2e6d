// Compiling an exported folder by itself, as its README says, and running its example.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace fusion::testing {

struct CommandResult {
  int exit_code = -1;  // -1: ended by a signal, or not started
  std::string output;  // stdout and stderr
};

// Runs a shell command to its end.
inline CommandResult RunCommand(const std::string& command) {
  CommandResult result;
  FILE* pipe = popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  while (const size_t size = fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), size);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

// The folder's program `example`, from its three sources and nothing else. Optimised less than the README
// says: the code must be correct at any level, and compiles sooner.
inline CommandResult CompileHostFolder(const std::string& folder) {
  return RunCommand("cd '" + folder +
                    "' && g++ -O1 -fopenmp -std=c++17 fused.cc example.cc reference.cc -o example");
}

// Exit code 0: the example has verified every output against the reference. arguments: "m=131 n=517".
inline CommandResult RunExample(const std::string& folder, const std::string& arguments) {
  return RunCommand("cd '" + folder + "' && OMP_NUM_THREADS=2 ./example " + arguments);
}

}  // namespace fusion::testing
