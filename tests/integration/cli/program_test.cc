#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/integration/cli/program.h"

namespace fusion::testing {
namespace {

constexpr char kClient[] = FUSION_BINARY_DIR "/bin/fusion-client";

void SetUpChild(const std::vector<std::string>& arguments,
                const std::vector<std::pair<std::string, std::string>>& environment) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  unsetenv("FUSION_SERVER");
  for (const auto& [name, value] : environment)
    if (name == "FUSION_SERVER") setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv{const_cast<char*>(kClient)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(kClient, argv.data());
  _exit(127);
}

}  // namespace

Program::Program() {
  std::string path = (std::filesystem::temp_directory_path() / "fusion-cli-XXXXXX").string();
  folder_ = mkdtemp(path.data());
  environment_ = {{"FUSION_DATA_DIR", folder_ + "/data"}, {"XDG_CONFIG_HOME", folder_ + "/config"}};
}

Program::~Program() { std::filesystem::remove_all(folder_); }

void Program::SetEnvironment(const std::string& name, const std::string& value) {
  environment_.emplace_back(name, value);
}

std::string Program::Write(const std::string& name, const std::string& content) {
  const std::filesystem::path path = std::filesystem::path(folder_) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

ProgramResult Program::Run(const std::vector<std::string>& arguments, const std::string& input) {
  return Execute(arguments, input, "");
}

ProgramResult Program::RunAndInterrupt(const std::vector<std::string>& arguments, const std::string& marker) {
  return Execute(arguments, "", marker);
}

ProgramResult Program::Execute(const std::vector<std::string>& arguments, const std::string& input,
                               const std::string& marker) {
  const std::string input_file = Write("stdin", input);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(input_file.c_str(), O_RDONLY), STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    SetUpChild(arguments, environment_);
  }
  close(out[1]);
  close(err[1]);
  ProgramResult result;
  pollfd descriptors[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  bool interrupted = marker.empty();
  for (int open_count = 2; open_count > 0;) {
    poll(descriptors, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (descriptors[i].fd < 0 || descriptors[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t size = read(descriptors[i].fd, buffer, sizeof(buffer));
      if (size > 0) {
        texts[i]->append(buffer, size);
      } else {
        descriptors[i].fd = -1;
        --open_count;
      }
    }
    if (!interrupted && result.err.find(marker) != std::string::npos) {
      interrupted = true;
      kill(child, SIGINT);
    }
  }
  close(out[0]);
  close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace fusion::testing
