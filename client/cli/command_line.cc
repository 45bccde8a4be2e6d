#include "client/cli/command_line.h"

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/invocation.h"
#include "server/parse/similar_name.h"

namespace fusion {
namespace {

// The innermost command that was given.
CLI::App* Innermost(CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

// "there is no command submitt (did you mean submit?)", or "" when the command was there.
std::string CommandError(CLI::App* app) {
  CLI::App* command = Innermost(app);
  std::vector<std::string> names;
  std::vector<absl::string_view> candidates;
  for (CLI::App* below : command->get_subcommands([](CLI::App*) { return true; }))
    names.push_back(below->get_name());
  if (names.empty()) return "";
  const std::vector<std::string> unknown = command->remaining();
  if (unknown.empty() || absl::StartsWith(unknown[0], "-"))
    return absl::StrCat("a command is required after ", command->get_name(), "; see ", command->get_name(),
                        " --help");
  candidates.assign(names.begin(), names.end());
  return absl::StrCat("there is no command ", Shown(unknown[0]),
                      DidYouMean(SimilarName(unknown[0], candidates)), "; see ", command->get_name(),
                      " --help");
}

}  // namespace

void AddCommands(CLI::App* app, Invocation* invocation) {
  app->set_version_flag("--version", FUSION_VERSION);
  app->footer(
      "Exit codes: 0 done, 1 failed, 2 bad usage or input, 4 not authorised, 124 time limit, 130 "
      "interrupted.\n"
      "Data goes to stdout, progress and errors to stderr.");
  AddSubmitCommand(app, invocation);
  AddCheckCommand(app, invocation);
  AddExplainCommand(app, invocation);
  AddJobsCommands(app, invocation);
  AddFetchCommand(app, invocation);
  AddWorkersCommands(app, invocation);
  AddTokensCommands(app, invocation);
  AddAuditCommands(app, invocation);
  AddLibraryCommands(app, invocation);
  AddModelCommands(app, invocation);
  AddTuneCommands(app, invocation);
  AddBackupCommand(app, invocation);
  AddDoctorCommand(app, invocation);
  AddCompletionCommand(app, invocation);
}

int RunCommandLine(int argc, const char* const* argv) {
  Invocation invocation;
  CLI::App app("Finds, builds and times fused kernels for dataflow graphs of elementary functions.",
               "fusion-client");
  AddCommands(&app, &invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string unknown = CommandError(&app); !unknown.empty() && error.get_exit_code() != 0) {
      std::cerr << "error: " << unknown << "\n";
      return kBadInput;
    }
    return app.exit(error) == 0 ? kDone : kBadInput;
  }
  if (!invocation.run) {
    std::cerr << "error: " << CommandError(&app) << "\n";
    return kBadInput;
  }
  try {
    const ExitCode code = invocation.run();
    std::cout.flush();
    if (!std::cout) {
      std::cerr << "error: stdout cannot be written\n";
      return kFailed;
    }
    return code;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return kFailed;
  }
}

}  // namespace fusion
