#include "tests/bench/dispatch/forked_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fusion {

ForkedProcess::ForkedProcess(const std::vector<std::string>& arguments) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) std::abort();
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  id_ = fork();
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  input_ = in[1];
  output_ = fdopen(out[0], "r");
}

ForkedProcess::~ForkedProcess() {
  CloseInput();
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
  fclose(output_);
}

std::optional<std::string> ForkedProcess::ReadLine() {
  std::string line;
  for (int byte = std::getc(output_); byte != EOF; byte = std::getc(output_)) {
    if (byte == '\n') return line;
    line.push_back(static_cast<char>(byte));
  }
  return std::nullopt;
}

void ForkedProcess::CloseInput() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

ProcessUsage UsageOf(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  ProcessUsage usage;
  std::stringstream stat;
  stat << std::ifstream(folder + "/stat").rdbuf();
  // The name, in parentheses, may have spaces; twelve fields stand between it and the ticks.
  std::istringstream fields(stat.str().substr(stat.str().rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  usage.user_seconds = user / static_cast<double>(sysconf(_SC_CLK_TCK));
  usage.system_seconds = system / static_cast<double>(sysconf(_SC_CLK_TCK));
  std::ifstream io(folder + "/io");
  std::string name;
  for (int64_t value = 0; io >> name >> value;) {
    if (name == "syscw:") usage.write_calls = value;
    if (name == "write_bytes:") usage.written_bytes = value;
  }
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator(folder + "/task", ignored)) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.find("ctxt_switches:") != std::string::npos)
        usage.context_switches += std::atoll(line.c_str() + line.find(':') + 1);
  }
  return usage;
}

ProcessUsage operator-(const ProcessUsage& after, const ProcessUsage& before) {
  return {after.user_seconds - before.user_seconds, after.system_seconds - before.system_seconds,
          after.context_switches - before.context_switches, after.write_calls - before.write_calls,
          after.written_bytes - before.written_bytes};
}

}  // namespace fusion
