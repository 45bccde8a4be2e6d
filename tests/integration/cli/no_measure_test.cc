// Code for devices that are not there: submit --no-measure; and first answers: submit --quick.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class NoMeasureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ =
        client_.Write("softmax.fuse",
                      "size m = 4093, n = 5001;\nmatrix[m,n] A, B, C, D;\nvector[m] r, s;\ninput A;\n"
                      "r = rowmax(A);\nB = rowsub(A, r);\nC = exp(B);\ns = rowsum(C);\nD = rowdiv(C, s);\n"
                      "return D into A;\n");
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // Runs `submit --no-measure` and checks what holds for any target.
  json Predicted(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"submit", file_, "--no-measure", "--json", "--output", folder()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = client_.Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const json parsed = json::parse(result.out, nullptr, false);
    EXPECT_EQ(parsed["state"], "SUCCEEDED");
    EXPECT_EQ(parsed["predicted"], true);
    EXPECT_LE(parsed["candidates"].size(), 5u);
    double before = 0;
    for (const json& candidate : parsed["candidates"]) {
      EXPECT_EQ(candidate["outcome"], "OK") << candidate.dump();
      EXPECT_TRUE(candidate["measured_seconds"].is_null());
      EXPECT_TRUE(candidate["speedup"].is_null());
      EXPECT_GE(candidate["predicted_seconds"], before);
      before = candidate["predicted_seconds"];
      EXPECT_LE(candidate["max_relative_error"], candidate["tolerance"]);
    }
    EXPECT_THAT(Content(folder() + "/README.md"), HasSubstr("PREDICTED: nothing was measured"));
    EXPECT_THAT(Content(folder() + "/README.md"), Not(HasSubstr("Verified on")));
    return parsed;
  }
  std::string folder() const { return client_.folder() + "/code"; }
  ClientProgram client_;
  std::string file_;
};

TEST_F(NoMeasureTest, GivesCudaCodeWithoutAGpu) {
  const json result = Predicted({"--target", "cuda", "--arch", "sm_80"});
  EXPECT_EQ(result["device"]["arch"], "sm_80");
  EXPECT_THAT(Content(folder() + "/fused.cu"), HasSubstr("__global__"));
  const json jobs = json::parse(client_.Run({"jobs", "list", "--json"}).out)["jobs"];
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["best"]["predicted"], true);
}

TEST_F(NoMeasureTest, GivesHostCodeThatWasChecked) {
  const json result = Predicted({"--target", "host"});
  EXPECT_GT(result["candidates"][0]["tolerance"], 0.0);
  EXPECT_EQ(result["remarks"].size(), 0u) << result["remarks"].dump();
}

// A server without workers still gives the code, and says what it could not do.
TEST_F(NoMeasureTest, NeedsNoWorker) {
  ServerProcess server(client_);
  const ProcessResult result = client_.Run({"submit", file_, "--no-measure", "--target", "cuda", "--arch",
                                            "sm_90", "--server", server.address(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json parsed = json::parse(result.out);
  EXPECT_THAT(parsed["remarks"].dump(), HasSubstr("the code was not compiled"));
  EXPECT_THAT(parsed["remarks"].dump(), HasSubstr("the results were not checked on a host"));
}

TEST_F(NoMeasureTest, ExcludesWhatSaysHowToMeasure) {
  for (const char* option : {"--measure-all", "--quick"}) {
    const ProcessResult result = client_.Run({"submit", file_, "--no-measure", option});
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_THAT(result.err, HasSubstr(option));
  }
}

TEST_F(NoMeasureTest, AFirstAnswerIsMeasuredAndVerified) {
  const ProcessResult result =
      client_.Run({"submit", file_, "--size", "m=131", "--target", "host", "--quick", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json parsed = json::parse(result.out);
  EXPECT_EQ(parsed.count("predicted"), 0u);
  EXPECT_LE(parsed["candidates"].size(), 3u);
  for (const json& candidate : parsed["candidates"]) {
    EXPECT_EQ(candidate["outcome"], "OK") << candidate.dump();
    EXPECT_GT(candidate["measured_seconds"]["median"], 0.0);
    EXPECT_LE(candidate["max_relative_error"], candidate["tolerance"]);
  }
  EXPECT_THAT(parsed["remarks"].dump(), HasSubstr("a first answer"));
}

}  // namespace
}  // namespace fusion::testing
