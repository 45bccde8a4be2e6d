#include "client/cli/command_line.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
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

// All errors of usage end so.
std::string SeeHelp(const CLI::App* command) { return absl::StrCat("; see ", TypedName(command), " --help"); }

// "there is no command submitt (did you mean submit?)"
std::string NoCommand(CLI::App* command, const std::string& unknown) {
  std::vector<std::string> names;
  for (CLI::App* below : CommandsBelow(command)) names.push_back(below->get_name());
  const std::vector<absl::string_view> candidates(names.begin(), names.end());
  return absl::StrCat("there is no command ", Shown(unknown), DidYouMean(SimilarName(unknown, candidates)),
                      SeeHelp(command));
}

// Says which command is missing or is none; "" when the command was there.
std::string CommandError(CLI::App* app) {
  CLI::App* command = Innermost(app);
  if (CommandsBelow(command).empty()) return "";
  const std::vector<std::string> unknown = command->remaining();
  if (unknown.empty() || absl::StartsWith(unknown[0], "-"))
    return absl::StrCat("a command is required after ", command->get_name(), SeeHelp(command));
  return NoCommand(command, unknown[0]);
}

// Says which option there is not; "" when the command, or one below it that was not named, has all that were
// given.
std::string OptionError(CLI::App* command) {
  const std::vector<CLI::App*> below = CommandsBelow(command);
  const std::vector<std::string> unknown = command->remaining();
  const auto found = std::find_if(unknown.begin(), unknown.end(), [&](const std::string& argument) {
    return argument.size() > 1 && argument[0] == '-' &&
           std::none_of(below.begin(), below.end(), [&](const CLI::App* each) {
             return each->get_option_no_throw(argument.substr(0, argument.find('='))) != nullptr;
           });
  });
  if (found == unknown.end()) return "";
  const std::string option = found->substr(0, found->find('='));
  std::vector<std::string> names;
  for (const CLI::Option* known : command->get_options())
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  const std::vector<absl::string_view> candidates(names.begin(), names.end());
  return absl::StrCat("there is no option ", Shown(option), DidYouMean(SimilarName(option, candidates)),
                      SeeHelp(command));
}

// Says what is wrong with the arguments, in the one form that all such errors have.
std::string UsageError(CLI::App* app, const CLI::ParseError& error) {
  CLI::App* command = Innermost(app);
  if (std::string wrong = OptionError(command); !wrong.empty()) return wrong;
  if (std::string wrong = CommandError(app); !wrong.empty()) return wrong;
  const std::vector<std::string> unknown = command->remaining();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || unknown.empty())
    return absl::StrCat(error.what(), SeeHelp(command));
  return absl::StrCat("there is an argument too many: ", Shown(unknown[0]), SeeHelp(command));
}

// `help tune set` says what `tune set --help` does.
void AddHelpCommand(CLI::App* app, Invocation* invocation) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app->add_subcommand("help", "Say what a command does, and its options");
  help->add_option("COMMAND", *words, "Words of the command, as in: help tune set");
  help->callback([=] {
    invocation->run = [=] {
      CLI::App* command = app;
      for (const std::string& word : *words) {
        CLI::App* const above = command;
        for (CLI::App* below : CommandsBelow(above))
          if (below->get_name() == word) command = below;
        if (command != above) continue;
        std::cerr << "error: " << NoCommand(above, word) << "\n";
        return kBadInput;
      }
      // The text of a command is that of the command below it which was parsed, and `help` was.
      const CLI::App* const parent = command->get_parent();
      app->clear();
      std::cout << command->help(parent == nullptr ? "" : TypedName(parent));
      return kDone;
    };
  });
}

// Returns whether --json was asked for; the parser says nothing of options before the one that it stumbles
// over.
bool AsksForJson(int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

}  // namespace

std::vector<CLI::App*> CommandsBelow(CLI::App* command) {
  return command->get_subcommands([](CLI::App*) { return true; });
}

void AddCommands(CLI::App* app, Invocation* invocation) {
  app->set_version_flag("--version", FUSION_VERSION);
  app->footer(
      "Exit codes: 0 done, 1 failed, 2 bad usage or input, 4 not authorised, 124 time limit, 130 "
      "interrupted.\n"
      "Data goes to stdout, progress and errors to stderr.");
  app->require_subcommand(0, 1);  // behind a command its name is an argument as any other
  AddSubmitCommand(app, invocation);
  AddCheckCommand(app, invocation);
  AddCasesCommand(app, invocation);
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
  AddHelpCommand(app, invocation);
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
    return report_command(UsageError(&app, error));
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
