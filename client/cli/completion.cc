#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command_line.h"
#include "client/cli/invocation.h"

namespace fusion {
namespace {

// "jobs list" for a command below another; "" for the program itself.
void CollectCommands(CLI::App* app, const std::string& path, std::string* steps, std::string* words) {
  std::vector<std::string> names;
  for (CLI::App* command : app->get_subcommands([](CLI::App*) { return true; })) {
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

}  // namespace

std::string BashCompletion(CLI::App* app) {
  std::string steps, words;
  CollectCommands(app, "", &steps, &words);
  return absl::StrCat(
      "# bash completion of fusion-client; use: source <(fusion-client completion bash)\n"
      "_fusion_client() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= words= word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path:$word\" in\n",
      steps,
      "    esac\n"
      "  done\n"
      "  case \"$previous\" in\n"
      "    --target) COMPREPLY=($(compgen -W \"auto cuda host\" -- \"$current\")); return ;;\n"
      "    --cache) COMPREPLY=($(compgen -W \"cold warm\" -- \"$current\")); return ;;\n"
      "    --print) COMPREPLY=($(compgen -W \"fuse dot json proto\" -- \"$current\")); return ;;\n"
      "    --role) COMPREPLY=($(compgen -W \"user worker admin\" -- \"$current\")); return ;;\n"
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

void AddCompletionCommand(CLI::App* app, Invocation* invocation) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("SHELL", *shell, "bash")->required()->check(CLI::IsMember({"bash"}));
  command->callback([=] {
    invocation->run = [=] {
      std::cout << BashCompletion(app);
      return kDone;
    };
  });
}

}  // namespace fusion
