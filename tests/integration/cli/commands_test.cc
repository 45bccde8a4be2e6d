// Commands that need no device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "tests/integration/cli/add_source.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CommandsTest : public ::testing::Test {
 protected:
  ClientProgram program_;
};

TEST_F(CommandsTest, CheckPrintsASummary) {
  ProcessResult result = program_.Run({"check", program_.Write("add.fuse", kAddSource), "--size", "n=77"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("OK: add, 1 node, n = 77, sha256:"));
  EXPECT_EQ(result.err, "");
}

TEST_F(CommandsTest, CheckReadsStdin) {
  ProcessResult result = program_.Run({"check", "-"}, kAddSource);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("OK: "));
}

TEST_F(CommandsTest, PrintedFormsAreReadBackAsTheSameGraph) {
  const std::string file = program_.Write("add.fuse", kAddSource);
  const json original = json::parse(program_.Run({"check", file, "--json"}).out);
  for (const std::string form : {"fuse", "json", "proto"}) {
    ProcessResult printed = program_.Run({"check", file, "--print", form});
    ASSERT_EQ(printed.exit_code, 0) << printed.err;
    const std::string again = program_.Write(form == "proto" ? "add2.pb" : "add2." + form, printed.out);
    ProcessResult result = program_.Run({"check", again, "--json"});
    ASSERT_EQ(result.exit_code, 0) << form << result.err;
    EXPECT_EQ(json::parse(result.out)["graph"]["hash"], original["graph"]["hash"]) << form;
  }
  EXPECT_THAT(program_.Run({"check", file, "--print", "dot"}).out, StartsWith("digraph"));
}

TEST_F(CommandsTest, AGraphWithFunctionsOfItsOwnIsPrintedWholeOrNotAtAll) {
  const std::string file = program_.Write("own.json", R"({
    "sizes": [{"name": "n", "default_value": "1000"}],
    "variables": [{"name": "x", "type": {"extents": [{"size": "n"}]}},
                  {"name": "y", "type": {"extents": [{"size": "n"}]}}],
    "inputs": ["x"], "outputs": ["y"],
    "calls": [{"result": "y", "function": "twice", "arguments": [{"variable": "x"}]}],
    "functions": [{"name": "twice", "domain": "entrywise", "documentation": "2 x",
      "overloads": [{"form": "ENTRYWISE", "operands": [{"name": "x", "type": "any"}], "result": "any",
                     "formula": "y = 2 x", "routine": "twice_map", "flops": "1"}],
      "source": "template <class T>\nFUSION_FN T twice_map(T x) { return x + x; }\n"}]})");
  const json original = json::parse(program_.Run({"check", file, "--json"}).out);
  const ProcessResult as_text = program_.Run({"check", file, "--print", "fuse"});
  EXPECT_EQ(as_text.exit_code, 2);
  EXPECT_EQ(as_text.out, "");
  EXPECT_THAT(as_text.err, HasSubstr("json"));
  for (const std::string form : {"json", "proto"}) {
    const ProcessResult printed = program_.Run({"check", file, "--print", form});
    ASSERT_EQ(printed.exit_code, 0) << printed.err;
    const std::string again = program_.Write(form == "proto" ? "own2.pb" : "own2.json", printed.out);
    const ProcessResult result = program_.Run({"check", again, "--json"});
    ASSERT_EQ(result.exit_code, 0) << form << result.err;
    EXPECT_EQ(json::parse(result.out)["graph"]["hash"], original["graph"]["hash"]) << form;
  }
}

TEST_F(CommandsTest, LoopsInCAreJudgedWithoutAServer) {
  const std::string race =
      "#define AT(i) a[i]\nint n;\nfloat a[n];\n#pragma omp parallel for\nfor (int i = 0; i < n - 1; i++) "
      "AT(i) = AT(i + 1);\n";
  const std::string file = program_.Write("race.c", race);
  ProcessResult refused = program_.Run({"check", file});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err,
              HasSubstr("race.c:5:33: error: iterations of i share a[i] (written here, read at 5:"));
  EXPECT_THAT(refused.err, HasSubstr("i = 0 and i = 1 both touch a[1]"));
  const std::string fine = program_.Write(
      "fine.c", "int n;\nfloat a[n];\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) a[i] = i;\n");
  EXPECT_EQ(program_.Run({"check", fine}).out, fine + ":4:1: i is parallel: proved\n");
  const json loops = json::parse(program_.Run({"check", fine, "--json"}).out);
  EXPECT_EQ(loops["schema"], "fusion.loops/1");
  EXPECT_EQ(loops["loops"][0]["verdict"], "independent");
  EXPECT_EQ(loops["loops"][0]["claimed"], true);
  EXPECT_EQ(loops["notes"].size(), 0u);
  EXPECT_EQ(program_.Run({"check", fine, "--size", "n=3"}).exit_code, 2);
  const std::string simd = program_.Write(
      "simd.c",
      "int n;\nfloat a[n];\n#pragma omp parallel for nowait\nfor (int i = 0; i < n; i++) a[i] = i;\n");
  EXPECT_THAT(program_.Run({"check", simd}).out,
              HasSubstr(simd + ":3:26: note: nowait is ignored: kernels run one after another\n"));
  EXPECT_EQ(json::parse(program_.Run({"check", simd, "--json"}).out)["notes"][0]["column"], 26);
}

TEST_F(CommandsTest, ExplainNeedsNoDevice) {
  const std::string file = program_.Write("add.fuse", kAddSource);
  ProcessResult result = program_.Run({"explain", file, "--target", "cuda", "--arch", "sm_90", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json explained = json::parse(result.out);
  EXPECT_EQ(explained["schema"], "fusion.explain/1");
  EXPECT_EQ(explained["graph"]["nodes"], 1);
  EXPECT_GE(explained["search"]["fusions"], 1);
  EXPECT_GE(explained["search"]["covers"], 1);
  EXPECT_GT(explained["search"]["best_predicted_seconds"], 0.0);
  EXPECT_LE(explained["search"]["bound_seconds"], explained["search"]["best_predicted_seconds"]);
  EXPECT_EQ(explained["floor"]["bytes"], 12000.0);
  EXPECT_THAT(program_.Run({"explain", file, "--target", "cuda", "--source"}).out, HasSubstr("__global__"));
  EXPECT_NE(program_.Run({"explain", file}).out, "");
  for (const char* option : {"--together", "--apart"}) {
    ProcessResult hinted = program_.Run({"explain", file, option, "one,two"});
    EXPECT_EQ(hinted.exit_code, 2) << hinted.err;
    EXPECT_THAT(hinted.err, HasSubstr("the graph has no value one"));
  }
  for (const char* pair : {"one,two", " one, two"}) {
    ProcessResult why = program_.Run({"explain", file, "--why", pair});
    EXPECT_EQ(why.exit_code, 2) << why.err;
    EXPECT_THAT(why.err, HasSubstr("the graph has no value one"));
  }
  ProcessResult made = program_.Run({"explain", file, "--make", " one = vector"});
  EXPECT_THAT(made.err, HasSubstr("the graph has no value one"));
}

TEST_F(CommandsTest, AnUnknownArchitectureIsTheNearestOlderOneWithAWarning) {
  const std::string file = program_.Write("add.fuse", kAddSource);
  const auto explain = [&](const std::string& arch, const std::string& target, const std::string& more) {
    return program_.Run({"explain", file, "--target", target, "--arch", arch, more});
  };
  const std::pair<const char*, const char*> cases[] = {
      {"sm_87", "sm_86"}, {"sm_91", "sm_90"}, {"sm_130", "sm_120"}};
  for (const auto& [asked, nearest] : cases)
    for (const char* target : {"cuda", "auto"}) {
      ProcessResult result = explain(asked, target, "--json");
      ASSERT_EQ(result.exit_code, 0) << result.err;
      const json explained = json::parse(result.out);
      EXPECT_EQ(explained["device"]["target"], "cuda");
      EXPECT_EQ(explained["device"]["arch"], nearest);
      EXPECT_THAT(explained["search"]["notes"].dump(),
                  HasSubstr(std::string("architecture ") + asked +
                            " is not known; taking the nearest older one, " + nearest));
    }
  EXPECT_THAT(explain("sm_87", "cuda", "--candidates=1").out,
              HasSubstr("note: architecture sm_87 is not known"));
  ProcessResult source = explain("sm_87", "cuda", "--source");
  EXPECT_THAT(source.err, HasSubstr("note: architecture sm_87 is not known"));
  EXPECT_THAT(source.out, Not(HasSubstr("note: ")));
  EXPECT_THAT(json::parse(explain("sm_80", "cuda", "--json").out)["search"]["notes"].dump(),
              Not(HasSubstr("not known")));

  for (const std::string arch : {"banana", "sm_70", "sm_", "-O3", "sm_90;x"})
    for (const std::string command : {"explain", "submit"}) {
      ProcessResult result = program_.Run({command, file, "--target", "cuda", "--arch=" + arch, "--json"});
      EXPECT_EQ(result.exit_code, 2) << command << arch << result.err;
      EXPECT_THAT(result.err, HasSubstr("sm_75")) << command << arch;
    }
}

TEST_F(CommandsTest, LibraryListsAndShows) {
  const json list = json::parse(program_.Run({"library", "list", "--json"}).out);
  EXPECT_GT(list["functions"].size(), 20u);
  ProcessResult shown = program_.Run({"library", "show", "gemv"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("gemv ("));
  EXPECT_THAT(shown.out, HasSubstr("matrix[i,j]"));
}

// Such as a variable without a value.
TEST_F(CommandsTest, EmptyPathsAreBadUsage) {
  const std::string file = program_.Write("add.fuse", kAddSource);
  const std::vector<std::vector<std::string>> commands = {
      {"fetch", "jobs/1", "--output", ""},         {"jobs", "watch", "jobs/1", "--output", ""},
      {"jobs", "trace", "jobs/1", "--output", ""}, {"submit", file, "--output", ""},
      {"explain", file, "--dump-dir", ""},         {"model", "report", "--plots", ""},
      {"tune", "show", "1", "--plots", ""},        {"tune", "export", "1", "--output", ""}};
  for (const std::vector<std::string>& command : commands) {
    const ProcessResult result = program_.Run(command);
    EXPECT_EQ(result.exit_code, 2) << command[0] << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr("must not be empty")) << command[0];
  }
  for (const char* limit : {"0", "-1", "soon"}) {
    const ProcessResult result = program_.Run({"submit", file, "--time-limit", limit});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(std::string("must be a number greater than 0, but is ") + limit));
  }
}

TEST_F(CommandsTest, JobsOfAnEmptyDataDirectory) {
  ProcessResult list = program_.Run({"jobs", "list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_EQ(list.out, "no jobs\n");
  EXPECT_EQ(json::parse(program_.Run({"jobs", "list", "--json"}).out)["jobs"].size(), 0u);
}

TEST_F(CommandsTest, ADetachedJobIsKeptUntilItIsCancelled) {
  const std::string file = program_.Write("add.fuse", kAddSource);
  ProcessResult submitted = program_.Run({"submit", file, "--detach"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_THAT(submitted.out, StartsWith("jobs/"));
  const std::string job = submitted.out.substr(0, submitted.out.size() - 1);
  EXPECT_THAT(submitted.err, HasSubstr("fusion-client jobs watch " + job));
  json shown = json::parse(program_.Run({"jobs", "show", job, "--json"}).out);
  EXPECT_EQ(shown["job"], job);
  EXPECT_EQ(shown["graph"]["name"], "add");
  const ProcessResult both = program_.Run({"submit", file, "--detach", "--output", "folder"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--output: a job that is left to the server"));
  EXPECT_EQ(program_.Run({"jobs", "cancel", job}).exit_code, 0);
  shown = json::parse(program_.Run({"jobs", "show", job, "--json"}).out);
  EXPECT_EQ(shown["state"], "CANCELLED");
  EXPECT_EQ(json::parse(program_.Run({"jobs", "list", "--json"}).out)["jobs"].size(), 1u);
  EXPECT_EQ(program_.Run({"jobs", "watch", job}).exit_code, 1);
  EXPECT_EQ(program_.Run({"fetch", job, "--output", program_.folder() + "/out"}).exit_code, 1);
}

TEST_F(CommandsTest, CompletionIsValidBashAndKnowsTheCommands) {
  ProcessResult script = program_.Run({"completion", "bash"});
  ASSERT_EQ(script.exit_code, 0);
  const std::string file = program_.Write("completion.bash", script.out);
  const std::string probe = program_.Write(
      "probe.bash", "source " + file +
                        "\n"
                        "complete_words() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _fusion_client; "
                        "echo \"${COMPREPLY[@]}\"; }\n"
                        "complete_words fusion-client su\n"
                        "complete_words fusion-client jobs wa\n"
                        "complete_words fusion-client submit --targ\n"
                        "complete_words fusion-client submit --target c\n"
                        "complete_words fusion-client model re\n"
                        "complete_words fusion-client model report --plo\n"
                        "complete_words fusion-client model report --cache w\n");
  const std::string out = program_.folder() + "/completed";
  ASSERT_EQ(std::system(("bash " + probe + " > " + out + " 2>&1").c_str()), 0);
  std::ifstream lines(out);
  std::string text((std::istreambuf_iterator<char>(lines)), {});
  EXPECT_EQ(text, "submit\nwatch\n--target\ncuda\nreport reset\n--plots\nwarm\n");
}

TEST_F(CommandsTest, CompletionOfFishAndZshKnowsTheCommands) {
  if (std::system("fish --version > /dev/null 2>&1 && zsh --version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "SKIP: no fish or no zsh";
  const auto output_of = [&](const std::string& shell, const std::string& text) {
    const std::string script = program_.Write("completion." + shell, program_.Run({"completion", shell}).out);
    const std::string probe =
        program_.Write("probe." + shell, absl::StrReplaceAll(text, {{"SCRIPT", script}}));
    const std::string out = program_.folder() + "/completed." + shell;
    EXPECT_EQ(std::system((shell + " " + probe + " > " + out + " 2>&1").c_str()), 0);
    std::ifstream lines(out);
    return std::string((std::istreambuf_iterator<char>(lines)), {});
  };
  const std::string fish = output_of("fish",
                                     "source SCRIPT\n"
                                     "complete -C 'fusion-client jobs wa'\n"
                                     "complete -C 'fusion-client submit --target c'\n");
  EXPECT_THAT(fish, ::testing::StartsWith("watch\tFollow a job"));
  EXPECT_THAT(fish, ::testing::HasSubstr("\ncuda\t"));
  EXPECT_THAT(output_of("zsh",
                        "autoload -U compinit; compinit -u -D; source SCRIPT\n"
                        "print -- ${_comps[fusion-client]}\n"),
              ::testing::HasSubstr("_fusion_client"));
}

}  // namespace
}  // namespace fusion::testing
