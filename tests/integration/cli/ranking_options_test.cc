// --cache and --deterministic reach the search and the measuring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/folders.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class RankingOptionsTest : public ::testing::Test {
 protected:
  // The search for an architecture that no machine needs to have.
  json Explain(const std::string& example, std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "explain",  testing::SourceFolder() + "/examples/" + example + ".fuse",
        "--target", "cuda",
        "--arch",   "sm_90",
        "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProcessResult result = client_.Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out, nullptr, false);
  }
  static int AtomicCandidates(const json& explained) {
    int atomic = 0;
    for (const json& candidate : explained["candidates"])
      atomic += std::string(candidate["description"]).find("atomic") != std::string::npos;
    return atomic;
  }
  ClientProgram client_;
};

TEST_F(RankingOptionsTest, DeterministicLeavesOutAtomicSums) {
  EXPECT_GT(AtomicCandidates(Explain("axpydot", {})), 0);
  const json deterministic = Explain("axpydot", {"--deterministic"});
  EXPECT_FALSE(deterministic["candidates"].empty());
  EXPECT_EQ(AtomicCandidates(deterministic), 0);
}

TEST_F(RankingOptionsTest, WarmDataArePredictedToComeFromTheCacheAsFarAsTheyFit) {
  auto predicted = [&](const std::string& size, const std::string& cache) {
    const json explained = Explain("axpydot", {"--size", "n=" + size, "--cache", cache});
    return double(explained["candidates"][0]["predicted_seconds"]);
  };
  EXPECT_LT(predicted("1048576", "warm"), predicted("1048576", "cold"));
  // But for the first accesses, and since no cold time is predicted below what its bytes take at the rate of
  // a copy, which kernels that mostly read exceed by less than 1 %.
  EXPECT_NEAR(predicted("1073741824", "warm") / predicted("1073741824", "cold"), 1, 1e-2);
}

TEST_F(RankingOptionsTest, WarmTimesRankASubmission) {
  const std::string file = client_.Write("two_calls.fuse",
                                         "size n = 40003;\nvector[n] x, y, z, s, r;\nscalar a;\ninput a, x, "
                                         "y, z;\ns = axpy(a, x, y);\nr = vadd(s, z);\nreturn r;\n");
  ProcessResult result =
      client_.Run({"submit", file, "--target", "host", "--candidates", "3", "--cache", "warm", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json warm = json::parse(result.out);
  EXPECT_EQ(warm["cache"], "warm");
  EXPECT_EQ(warm["unfused"]["measured_seconds"], warm["unfused"]["warm_seconds"]);
  ASSERT_FALSE(warm["candidates"].empty());
  for (const json& candidate : warm["candidates"]) {
    EXPECT_EQ(candidate["measured_seconds"], candidate["warm_seconds"]) << candidate.dump();
    EXPECT_GT(candidate["cold_seconds"]["samples"], 0);
  }
  ProcessResult shown = client_.Run({"jobs", "show", warm["job"]});
  EXPECT_THAT(shown.out, HasSubstr("; warm times\n"));
}

}  // namespace
}  // namespace fusion::testing
