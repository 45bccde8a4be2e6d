// Another process of the bench's own program, with which it talks by lines, and what any process has used so
// far.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace fusion {

// A process that the destructor kills if it still runs. Not thread safe.
class ForkedProcess {
 public:
  // Runs this program with other arguments.
  explicit ForkedProcess(const std::vector<std::string>& arguments);
  ~ForkedProcess();
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  // Returns the next line that the process writes, without its end; none: the process has ended.
  std::optional<std::string> ReadLine();
  // Ends the process' standard input, which tells it to stop.
  void CloseInput();
  pid_t id() const { return id_; }

 private:
  pid_t id_ = -1;
  int input_ = -1;
  FILE* output_ = nullptr;
};

// The resources that a process has used since it began.
struct ProcessUsage {
  double user_seconds = 0;
  double system_seconds = 0;
  int64_t context_switches = 0;  // of the threads that it has now
  int64_t write_calls = 0;
  int64_t written_bytes = 0;
};
ProcessUsage UsageOf(pid_t process);
ProcessUsage operator-(const ProcessUsage& after, const ProcessUsage& before);

}  // namespace fusion
