#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/command_line.h"
#include "client/cli/invocation.h"

namespace fusion {
namespace {

// "jobs list" for a command below another; "" for the program itself.
void CollectCommands(CLI::App* app, const std::string& path, std::string* steps, std::string* words) {
  std::vector<std::string> names;
  for (CLI::App* command : CommandsBelow(app)) {
    const std::string below =
        path.empty() ? command->get_name() : absl::StrCat(path, " ", command->get_name());
    absl::StrAppend(steps, "      \"", path, ":", command->get_name(), "\") path=\"", below, "\" ;;\n");
    names.push_back(command->get_name());
    CollectCommands(command, below, steps, words);
  }
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  absl::StrAppend(words, "    \"", path, "\") words=\"", absl::StrJoin(names, " "), "\" ;;\n");
}

// Values of options that have few, and the commands whose arguments are files.
constexpr std::pair<const char*, const char*> kValues[] = {{"target", "auto cuda host"},
                                                           {"cache", "cold warm"},
                                                           {"print", "fuse dot json proto metafork"},
                                                           {"role", "user worker admin"}};
bool TakesFiles(const std::string& path) {
  return path == "submit" || path == "check" || path == "explain" || path == "cases";
}

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

void CollectForFish(CLI::App* app, const std::string& path, std::string* steps, std::string* lines) {
  const std::string here = absl::StrCat("complete -c fusion-client -n ",
                                        FishQuoted(absl::StrCat("__fusion_client_is '", path, "'")));
  if (TakesFiles(path)) absl::StrAppend(lines, here, " -F\n");
  for (CLI::App* command : CommandsBelow(app)) {
    const std::string below =
        path.empty() ? command->get_name() : absl::StrCat(path, " ", command->get_name());
    absl::StrAppend(steps, "      case '", path, ":", command->get_name(), "'\n        set path '", below,
                    "'\n");
    absl::StrAppend(lines, here, " -a ", command->get_name(), " -d ", FishQuoted(command->get_description()),
                    "\n");
    CollectForFish(command, below, steps, lines);
  }
  for (const CLI::Option* option : app->get_options())
    for (const std::string& name : option->get_lnames()) {
      absl::StrAppend(lines, here, " -l ", name, option->get_items_expected_max() > 0 ? " -r" : "", " -d ",
                      FishQuoted(option->get_description()));
      for (const auto& [valued, values] : kValues)
        if (name == valued) absl::StrAppend(lines, " -f -a '", values, "'");
      absl::StrAppend(lines, "\n");
    }
}

std::string FishCompletion(CLI::App* app) {
  std::string steps, lines;
  CollectForFish(app, "", &steps, &lines);
  return absl::StrCat(
      "# fish completion of fusion-client; use: fusion-client completion fish | source\n"
      "function __fusion_client_is\n"
      "  set -l path ''\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$path:$word\"\n",
      steps, "    end\n  end\n  test \"$path\" = \"$argv[1]\"\nend\ncomplete -c fusion-client -f\n", lines);
}

// Names of commands, options, and values of options with a fixed set; files elsewhere.
std::string BashCompletion(CLI::App* app) {
  std::string steps, words, values;
  CollectCommands(app, "", &steps, &words);
  for (const auto& [name, of_name] : kValues)
    absl::StrAppend(&values, "    --", name, ") COMPREPLY=($(compgen -W \"", of_name,
                    "\" -- \"$current\")); return ;;\n");
  return absl::StrCat(
      "# bash completion of fusion-client; use: source <(fusion-client completion bash)\n"
      "_fusion_client() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= words= word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path:$word\" in\n",
      steps,
      "    esac\n"
      "  done\n"
      "  case \"$previous\" in\n",
      values,
      "    --tls-ca|--tls-cert|--tls-key|--token-file) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
      "    --output|--dump-dir|--plots|--plot) COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n"
      "  esac\n"
      "  case \"$path\" in\n",
      words,
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  case \"$path\" in\n"
      "    submit|check|explain)\n"
      "      [[ $current == -* ]] || COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -F _fusion_client fusion-client\n");
}

}  // namespace

void AddCompletionCommand(CLI::App* app, Invocation* invocation) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([=] {
    invocation->run = [=] {
      if (*shell == "zsh") std::cout << "autoload -U +X bashcompinit && bashcompinit\n";
      std::cout << (*shell == "fish" ? FishCompletion(app) : BashCompletion(app));
      return kDone;
    };
  });
}

}  // namespace fusion
