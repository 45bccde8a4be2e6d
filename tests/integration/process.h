// Running the built programs as a user does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/folders.h"

namespace fusion::testing {

struct ProcessResult {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

// A program of build/bin that runs beside the test. Killed by the destructor if it still runs. Not thread
// safe.
class Process {
 public:
  // `environment` is added to that of the test; a value "" removes the name. stdin is `input_file`.
  Process(const std::string& program, const std::vector<std::string>& arguments,
          const std::map<std::string, std::string>& environment,
          const std::string& input_file = "/dev/null") {
    const std::string path = testing::BuildFolder() + "/bin/" + program;
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(open(input_file.c_str(), O_RDONLY), STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      for (const auto& [name, value] : environment)
        value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> argv{const_cast<char*>(path.c_str())};
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      execv(path.c_str(), argv.data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    descriptors_[0] = {out[0], POLLIN, 0};
    descriptors_[1] = {err[0], POLLIN, 0};
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    for (const pollfd& descriptor : descriptors_)
      if (descriptor.fd >= 0) close(descriptor.fd);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Reads until stderr holds `marker`, or the output has ended: then false.
  bool WaitForError(const std::string& marker) {
    while (result_.err.find(marker) == std::string::npos)
      if (!ReadSome()) return false;
    return true;
  }
  void Signal(int signal) { kill(pid_, signal); }
  // Reads to the end, and waits for the process.
  ProcessResult Wait() {
    while (ReadSome()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    result_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result_;
  }
  const std::string& err() const { return result_.err; }

 private:
  // False when both pipes have ended.
  bool ReadSome() {
    if (descriptors_[0].fd < 0 && descriptors_[1].fd < 0) return false;
    poll(descriptors_, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (descriptors_[i].fd < 0 || descriptors_[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t size = read(descriptors_[i].fd, buffer, sizeof(buffer));
      if (size > 0) {
        (i == 0 ? result_.out : result_.err).append(buffer, size);
      } else {
        close(descriptors_[i].fd);
        descriptors_[i].fd = -1;
      }
    }
    return true;
  }

  pid_t pid_ = -1;
  pollfd descriptors_[2];
  ProcessResult result_;
};

// fusion-client with a data directory and a configuration of its own, in a folder that goes with this object.
class ClientProgram {
 public:
  ClientProgram() {
    std::string path = (std::filesystem::temp_directory_path() / "fusion-test-XXXXXX").string();
    folder_ = mkdtemp(path.data());
    environment_ = {{"FUSION_DATA_DIR", folder_ + "/data"},
                    {"XDG_CONFIG_HOME", folder_ + "/config"},
                    {"FUSION_SERVER", ""},
                    {"NO_COLOR", "1"}};
  }
  ~ClientProgram() { std::filesystem::remove_all(folder_); }

  ProcessResult Run(const std::vector<std::string>& arguments, const std::string& input = "") {
    return Process("fusion-client", arguments, environment_, Write("stdin", input)).Wait();
  }
  // A file below folder().
  std::string Write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  const std::string& folder() const { return folder_; }
  void SetEnvironment(const std::string& name, const std::string& value) { environment_[name] = value; }
  const std::map<std::string, std::string>& environment() const { return environment_; }

 private:
  std::string folder_;
  std::map<std::string, std::string> environment_;
};

// Returns what stands in `text` after `marker`, up to one of the characters `ends`.
inline std::string WordAfter(const std::string& text, const std::string& marker, const std::string& ends) {
  const size_t begin = text.find(marker) + marker.size();
  return text.substr(begin, text.find_first_of(ends, begin) - begin);
}

// fusion-server with its data in the folder of a client. It listens when it has been made.
class ServerProcess : public Process {
 public:
  // The default address has a free port.
  explicit ServerProcess(const ClientProgram& client, const std::string& address = "127.0.0.1:0",
                         const std::vector<std::string>& more = {})
      : Process("fusion-server", Arguments(client, address, more), client.environment()) {
    EXPECT_TRUE(WaitForError("; data in")) << err();
    address_ = WordAfter(err(), "listening on ", ";");
  }
  const std::string& address() const { return address_; }

 private:
  static std::vector<std::string> Arguments(const ClientProgram& client, const std::string& address,
                                            std::vector<std::string> more) {
    more.insert(more.begin(), {"--listen", address, "--data", client.folder() + "/server"});
    return more;
  }
  std::string address_;
};

}  // namespace fusion::testing
