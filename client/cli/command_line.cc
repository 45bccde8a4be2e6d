#include "client/cli/command_line.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "client/cli/invocation.h"
#include "client/cli/render.h"

namespace fusion {
namespace {

// The innermost command that was given.
CLI::App* Innermost(CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

// Returns the command as it is typed: "fusion-client jobs".
std::string TypedName(const CLI::App* command) {
  const CLI::App* above = command->get_parent();
  return above == nullptr ? command->get_name() : absl::StrCat(TypedName(above), " ", command->get_name());
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
    return absl::StrCat("a command is required after ", command->get_name(), "; see ", TypedName(command),
                        " --help");
  candidates.assign(names.begin(), names.end());
  return absl::StrCat("there is no command ", Shown(unknown[0]),
                      DidYouMean(SimilarName(unknown[0], candidates)), "; see ", TypedName(command),
                      " --help");
}

// Returns whether --json was asked for; the parser says nothing of options before the one that it stumbles
// over.
bool AsksForJson(int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--json") != end;
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
  // On stdout alone: stderr has the parser's own words, or these.
  const auto report_json = [&](const std::string& message) {
    if (AsksForJson(argc, argv)) std::cout << JsonText(ErrorJson(absl::InvalidArgumentError(message)));
  };
  const auto report_command = [&](const std::string& message) {
    std::cerr << "error: " << message << "\n";
    report_json(message);
    return kBadInput;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error) == 0 ? kDone : kBadInput;  // --help, --version
    if (const std::string unknown = CommandError(&app); !unknown.empty()) return report_command(unknown);
    app.exit(error);
    report_json(error.what());
    return kBadInput;
  }
  if (!invocation.run) return report_command(CommandError(&app));
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
