#include "worker/build/host_builder.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/sandbox/child_process.h"
#include "base/sandbox/machine_offer.h"
#include "base/sandbox/resource_limits.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "worker/build/build_options.h"
#include "worker/build/compiler_end.h"

namespace fusion {
namespace {

// A folder of its own below $TMPDIR that is removed at the end.
class PrivateFolder {
 public:
  PrivateFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = absl::StrCat(base != nullptr && *base != '\0' ? base : "/tmp", "/fusion-build-XXXXXX");
    if (mkdtemp(path_.data()) != nullptr) return;
    error_ = strerror(errno);
    error_ = absl::StrCat("cannot make a folder for the build below $TMPDIR (",
                          std::filesystem::path(path_).parent_path().string(), "): ", error_);
    path_.clear();
  }
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }    // "" when it could not be made
  const std::string& error() const { return error_; }  // why not

 private:
  std::string path_, error_;
};

constexpr size_t kMaximumLogBytes = 64 << 10;
// A compiler says last how it ended.
constexpr size_t kEndOfLogBytes = 16 << 10;

struct CommandResult {
  bool timed_out = false;
  ExitStatus status;
  std::string log;  // the first kMaximumLogBytes of stdout and stderr
  std::string end;  // at least the last kEndOfLogBytes of what came behind them
};

absl::StatusOr<CommandResult> RunCommand(const ChildProcess::Options& options, MonotonicTime deadline,
                                         std::stop_token stop) {
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child, ChildProcess::Start(options));
  CommandResult result;
  char chunk[4096];
  const auto given_up = [&] { return stop.stop_requested() || std::chrono::steady_clock::now() >= deadline; };
  while (!given_up()) {
    pollfd waiting{child->output(), POLLIN, 0};
    if (poll(&waiting, 1, 20) <= 0) continue;
    const ssize_t count = read(child->output(), chunk, sizeof chunk);
    if (count <= 0) break;
    const size_t taken = std::min<size_t>(count, kMaximumLogBytes - result.log.size());
    result.log.append(chunk, taken);
    result.end.append(chunk + taken, count - taken);
    if (result.end.size() > 2 * kEndOfLogBytes) result.end.erase(0, result.end.size() - kEndOfLogBytes);
  }
  while (!given_up()) {
    if (auto status = child->Wait(
            std::min(deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(50)))) {
      result.status = *status;
      return result;
    }
  }
  child->Kill();
  result.timed_out = true;
  return result;
}

// Returns whether all of the content was written.
bool WriteFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  return file.good();
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return file ? std::move(content).str() : "";
}

// Nothing of this process' environment but where the compiler is; a cache of compilations is outside.
std::vector<std::string> CompilerEnvironment(const std::string& folder) {
  std::vector<std::string> environment = {"LANG=C.UTF-8", "CCACHE_DISABLE=1", absl::StrCat("TMPDIR=", folder),
                                          absl::StrCat("HOME=", folder)};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH"})
    if (const char* value = std::getenv(name); value != nullptr)
      environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

// The system's folders are always readable; compilers elsewhere are installed as PREFIX/bin, PREFIX/lib...
std::vector<std::string> FoldersOf(const std::vector<std::string>& command) {
  std::vector<std::string> folders;
  for (const std::string& word : command) {
    std::error_code error;
    const std::string program = FindProgram(word);
    if (program.empty()) continue;
    for (const std::filesystem::path& path :
         {std::filesystem::absolute(program, error), std::filesystem::canonical(program, error)}) {
      const std::filesystem::path prefix = path.parent_path().parent_path();
      if (prefix != "/" && !prefix.empty() && !absl::StartsWith(prefix.string(), "/usr"))
        folders.push_back(prefix.string());
    }
  }
  return folders;
}

// The strongest confinement in which the compiler works: bubblewrap may have other rules than we know of.
SandboxPolicy WorkingPolicy(const std::vector<std::string>& compiler) {
  SandboxPolicy policy;
  policy.kind = SandboxKind::kHostCompiler;
  policy.read = FoldersOf(compiler);
  const MonotonicTime deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (const auto& [bubblewrap, landlock] : {std::pair(true, true), {false, true}, {false, false}}) {
    policy.use_bubblewrap = bubblewrap;
    policy.use_landlock = landlock;
    ChildProcess::Options options;
    options.command = compiler;
    for (const char* option : {"-x", "c++", "-fsyntax-only", "/dev/null"}) options.command.push_back(option);
    options.environment = CompilerEnvironment("/tmp");
    options.policy = policy;
    options.merge_error = true;
    const absl::StatusOr<CommandResult> result = RunCommand(options, deadline, {});
    if (result.ok() && !result->timed_out && result->status.ok()) break;
  }
  return policy;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Builder>> HostBuilder::Create() {
  std::vector<std::string> candidates = {"g++", "c++", "clang++"};
  if (const char* wanted = std::getenv("CXX"); wanted != nullptr && *wanted != '\0') candidates = {wanted};
  for (const std::string& candidate : candidates) {
    const std::vector<std::string> command = absl::StrSplit(candidate, ' ', absl::SkipEmpty());
    if (command.empty()) continue;
    ChildProcess::Options options;
    options.command = command;
    options.command.push_back("--version");
    options.merge_error = true;
    absl::StatusOr<CommandResult> result =
        RunCommand(options, std::chrono::steady_clock::now() + std::chrono::seconds(20), {});
    if (!result.ok() || result->timed_out || !result->status.ok()) continue;
    return std::unique_ptr<Builder>(
        new HostBuilder(command, result->log.substr(0, result->log.find('\n')), WorkingPolicy(command)));
  }
  return absl::NotFoundError(
      absl::StrCat("no C++ compiler (install g++, or set CXX); tried ", absl::StrJoin(candidates, ", ")));
}

std::string HostBuilder::Confinement() const { return ConfinementText(policy_, MachineOffer::Get()); }

BuildOutput HostBuilder::Build(const v1::BuildTask& task, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  const double limit = task.deadline_seconds() > 0 ? task.deadline_seconds() : kDefaultBuildDeadlineSeconds;
  BuildOutput output;
  auto finish = [&](v1::Outcome outcome, std::string log) {
    output.result.set_outcome(outcome);
    output.result.set_log(std::move(log));
    output.result.set_seconds(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return output;
  };
  // Reports a failure of this machine, not of the source.
  auto fail = [&](std::string why) { return finish(v1::OUTCOME_UNSPECIFIED, std::move(why)); };
  if (IsNativeArch(task.arch()) && !task.arch().empty() && task.arch() != HostArch())
    return fail(absl::StrCat("code for ", task.arch(), " is built on such machines alone, and this one is ",
                             HostArch()));
  if (const absl::Status allowed = CheckBuildOptions(task); !allowed.ok())
    return finish(v1::COMPILE_ERROR, std::string(allowed.message()));
  PrivateFolder folder;
  if (folder.path().empty()) return fail(folder.error());
  if (!WriteFile(folder.path() + "/fused.cc", task.source()))
    return fail(absl::StrCat("cannot write the source into ", folder.path(), ": is there room on the disk?"));

  ChildProcess::Options options;
  options.command = compiler_;
  // -fno-math-errno and -fno-trapping-math let loops with sqrt and comparisons vectorize; they change no
  // result. -ffp-contract=off: multiply-adds are those that the source writes. -fno-gnu-unique: a shared
  // object must really go when it is closed.
  for (const char* option : {"-x", "c++", "-O3", "-std=c++17", "-fopenmp", "-fno-math-errno",
                             "-fno-trapping-math", "-ffp-contract=off", "-shared", "-fPIC"})
    options.command.push_back(option);
  options.command.push_back(HostArchOption(task.arch()));
  if (version_.find("clang") == std::string::npos) options.command.push_back("-fno-gnu-unique");
  options.command.insert(options.command.end(), task.options().begin(), task.options().end());
  for (const char* option : {"-o", "fused.so", "fused.cc"}) options.command.push_back(option);
  options.directory = folder.path();
  options.merge_error = true;
  options.environment = CompilerEnvironment(folder.path());
  options.policy = policy_;
  options.policy->write = {folder.path()};
  const auto deadline = start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                    std::chrono::duration<double>(limit));
  absl::StatusOr<CommandResult> result = RunCommand(options, deadline, stop);
  if (!result.ok()) return fail(std::string(result.status().message()));
  if (result->timed_out)
    return finish(v1::TIMEOUT, absl::StrCat("compilation was given up after ", limit, " s\n", result->log));
  if (!result->status.ok()) {
    const bool lacks_memory =
        MachineLacksMemory(LimitsOf(policy_.kind).address_space_bytes, MemoryOfThisMachine());
    if (const std::string fault = MachineFault(result->status, result->log + result->end, lacks_memory);
        !fault.empty()) {
      // At the limit of processor time a process is killed with the signal that is also for want of memory.
      const uint64_t most = LimitsOf(policy_.kind).processor_seconds;
      if (std::chrono::steady_clock::now() - start >= std::chrono::seconds(most))
        return finish(v1::TIMEOUT, absl::StrCat("compilation took more than ", most,
                                                " s of a processor: ", fault, "\n", result->log));
      return fail(fault);
    }
    return finish(v1::COMPILE_ERROR, result->log.empty()
                                         ? absl::StrCat("the compiler ", result->status.ToString())
                                         : result->log);
  }
  output.binary = ReadFile(folder.path() + "/fused.so");
  if (output.binary.empty()) return fail("the compiler said that all was well and left no shared object");
  output.result.set_binary(absl::StrCat("sha256:", Sha256Hex(output.binary)));
  return finish(v1::OK, result->log);
}

}  // namespace fusion
