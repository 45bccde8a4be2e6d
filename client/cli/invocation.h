// All commands share this: the options that all take, exit codes, and how a server is found.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api/client.h"
#include "client/cli/render.h"
#include "client/config/configuration.h"

namespace fusion {

// Exit codes of fusion-client.
enum ExitCode {
  kDone = 0,
  kFailed = 1,
  kBadInput = 2,
  kNotAuthorised = 4,
  kTimeLimit = 124,
  kInterrupted = 130,
};

// InvalidArgument, NotFound and the like are the user's to mend: kBadInput. Cancelled is kInterrupted.
ExitCode ExitCodeOf(const absl::Status& status);
// Returns the exit code for the error of a job: only a bad request is bad input; a missing device is a
// failure.
ExitCode ExitCodeOfJob(const v1::Job& job);

// One run of the program. Commands are registered by the Add...Command functions below; the one that was
// chosen sets `run`. Not thread safe.
struct Invocation : ConnectionOptions {
  bool json = false;  // --json
  std::function<ExitCode()> run;

  // Says the error on stderr, in the form of `json` also on stdout; returns the exit code that belongs to it.
  ExitCode Report(const absl::Status& status) const;
  // Returns the style of text on stdout.
  TextStyle Style() const;
};

// Adds --server, --tls-ca, --tls-cert, --tls-key, --token-file and --json.
void AddCommonOptions(CLI::App* command, Invocation* invocation);

// A client for the address that is configured; without one, embedded with these options.
absl::StatusOr<std::unique_ptr<Client>> OpenClient(const Invocation& invocation,
                                                   EmbeddedOptions options = {});

// Returns a callback for Client::Submit that writes a note to stderr, before the first wait of each kind
// alone.
std::function<void(const absl::Status& reason)> SayOnceWhyItWaits();

// While it lives, SIGINT and SIGTERM interrupt the client instead of ending the process. On the first,
// `on_interrupt` is called in another thread, then Client::Interrupt(). After another signal, or 10 s, the
// process exits with kInterrupted whatever still runs.
class InterruptHandler {
 public:
  InterruptHandler(Client* client, std::function<void()> on_interrupt);
  ~InterruptHandler();
  bool interrupted() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void AddSubmitCommand(CLI::App* app, Invocation* invocation);
void AddCasesCommand(CLI::App* app, Invocation* invocation);
void AddCheckCommand(CLI::App* app, Invocation* invocation);
void AddExplainCommand(CLI::App* app, Invocation* invocation);
void AddJobsCommands(CLI::App* app, Invocation* invocation);
void AddTraceCommand(CLI::App* jobs, Invocation* invocation);  // below `jobs`
void AddFetchCommand(CLI::App* app, Invocation* invocation);
void AddWorkersCommands(CLI::App* app, Invocation* invocation);
void AddTokensCommands(CLI::App* app, Invocation* invocation);
void AddAuditCommands(CLI::App* app, Invocation* invocation);
void AddLibraryCommands(CLI::App* app, Invocation* invocation);
void AddModelCommands(CLI::App* app, Invocation* invocation);
void AddTuneCommands(CLI::App* app, Invocation* invocation);
void AddBackupCommand(CLI::App* app, Invocation* invocation);
void AddDoctorCommand(CLI::App* app, Invocation* invocation);
void AddCompletionCommand(CLI::App* app, Invocation* invocation);

}  // namespace fusion
