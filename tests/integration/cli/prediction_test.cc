// Jobs teach the predictions of those that follow, and time only the candidates that may win.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kPredictedSource[] =
    "size n = 200003;\nvector[n] x, y, z, s, r;\nscalar a;\ninput a, x, y, z;\n"
    "s = axpy(a, x, y);\nr = vadd(s, z);\nreturn r;\n";

class PredictionTest : public ::testing::Test {
 protected:
  void SetUp() override { file_ = client_.Write("two_calls.fuse", kPredictedSource); }
  json Submit(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"submit", file_, "--target", "host", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProcessResult result = client_.Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  }
  ClientProgram client_;
  std::string file_;
};

TEST_F(PredictionTest, JobsTeachTheNextOnes) {
  const json first = Submit({"--measure-all", "--candidates", "6"});
  EXPECT_EQ(first["search"]["prediction"]["jobs"], 0);
  EXPECT_GE(first["search"]["timed"], 2);
  // A busy machine may leave some times, or all, unsteady: nothing is learned from these.
  const auto steady = std::count_if(first["candidates"].begin(), first["candidates"].end(),
                                    [](const json& candidate) { return candidate["steady"] == true; });
  const json second = Submit({"--candidates", "2"});
  EXPECT_EQ(second["search"]["prediction"]["jobs"], steady > 0 ? 1 : 0);
  EXPECT_EQ(second["search"]["prediction"]["candidates"], steady);
  // Warm times are another matter.
  EXPECT_EQ(Submit({"--candidates", "2", "--cache", "warm"})["search"]["prediction"]["jobs"], 0);
  ProcessResult shown = client_.Run({"jobs", "show", second["job"]});
  EXPECT_THAT(shown.out, HasSubstr(" timed; "));
  if (steady > 0) {
    EXPECT_THAT(shown.out, HasSubstr("learned from 1 job"));
  }
}

TEST_F(PredictionTest, AllCandidatesAreTimedOnRequestElseThoseThatMayWin) {
  const json all = Submit({"--measure-all", "--candidates", "8"});
  EXPECT_EQ(all["search"]["timed"], all["search"]["covers"]);
  EXPECT_EQ(all["candidates"].size(), size_t(all["search"]["covers"]));
  EXPECT_TRUE(all["search"]["notes"].empty()) << all["search"]["notes"].dump();
  EXPECT_GE(all["search"]["possible_gain"], 0.0);
  EXPECT_LE(all["search"]["possible_gain"], 1.0);
  const json race = Submit({"--candidates", "8"});
  EXPECT_EQ(race["candidates"].size(), size_t(race["search"]["timed"]));
  EXPECT_LE(race["search"]["timed"], race["search"]["covers"]);
  if (race["search"]["timed"] < race["search"]["covers"]) {
    EXPECT_THAT(race["search"]["notes"].dump(), HasSubstr("were not timed"));
  }
}

}  // namespace
}  // namespace fusion::testing
