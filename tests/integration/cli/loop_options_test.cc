// Loops in C with the options that graphs have: submit x.c --no-measure, --input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/integration/exported_folder_build.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LoopOptionsTest : public ::testing::Test {
 protected:
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  static std::string Matmul() { return SourceFolder() + "/examples/loops/matmul.c"; }
  std::string folder() const { return client_.folder() + "/code"; }
  // Runs `submit --no-measure` and checks what holds for any target.
  json Predicted(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"submit", Matmul(), "--no-measure", "--json", "--output", folder()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = client_.Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const json parsed = json::parse(result.out, nullptr, false);
    EXPECT_EQ(parsed["state"], "SUCCEEDED");
    EXPECT_EQ(parsed["predicted"], true);
    EXPECT_GE(parsed["candidates"].size(), 2u);
    EXPECT_LE(parsed["candidates"].size(), 5u);
    double before = 0;
    for (const json& candidate : parsed["candidates"]) {
      EXPECT_EQ(candidate["outcome"], "OK") << candidate.dump();
      EXPECT_TRUE(candidate["measured_seconds"].is_null());
      EXPECT_GE(candidate["predicted_seconds"], before);
      before = candidate["predicted_seconds"];
      EXPECT_LE(candidate["max_relative_error"], candidate["tolerance"]);
    }
    EXPECT_THAT(Content(folder() + "/README.md"),
                AllOf(HasSubstr("PREDICTED: nothing was measured"), Not(HasSubstr("Verified on"))));
    return parsed;
  }
  ClientProgram client_;
};

TEST_F(LoopOptionsTest, CudaCodeNeedsNoGpu) {
  const json result = Predicted({"--target", "cuda", "--arch", "sm_80", "--size", "N=4096"});
  EXPECT_EQ(result["device"]["arch"], "sm_80");
  EXPECT_THAT(Content(folder() + "/fused.cu"), HasSubstr("__global__"));
  // The kernels for the GPU were computed on this machine, at sizes that their tiles divide.
  EXPECT_GT(result["candidates"][0]["tolerance"], 0.0);
  EXPECT_EQ(json::parse(client_.Run({"jobs", "list", "--json"}).out)["jobs"][0]["best"]["predicted"], true);
}

TEST_F(LoopOptionsTest, HostCodeIsChecked) {
  const json result = Predicted({"--target", "host", "--size", "N=1000"});
  EXPECT_GT(result["candidates"][0]["tolerance"], 0.0);
  EXPECT_EQ(result["remarks"].size(), 0u) << result["remarks"].dump();
  ASSERT_EQ(CompileHostFolder(folder()).exit_code, 0) << CompileHostFolder(folder()).output;
  EXPECT_THAT(RunExample(folder(), "N=96 --once").output, HasSubstr("OK"));
}

TEST_F(LoopOptionsTest, PredictionsNeedNoWorker) {
  ServerProcess server(client_);
  const std::vector<std::string> submit = {"submit",       Matmul(),   "--size",        "N=512",
                                           "--no-measure", "--target", "cuda",          "--arch",
                                           "sm_90",        "--server", server.address()};
  const ProcessResult text = client_.Run(submit);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("PREDICTED: nothing was measured"), HasSubstr("the code was not compiled"),
                    HasSubstr("the results were not checked on a host"), HasSubstr("B0=")));
}

TEST_F(LoopOptionsTest, APredictionThatIsWrongOnTheHostIsNotRanked) {
  client_.SetEnvironment("OMP_NUM_THREADS", "1");
  const std::string wrong = client_.Write("wrong.c",
                                          "int n;\nfloat a[n];\n#pragma omp parallel for\n"
                                          "for (int i = 1; i < n; i++)\n"
                                          "  a[i] = a[(i * i - 1) / (i + 1)] + 1;\n");
  const ProcessResult result =
      client_.Run({"submit", wrong, "--size", "n=20000", "--target", "host", "--no-measure"});
  EXPECT_THAT(result.out + result.err,
              AllOf(HasSubstr("WRONG_RESULT"), HasSubstr("a run of its blocks backwards")));
}

}  // namespace
}  // namespace fusion::testing
