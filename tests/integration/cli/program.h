// Running fusion-client as a user does.
#pragma once

#include <string>
#include <vector>

namespace fusion::testing {

struct ProgramResult {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

// Runs build/bin/fusion-client with a data directory and a configuration of its own, stdin from `input`.
class Program {
 public:
  Program();
  ~Program();
  ProgramResult Run(const std::vector<std::string>& arguments, const std::string& input = "");
  // Sends SIGINT once the program has written `marker` to stderr.
  ProgramResult RunAndInterrupt(const std::vector<std::string>& arguments, const std::string& marker);
  // A file below folder().
  std::string Write(const std::string& name, const std::string& content);
  const std::string& folder() const { return folder_; }
  // Set in the environment of later runs.
  void SetEnvironment(const std::string& name, const std::string& value);

 private:
  ProgramResult Execute(const std::vector<std::string>& arguments, const std::string& input, const std::string& marker);
  std::string folder_;
  std::vector<std::pair<std::string, std::string>> environment_;
};

}  // namespace fusion::testing
