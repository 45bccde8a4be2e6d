// What jobs measured, and `model report` on it afterwards, in processes of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two fusible calls, so that there are several candidates.
constexpr char kReportedSource[] =
    "size n = 40003;\nvector[n] x, y, z, s, r;\nscalar a;\ninput a, x, y, z;\n"
    "s = axpy(a, x, y);\nr = vadd(s, z);\nreturn r;\n";

class ModelReportTest : public ::testing::Test {
 protected:
  // Submits until a job has at least two times that are steady: beside other work the first may have none.
  json Submit(const std::string& cache) {
    const std::string file = client_.Write("two_calls.fuse", kReportedSource);
    json submitted;
    for (int attempt = 0; attempt < 5; ++attempt) {
      ProcessResult result = client_.Run({"submit", file, "--target", "host", "--candidates", "3",
                                          "--measure-all", "--cache", cache, "--json"});
      EXPECT_EQ(result.exit_code, 0) << result.err;
      submitted = json::parse(result.out, nullptr, false);
      if (result.exit_code != 0 || SteadyCount(submitted) >= 2) break;
    }
    return submitted;
  }
  static int64_t SteadyCount(const json& submitted) {
    return std::count_if(submitted["candidates"].begin(), submitted["candidates"].end(),
                         [](const json& candidate) { return candidate["steady"] == true; });
  }
  ProcessResult Report(std::vector<std::string> more) {
    more.insert(more.begin(), {"model", "report"});
    return client_.Run(more);
  }
  json ReportJson(std::vector<std::string> more = {}) {
    more.push_back("--json");
    ProcessResult result = Report(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out, nullptr, false);
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  ClientProgram client_;
};

// What the report must say of a job, from the output of the submission.
void ExpectReportOf(const json& submitted, const json& graph) {
  EXPECT_EQ(graph["job"], submitted["job"]);
  EXPECT_EQ(graph["graph"], "two_calls");
  EXPECT_EQ(graph["sizes"], "n=40003");
  EXPECT_EQ(graph["device"], submitted["device"]["name"]);
  EXPECT_EQ(graph["cache"], submitted["cache"]);
  std::map<int, double> measured;  // by predicted rank
  std::vector<double> errors;
  for (const json& candidate : submitted["candidates"]) {
    ASSERT_EQ(candidate["outcome"], "OK");
    if (!candidate["steady"]) continue;  // it says nothing of a prediction
    const double median = candidate["measured_seconds"]["median"];
    measured[candidate["predicted_rank"]] = median;
    errors.push_back(std::fabs(double(candidate["predicted_seconds"]) / median - 1));
  }
  ASSERT_GE(errors.size(), 2u);
  EXPECT_EQ(graph["candidates"], errors.size());
  std::sort(errors.begin(), errors.end());
  const double median_error = (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
  EXPECT_NEAR(double(graph["median_absolute_error"]), median_error, 1e-9 * median_error);
  std::vector<double> in_predicted_order;
  for (const auto& [rank, median] : measured) in_predicted_order.push_back(median);
  const auto fastest = std::min_element(in_predicted_order.begin(), in_predicted_order.end());
  EXPECT_EQ(graph["best_position"], fastest - in_predicted_order.begin() + 1);
  EXPECT_NEAR(double(graph["regret"]["first"]), in_predicted_order.front() / *fastest - 1, 1e-9);
}

// What the report says of a job; null: nothing.
json GraphOf(const json& report, const json& submitted) {
  for (const json& graph : report["graphs"])
    if (graph["job"] == submitted["job"]) return graph;
  return nullptr;
}

TEST_F(ModelReportTest, OfTwoJobs) {
  ProcessResult none = Report({});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("run fusion-client submit first"));

  const json cold = Submit("cold"), warm = Submit("warm");
  const json report = ReportJson();
  EXPECT_EQ(report["schema"], "fusion.model_report/1");
  ExpectReportOf(warm, GraphOf(report, warm));
  ExpectReportOf(cold, GraphOf(report, cold));
  size_t candidates = 0;
  for (const json& graph : report["graphs"]) candidates += size_t(graph["candidates"]);
  EXPECT_EQ(report["candidates"], candidates);
  EXPECT_TRUE(report["measured_plot"].is_null());

  for (const std::vector<std::string>& filter : std::vector<std::vector<std::string>>{
           {"--cache", "cold"}, {"--cache=cold", "--device", cold["device"]["name"]}}) {
    const json filtered = ReportJson(filter);
    EXPECT_FALSE(GraphOf(filtered, cold).is_null());
    EXPECT_TRUE(GraphOf(filtered, warm).is_null());
  }
  const json newest = ReportJson({"--jobs", "1"});
  ASSERT_EQ(newest["graphs"].size(), 1u);
  EXPECT_EQ(newest["graphs"][0]["job"], warm["job"]);
  ProcessResult other = Report({"--device", "none such"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err,
              HasSubstr("on device none such; there are jobs on " + std::string(cold["device"]["name"])));

  const std::string folder = client_.folder() + "/new/plots";
  const json plotted = ReportJson({"--plots", folder});
  EXPECT_EQ(plotted["measured_plot"], folder + "/predicted_vs_measured.svg");
  EXPECT_EQ(plotted["convergence_plot"], folder + "/convergence.svg");
  for (const char* name : {"/predicted_vs_measured.svg", "/convergence.svg"})
    EXPECT_THAT(Content(folder + name), AllOf(StartsWith("<svg"), EndsWith("</svg>\n"),
                                              HasSubstr("two_calls, warm"), HasSubstr("two_calls, cold")))
        << name;

  // Again: what was written by the first is replaced; what was not is not.
  ProcessResult text = Report({"--plots", folder, "--jobs", "1"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("two_calls  n=40003"), HasSubstr("1 graph, "),
                              EndsWith("plots: " + folder + "/predicted_vs_measured.svg, " + folder +
                                       "/convergence.svg\n")));
  EXPECT_THAT(Content(folder + "/convergence.svg"), HasSubstr("1 graph;"));
  client_.Write("new/plots/convergence.svg", "mine");
  ProcessResult refused = Report({"--plots", folder});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("convergence.svg: is no plot"));
  EXPECT_EQ(Content(folder + "/convergence.svg"), "mine");
}

}  // namespace
}  // namespace fusion::testing
