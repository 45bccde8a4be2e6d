// The main job on the host, embedded: from a .fuse file to ranked, verified implementations.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fusion/v1/search.pb.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Two fusible calls, so that fused and unfused covers differ.
constexpr char kSource[] =
    "size n = 40003;\nvector[n] x, y, z, s, r;\nscalar a;\ninput a, x, y, z;\n"
    "s = axpy(a, x, y);\nr = vadd(s, z);\nreturn r;\n";

class SubmitTest : public ::testing::Test {
 protected:
  void SetUp() override { file_ = client_.Write("two_calls.fuse", kSource); }
  // All of a few candidates: what a job teaches changes which ones the next would choose.
  std::vector<std::string> Submit(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"submit",        file_,          "--target", "host",
                                          "--measure-all", "--candidates", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  ClientProgram client_;
  std::string file_;
};

TEST_F(SubmitTest, GivesVerifiedCandidatesAndTheirCodeAndReusesBuilds) {
  ProcessResult first = client_.Run(Submit({"--json"}));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const json result = json::parse(first.out);
  EXPECT_EQ(result["schema"], "fusion.submit/1");
  EXPECT_EQ(result["state"], "SUCCEEDED");
  EXPECT_EQ(result["device"]["target"], "host");
  EXPECT_EQ(result["graph"]["nodes"], 2);
  EXPECT_GT(result["unfused"]["measured_seconds"]["median"], 0.0);
  ASSERT_GE(result["candidates"].size(), 1u);
  EXPECT_EQ(result["builds_reused"], 0);
  for (const json& candidate : result["candidates"]) {
    EXPECT_EQ(candidate["outcome"], "OK") << candidate.dump();
    EXPECT_LE(candidate["max_relative_error"], candidate["tolerance"]);
    EXPECT_LE(candidate["measured_seconds"]["low"], candidate["measured_seconds"]["high"]);
  }
  EXPECT_THAT(first.err, HasSubstr("searching"));
  EXPECT_THAT(first.err, HasSubstr("building"));
  EXPECT_THAT(first.err, HasSubstr("timing"));
  EXPECT_THAT(first.err, Not(HasSubstr("\r")));

  const std::string folder = result["artifact"];
  EXPECT_THAT(folder, StartsWith(client_.folder() + "/data/artifacts/two_calls-"));
  EXPECT_THAT(Content(folder + "/fused.cc"), HasSubstr("omp"));
  EXPECT_FALSE(json::parse(Content(folder + "/report.json")).empty());

  ProcessResult second = client_.Run(Submit({"--json"}));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const json again = json::parse(second.out);
  EXPECT_EQ(again["builds_reused"], again["builds"]);
  EXPECT_NE(again["job"], result["job"]);

  const std::string job = result["job"];
  const std::string output = client_.folder() + "/fetched";
  ProcessResult fetched = client_.Run({"fetch", job, "--rank", "1", "--output", output});
  EXPECT_EQ(fetched.exit_code, 0) << fetched.err;
  EXPECT_EQ(Content(output + "/fused.cc"), Content(folder + "/fused.cc"));
  EXPECT_EQ(client_.Run({"fetch", job, "--rank", "999", "--output", output}).exit_code, 2);
  ProcessResult shown = client_.Run({"jobs", "show", job});
  EXPECT_THAT(shown.out, HasSubstr("two_calls (n = 40,003) on "));
}

TEST_F(SubmitTest, TableAndOutputFolder) {
  const std::string output = client_.folder() + "/out";
  ProcessResult result = client_.Run(Submit({"--output", output}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rank"));
  EXPECT_THAT(result.out, HasSubstr("{s r}"));
  EXPECT_THAT(result.out, HasSubstr("rank 1 is in " + output));
  EXPECT_THAT(Content(output + "/fused.h"), HasSubstr("\n// Verified on "));
  EXPECT_THAT(Content(output + "/README.md"), HasSubstr(" at n=40003 on 20"));
  // Its own folder may be written again, under another name.
  EXPECT_EQ(client_.Run(Submit({"--output", output, "--name", "two_calls"})).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(output + "/fused.h"));
  EXPECT_THAT(Content(output + "/two_calls.h"), HasSubstr("int two_calls_launch("));
}

TEST_F(SubmitTest, ANameThatIsNoneIsRefusedBeforeTheWork) {
  const ProcessResult result = client_.Run(Submit({"--name", "two calls"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("the exported code cannot be called \"two calls\""));
}

TEST_F(SubmitTest, TimeLimitIsItsOwnExitCode) {
  ProcessResult result = client_.Run(Submit({"--time-limit", "0.01", "--json"}));
  EXPECT_EQ(result.exit_code, 124) << result.err;
  EXPECT_EQ(json::parse(result.out)["state"], "FAILED");
  EXPECT_EQ(json::parse(result.out)["error"]["code"], "DEADLINE_EXCEEDED");
}

TEST_F(SubmitTest, InterruptedItSaysHowToGoOnAndThatWorks) {
  Process submit("fusion-client", Submit(), client_.environment());
  ASSERT_TRUE(submit.WaitForError("building"));
  submit.Signal(SIGINT);
  ProcessResult interrupted = submit.Wait();
  EXPECT_EQ(interrupted.exit_code, 130);
  const std::string command = "fusion-client jobs watch ";
  const size_t position = interrupted.err.find(command);
  ASSERT_NE(position, std::string::npos) << interrupted.err;
  const size_t begin = position + command.size();
  const std::string job = interrupted.err.substr(begin, interrupted.err.find('\n', begin) - begin);
  ProcessResult watched = client_.Run({"jobs", "watch", job, "--json"});
  ASSERT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_EQ(json::parse(watched.out)["job"], job);
  EXPECT_EQ(json::parse(watched.out)["state"], "SUCCEEDED");
}

TEST_F(SubmitTest, InterruptedItTellsAScriptTheNameOfTheJob) {
  Process submit("fusion-client", Submit({"--json"}), client_.environment());
  ASSERT_TRUE(submit.WaitForError("building"));
  submit.Signal(SIGINT);
  ProcessResult interrupted = submit.Wait();
  EXPECT_EQ(interrupted.exit_code, 130);
  const json said = json::parse(interrupted.out, nullptr, false);
  ASSERT_TRUE(said.is_object()) << interrupted.out;
  EXPECT_EQ(said["schema"], "fusion.submit/1");
  EXPECT_EQ(said["state"], "RUNNING");
  EXPECT_THAT(interrupted.err, HasSubstr("fusion-client jobs watch " + said["job"].get<std::string>()));
}

TEST_F(SubmitTest, DumpsEveryStage) {
  const std::string dump = client_.folder() + "/dump";
  ProcessResult result = client_.Run(Submit({"--dump-dir", dump}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(Content(dump + "/graph.fuse"), HasSubstr("axpy(a, x, y)"));
  EXPECT_NE(Content(dump + "/fusions.txt"), "");
  v1::PredictionModel model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(Content(dump + "/model.textproto"), &model));
  EXPECT_EQ(model.device().target(), v1::HOST);
  v1::FoundPlans plans;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(Content(dump + "/plans.textproto"), &plans));
  EXPECT_GT(plans.covers_size(), 0);
}

}  // namespace
}  // namespace fusion::testing
