#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "client/cli/render.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void SetRegret(v1::PredictionRegret* regret, double first, double first_3, double first_5) {
  regret->set_first(first);
  regret->set_first_3(first_3);
  regret->set_first_5(first_5);
}

// Two graphs; the second one has no tau.
v1::ReportModelResponse SampleReport() {
  v1::ReportModelResponse report;
  v1::GraphAccuracy* graph = report.add_graphs();
  graph->set_job("jobs/2");
  graph->set_graph("bicgk");
  graph->set_sizes("m=4093,n=5001");
  graph->set_device("Example GPU");
  graph->set_cache(v1::COLD);
  graph->set_candidates(1030);
  graph->set_median_absolute_error(0.123);
  graph->set_bias(0.95);
  graph->set_kendall_tau(0.8125);
  for (int position : {2, 1, 3, 12, 5}) graph->add_fastest_positions(position);
  graph->set_best_position(2);
  graph->set_best_position_with_ties(1);
  SetRegret(graph->mutable_regret(), 0.034, 0.002, 0);
  graph = report.add_graphs();
  graph->set_job("jobs/1");
  graph->set_graph("add");
  graph->set_sizes("n=1000");
  graph->set_device("Example GPU");
  graph->set_cache(v1::WARM);
  graph->set_candidates(1);
  graph->set_bias(1);
  graph->add_fastest_positions(1);
  graph->set_best_position(1);
  graph->set_best_position_with_ties(1);
  graph->mutable_regret();
  report.set_candidates(1031);
  report.set_median_absolute_error(0.0815);
  report.set_median_kendall_tau(0.8125);
  report.set_mean_kendall_tau(0.75);
  report.set_least_kendall_tau(-0.5);
  report.set_best_in_first_5(0.5);
  report.set_best_in_first_5_with_ties(1);
  report.set_first_3_within_2_percent(0.75);
  SetRegret(report.mutable_median_regret(), 0.017, 0.001, 0);
  SetRegret(report.mutable_largest_regret(), 0.34, 0.02, 0.005);
  return report;
}

TEST(RenderModelTest, ALineForEachGraphAndASummaryInWords) {
  EXPECT_EQ(ModelReportText(SampleReport(), TextStyle()),
            R"(graph  sizes          cache  candidates  median error   tau  fastest at  first slower by
bicgk  m=4093,n=5001  cold        1,030          12 %  0.81  2 1 3 12 5            3.4 %
add    n=1000         warm            1           0 %     -  1                       0 %

fastest at: positions in predicted order of the five fastest, fastest first
first slower by: than the fastest, were only the best predicted one measured

2 graphs, 1,031 candidates on Example GPU
predicted times are off by 8.2 % in the median over all candidates
their order against the measured one (Kendall's tau; 1: the same, 0: no relation): 0.81 in the median, 0.75 on average, -0.50 at least
the fastest is among the first five predicted for 50 % of the graphs; it or one that cannot be told from it, for 100 %
the best of the first three predicted is within 2 % of the fastest for 75 % of the graphs
the first predicted is slower than the fastest by 1.7 % in the median, 34 % at most
the best of the first three is slower than the fastest by 0.1 % in the median, 2.0 % at most
the best of the first five is slower than the fastest by 0 % in the median, 0.5 % at most
)");
}

TEST(RenderModelTest, DevicesAreNamedInLinesWhenThereAreSeveral) {
  v1::ReportModelResponse report = SampleReport();
  EXPECT_THAT(ModelReportText(report, TextStyle()), Not(HasSubstr("device")));
  report.mutable_graphs(1)->set_device("Other");
  const std::string text = ModelReportText(report, TextStyle());
  EXPECT_THAT(text, HasSubstr("graph  sizes          device       cache"));
  EXPECT_THAT(text, HasSubstr("add    n=1000         Other        warm"));
  EXPECT_THAT(text, HasSubstr("1,031 candidates on 2 devices\n"));
}

TEST(RenderModelTest, WithoutAnyTauItSaysWhy) {
  v1::ReportModelResponse report = SampleReport();
  report.clear_median_kendall_tau();
  report.clear_mean_kendall_tau();
  report.clear_least_kendall_tau();
  EXPECT_THAT(ModelReportText(report, TextStyle()),
              HasSubstr("0: no relation): none, no graph has candidates whose times differ\n"));
}

TEST(RenderModelTest, JsonMirrorsTheMessage) {
  const Json json = ModelReportJson(SampleReport(), "p/predicted_vs_measured.svg", "");
  EXPECT_EQ(json, Json::parse(R"({
    "schema": "fusion.model_report/1",
    "graphs": [
      {"job": "jobs/2", "graph": "bicgk", "sizes": "m=4093,n=5001", "device": "Example GPU", "cache": "cold",
       "candidates": 1030, "median_absolute_error": 0.123, "bias": 0.95, "kendall_tau": 0.8125,
       "fastest_positions": [2, 1, 3, 12, 5], "best_position": 2, "best_position_with_ties": 1,
       "regret": {"first": 0.034, "first_3": 0.002, "first_5": 0.0}},
      {"job": "jobs/1", "graph": "add", "sizes": "n=1000", "device": "Example GPU", "cache": "warm",
       "candidates": 1, "median_absolute_error": 0.0, "bias": 1.0, "kendall_tau": null,
       "fastest_positions": [1], "best_position": 1, "best_position_with_ties": 1,
       "regret": {"first": 0.0, "first_3": 0.0, "first_5": 0.0}}],
    "candidates": 1031,
    "median_absolute_error": 0.0815,
    "median_kendall_tau": 0.8125,
    "mean_kendall_tau": 0.75,
    "least_kendall_tau": -0.5,
    "best_in_first_5": 0.5,
    "best_in_first_5_with_ties": 1.0,
    "first_3_within_2_percent": 0.75,
    "median_regret": {"first": 0.017, "first_3": 0.001, "first_5": 0.0},
    "largest_regret": {"first": 0.34, "first_3": 0.02, "first_5": 0.005},
    "measured_plot": "p/predicted_vs_measured.svg",
    "convergence_plot": null})"));
}

TEST(RenderModelTest, JsonOfWhatIsMissingIsNull) {
  const Json json = ModelReportJson({}, "", "");
  for (const char* key :
       {"median_kendall_tau", "mean_kendall_tau", "least_kendall_tau", "measured_plot", "convergence_plot"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_TRUE(json.at("graphs").is_array());
}

TEST(ModelResetTest, SaysWhatWasForgotten) {
  v1::ResetModelResponse forgotten;
  forgotten.set_kernel_times(1204);
  forgotten.set_statistics(1);
  EXPECT_EQ(ModelResetText(forgotten),
            "forgotten: times of 1,204 kernels, 1 set of corrections, times of 0 routines\n"
            "later jobs measure and learn them anew\n");
  const Json json = ModelResetJson(forgotten);
  EXPECT_EQ(json["schema"], "fusion.model_reset/1");
  EXPECT_EQ(json["kernel_times"], 1204);
  EXPECT_EQ(json["statistics"], 1);
  EXPECT_EQ(json["routine_tables"], 0);
}

}  // namespace
}  // namespace fusion
