// Every command, as --help lists them: what completion offers, and what wrong usage gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using ::testing::EndsWith;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

// The help of a command says this of it.
struct Command {
  std::vector<std::string> path;  // "jobs", "list"
  std::vector<std::string> below;
  std::set<std::string> options;   // "--json"
  std::set<std::string> required;  // arguments, as "FILE"
};

// The words that begin the lines of a section, without the indentation.
std::vector<std::string> Section(const std::string& help, const std::string& title) {
  std::vector<std::string> words;
  bool inside = false;
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    if (!line.empty() && line[0] != ' ') inside = absl::StartsWith(line, title);
    // Texts that go on in the next line stand further to the right.
    if (inside && line.size() > 2 && line.substr(0, 2) == "  " && line[2] != ' ')
      words.emplace_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return words;
}

class EveryCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Collect({});
    ASSERT_GT(commands_.size(), 25u);
  }
  void Collect(const std::vector<std::string>& path) {
    std::vector<std::string> arguments = path;
    arguments.push_back("--help");
    const ProcessResult help = client_.Run(arguments);
    ASSERT_EQ(help.exit_code, 0) << absl::StrJoin(path, " ") << help.err;
    EXPECT_EQ(help.err, "");
    Command command{.path = path, .below = Section(help.out, "Subcommands")};
    for (const std::string& word : Section(help.out, "Options"))
      for (const absl::string_view name : absl::StrSplit(word, ','))
        if (absl::StartsWith(name, "--")) command.options.emplace(name);
    for (const absl::string_view line : absl::StrSplit(help.out, '\n'))
      if (absl::StrContains(line, " REQUIRED") && line.substr(0, 2) == "  " && absl::ascii_isupper(line[2]))
        command.required.emplace(line.substr(2, line.find(' ', 2) - 2));
    // The same text in other words.
    std::vector<std::string> other = {"help"};
    other.insert(other.end(), path.begin(), path.end());
    if (path != std::vector<std::string>{"help"}) {
      EXPECT_EQ(client_.Run(other).out, help.out);
    }
    commands_.push_back(command);
    for (const std::string& below : command.below) {
      std::vector<std::string> further = path;
      further.push_back(below);
      Collect(further);
    }
  }
  // The one line on stderr of a command with these arguments, which are wrong.
  std::string Refusal(const Command& command, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = command.path;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = client_.Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << absl::StrJoin(arguments, " ") << ": " << result.err;
    EXPECT_EQ(result.out, "") << absl::StrJoin(arguments, " ");
    EXPECT_THAT(result.err, StartsWith("error: "));
    EXPECT_THAT(result.err, EndsWith("--help\n"));
    return result.err;
  }
  ClientProgram client_;
  std::vector<Command> commands_;
};

TEST_F(EveryCommandTest, WrongUsageIsSaidInOneForm) {
  for (const Command& command : commands_) {
    SCOPED_TRACE(absl::StrJoin(command.path, " "));
    EXPECT_THAT(command.options, ::testing::Contains("--help"));
    if (command.path == std::vector<std::string>{"help"}) continue;
    EXPECT_THAT(Refusal(command, {"--no-such-option"}), ::testing::HasSubstr("--no-such-option"));
    // One letter too many of an option that there is.
    for (const std::string& option : command.options) {
      if (option == "--help" || option == "--version") continue;
      EXPECT_THAT(Refusal(command, {option + "z"}), ::testing::HasSubstr(absl::StrCat(option, "z")));
      break;
    }
    if (!command.below.empty()) {
      EXPECT_THAT(Refusal(command, {}), ::testing::HasSubstr("a command is required"));
      EXPECT_THAT(Refusal(command, {command.below[0] + "z"}),
                  ::testing::HasSubstr(absl::StrCat("did you mean ", command.below[0], "?")));
    }
    if (!command.required.empty()) {
      EXPECT_THAT(Refusal(command, {}), ::testing::HasSubstr(" is required"));
    }
  }
}

TEST_F(EveryCommandTest, CompletionOffersWhatHelpLists) {
  const std::string script = client_.Write("completion.bash", client_.Run({"completion", "bash"}).out);
  std::string probe = absl::StrCat("source ", script,
                                   "\ncomplete_words() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
                                   "_fusion_client; echo \"${COMPREPLY[@]}\"; }\n");
  for (const Command& command : commands_)
    for (const char* begin : {"''", "--"})
      absl::StrAppend(&probe, "complete_words fusion-client ", absl::StrJoin(command.path, " "), " ", begin,
                      "\n");
  const std::string out = client_.folder() + "/offered";
  ASSERT_EQ(std::system(("bash " + client_.Write("probe.bash", probe) + " > " + out + " 2>&1").c_str()), 0);
  std::ifstream lines(out);
  for (const Command& command : commands_) {
    SCOPED_TRACE(absl::StrJoin(command.path, " "));
    std::string words, options;
    ASSERT_TRUE(std::getline(lines, words) && std::getline(lines, options));
    const std::vector<std::string> offered = absl::StrSplit(words, ' ');
    if (!command.below.empty()) {
      EXPECT_THAT(offered, IsSupersetOf(command.below));
    }
    const std::vector<std::string> listed = absl::StrSplit(options, ' ');
    EXPECT_THAT(std::set<std::string>(listed.begin(), listed.end()), IsSupersetOf(command.options));
  }
}

}  // namespace
}  // namespace fusion::testing
