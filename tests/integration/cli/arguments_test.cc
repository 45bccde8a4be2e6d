// Bad usage and bad input: a clear error, exit code 2, nothing on stdout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/integration/cli/add_source.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ArgumentsTest : public ::testing::Test {
 protected:
  void ExpectBad(const std::vector<std::string>& arguments, const std::string& message) {
    ProcessResult result = program_.Run(arguments);
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    EXPECT_EQ(result.exit_code, 2) << line << result.err;
    EXPECT_EQ(result.out, "") << line;
    EXPECT_THAT(result.err, HasSubstr(message)) << line;
  }
  ClientProgram program_;
};

TEST_F(ArgumentsTest, UsageErrors) {
  ExpectBad({}, "a command is required");
  ExpectBad({"submitt"}, "there is no command submitt (did you mean submit?)");
  ExpectBad({"jobs", "lst"}, "there is no command lst (did you mean list?)");
  ExpectBad({"submit"}, "FILE is required");
  ExpectBad({"submit", "f.fuse", "--no-such-option"}, "--no-such-option");
  ExpectBad({"submit", "f.fuse", "--target", "tpu"}, "tpu");
  ExpectBad({"submit", "f.fuse", "--candidates", "0"}, "--candidates");
  ExpectBad({"submit", "f.fuse", "--candidates", "many"}, "--candidates");
  ExpectBad({"submit", "f.fuse", "--time-limit", "-1"}, "--time-limit");
  ExpectBad({"submit", "f.fuse", "--priority", "101"}, "--priority");
  ExpectBad({"submit", "f.fuse", "--queue-limit", "-1"}, "--queue-limit");
  ExpectBad({"submit", "f.fuse", "--run-limit", "nan"}, "--run-limit");
  ExpectBad({"submit", "f.fuse", "--time-limit", "nan"}, "--time-limit");
  for (const char* command : {"submit", "explain"}) {
    ExpectBad({command, "f.fuse", "--max-fusions", "0"}, "--max-fusions");
    ExpectBad({command, "f.fuse", "--max-fusions", "200001"}, "--max-fusions");
    ExpectBad({command, "f.fuse", "--cache", "hot"}, "hot");
    ExpectBad({command, "f.fuse", "--cache"}, "--cache");
    ExpectBad({command, "f.fuse", "--cache", "WARM"}, "WARM");
    ExpectBad({command, "f.fuse", "--deterministic=perhaps"}, "--deterministic");
  }
  for (const char* hint : {"y", "y=", "=row_panel", "y= "})
    ExpectBad({"explain", "f.fuse", "--make", hint}, std::string("must be A=TEXT, not ") + hint);
  ExpectBad({"check", "f.fuse", "--print", "pdf"}, "pdf");
  ExpectBad({"jobs"}, "a command is required after jobs");
  ExpectBad({"jobs", "trace"}, "JOB is required");
  ExpectBad({"jobs", "trce"}, "did you mean trace?");
  ExpectBad({"fetch", "jobs/1"}, "--output");
  ExpectBad({"fetch", "jobs/1", "--rank", "0", "--output", "x"}, "--rank");
  ExpectBad({"completion", "tcsh"}, "tcsh");
  ExpectBad({"model"}, "a command is required after model");
  ExpectBad({"model", "report", "--cache", "hot"}, "hot");
  ExpectBad({"model", "report", "--jobs", "0"}, "--jobs");
  ExpectBad({"model", "report", "--jobs", "10001"}, "--jobs");
  ExpectBad({"model", "report", "--device"}, "--device");
}

TEST_F(ArgumentsTest, HelpAndVersion) {
  ProcessResult help = program_.Run({"submit", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("--size"), HasSubstr("--target"), HasSubstr("--detach"), HasSubstr("--json")));
  EXPECT_EQ(program_.Run({"--help"}).exit_code, 0);
  EXPECT_EQ(program_.Run({"--version"}).exit_code, 0);
}

TEST_F(ArgumentsTest, FilesThatCannotBeRead) {
  ExpectBad({"check", program_.folder() + "/none.fuse"}, "No such file");
  ExpectBad({"check", program_.folder()}, "is a folder");
  ExpectBad({"check", program_.Write("latin1.fuse", "size n;\n// caf\xe9\n")},
            "latin1.fuse:2:7: error: byte 0xe9");
  ExpectBad({"check", program_.Write("bad.json", "{")}, "bad.json:1:");
  ExpectBad({"check", program_.Write("bad.pb", "\xff")}, "no serialised fusion.v1.Graph");
  ExpectBad({"check", program_.Write("empty.fuse", "")}, "empty.fuse");
  ExpectBad({"check", "/dev/zero"}, "larger than the limit");
}

TEST_F(ArgumentsTest, Sizes) {
  const std::string file = program_.Write("add.fuse", kAddSource);
  ExpectBad({"check", file, "--size", "n"}, "NAME=VALUE");
  ExpectBad({"check", file, "--size", "n=x"}, "no whole number");
  ExpectBad({"check", file, "--size", "n=-5"}, "error");
  ExpectBad({"check", file, "--size", "m=5"}, "error");
  ExpectBad({"check", file, "--size", "n=4611686018427387904"}, "error");
}

TEST_F(ArgumentsTest, ErrorsOfAGraphShowTheirLines) {
  const std::string file = program_.Write(
      "bad.fuse", "size n;\nvector[n] x, y, z;\ninput x;\ny = vadd(x, q);\nz = gemtvv(x);\nreturn y, z;\n");
  ProcessResult result = program_.Run({"check", file, "--size", "n=10"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr(file + ":4:13: error: "));
  EXPECT_THAT(result.err, HasSubstr("  y = vadd(x, q);\n              ^\n"));
  EXPECT_THAT(result.err, HasSubstr(file + ":5:5: error: "));
  EXPECT_THAT(result.err, HasSubstr("did you mean gemtv?"));
  ProcessResult submitted = program_.Run({"submit", file, "--size", "n=10"});
  EXPECT_EQ(submitted.exit_code, 2);
  EXPECT_THAT(submitted.err, HasSubstr("did you mean gemtv?"));
}

TEST_F(ArgumentsTest, ErrorsAsJsonKeepStdoutReadable) {
  ProcessResult result = program_.Run({"check", program_.Write("bad.fuse", "return x;\n"), "--json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, HasSubstr("\"schema\": \"fusion.error/1\""));
  EXPECT_THAT(result.out, HasSubstr("\"violations\""));
}

TEST_F(ArgumentsTest, BadUsageIsJsonToo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"submitt", "--json"}, "did you mean submit?"},
      {{"jobs", "--json"}, "a command is required"},
      {{"submit", "--json"}, "required"},
      {{"submit", "x.fuse", "--candidates", "few", "--json"}, "--candidates"},
      {{"check", "--json", "x.fuse", "--no-such-option"}, "--no-such-option"}};
  for (const auto& [arguments, message] : cases) {
    const ProcessResult result = program_.Run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << result.out;
    EXPECT_EQ(json.value("schema", ""), "fusion.error/1");
    EXPECT_THAT(json["error"].value("message", ""), HasSubstr(message));
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  EXPECT_EQ(program_.Run({"submitt", "--", "--json"}).out, "");
  EXPECT_EQ(program_.Run({"submitt"}).out, "");
}

TEST_F(ArgumentsTest, ServerThatDoesNotAnswer) {
  ProcessResult result = program_.Run({"jobs", "list", "--server", "127.0.0.1:1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no server answers at 127.0.0.1:1"));
}

TEST_F(ArgumentsTest, ConfigurationNamesTheServer) {
  program_.Write("config/fusion/config.json", R"({"server": "127.0.0.1:1"})");
  EXPECT_THAT(program_.Run({"jobs", "list"}).err, HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(program_.Run({"jobs", "list", "--server", "embedded"}).exit_code, 0);
  program_.SetEnvironment("FUSION_SERVER", "127.0.0.1:2");
  EXPECT_THAT(program_.Run({"jobs", "list"}).err, HasSubstr("127.0.0.1:2"));
  ClientProgram broken;
  broken.Write("config/fusion/config.json", "server: here");
  ProcessResult result = broken.Run({"jobs", "list"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("config.json: must be a JSON object"));
  // A slip must not send the work to another place.
  broken.Write("config/fusion/config.json", R"({"servr": "127.0.0.1:1"})");
  result = broken.Run({"jobs", "list"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("config.json: there is no \"servr\"; there are server, tls_ca"));
}

TEST_F(ArgumentsTest, WhereToLookIsACommandThatCanBeRun) {
  EXPECT_THAT(program_.Run({"jobs"}).err,
              HasSubstr("a command is required after jobs; see fusion-client jobs --help"));
  EXPECT_THAT(program_.Run({"tune", "shw"}).err,
              HasSubstr("there is no command shw (did you mean show?); see fusion-client tune --help"));
  EXPECT_THAT(program_.Run({"submitt"}).err, HasSubstr("; see fusion-client --help"));
}

TEST_F(ArgumentsTest, UsageErrorsHaveOneForm) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"submit", "x.fuse", "--candiates", "3"},
            "error: there is no option --candiates (did you mean --candidates?); see fusion-client submit "
            "--help\n"},
           {{"tune", "show", "a", "b"},
            "error: there is an argument too many: b; see fusion-client tune show --help\n"},
           {{"fetch"}, "error: JOB is required; see fusion-client fetch --help\n"}})
    EXPECT_EQ(program_.Run(arguments).err, message);
}

TEST_F(ArgumentsTest, HelpOfACommandIsWhatItsOptionSays) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{}, {"submit"}, {"tune", "show"}}) {
    std::vector<std::string> help = {"help"}, option = command;
    help.insert(help.end(), command.begin(), command.end());
    option.push_back("--help");
    EXPECT_EQ(program_.Run(help).out, program_.Run(option).out);
  }
  ExpectBad({"help", "submitt"}, "there is no command submitt (did you mean submit?)");
}

TEST_F(ArgumentsTest, OutputFolderOfOthersIsRefusedBeforeTheWork) {
  const std::string file = program_.Write("add.fuse", kAddSource);
  program_.Write("thesis/chapter1.tex", "text");
  ProcessResult result = program_.Run({"submit", file, "--output", program_.folder() + "/thesis"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("is not empty"));
}

TEST_F(ArgumentsTest, UnknownJobsAndFunctions) {
  ExpectBad({"jobs", "show", "nothing"}, "nothing");
  ExpectBad({"jobs", "watch", "jobs/nothing"}, "nothing");
  ExpectBad({"fetch", "nothing", "--output", program_.folder() + "/out"}, "nothing");
  ExpectBad({"library", "show", "gemtvv"}, "did you mean gemtv?");
}

}  // namespace
}  // namespace fusion::testing
