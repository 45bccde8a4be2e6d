#include "server/accuracy/accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/accuracy/predictions.h"

namespace fusion {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GraphAccuracy Assess(const PredictedGraph& graph) {
  const auto accuracy = AssessPredictions({graph});
  EXPECT_TRUE(accuracy.ok()) << accuracy.status();
  return accuracy->graphs.at(0);
}

// The message of the error that they give.
std::string Error(const std::vector<PredictedGraph>& graphs) {
  const auto accuracy = AssessPredictions(graphs);
  EXPECT_EQ(accuracy.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckPredictions(graphs), accuracy.status());
  return std::string(accuracy.status().message());
}

TEST(AssessPredictions, FiguresByHand) {
  // Errors: 0.5, 0.25, 0, 0.1; ratios: 0.5, 1.25, 1, 1.1. Discordant: (1, 2), (1, 3), (1, 4).
  const GraphAccuracy accuracy = Assess(MakeGraph("g", {{2, 4}, {2.5, 2}, {3, 3}, {3.85, 3.5}}));
  EXPECT_EQ(accuracy.candidates, 4);
  EXPECT_DOUBLE_EQ(accuracy.median_absolute_error, (0.1 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(accuracy.bias, std::sqrt(1 * 1.1));
  EXPECT_DOUBLE_EQ(*accuracy.kendall_tau, 0);
  EXPECT_THAT(accuracy.fastest_positions, ElementsAre(2, 3, 4, 1));
  EXPECT_EQ(accuracy.best_position, 2);
  EXPECT_EQ(accuracy.best_position_with_ties, 2);
  EXPECT_DOUBLE_EQ(accuracy.regret.first, 1);
  EXPECT_EQ(accuracy.regret.first_3, 0);
  EXPECT_EQ(accuracy.regret.first_5, 0);
}

TEST(AssessPredictions, PerfectAndReversedOrder) {
  const GraphAccuracy perfect = Assess(MakeGraph("g", {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}}));
  EXPECT_EQ(perfect.kendall_tau, 1);
  EXPECT_EQ(perfect.median_absolute_error, 0);
  EXPECT_EQ(perfect.bias, 1);
  EXPECT_THAT(perfect.fastest_positions, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(perfect.regret.first, 0);

  const GraphAccuracy reversed = Assess(MakeGraph("g", {{1, 6}, {2, 5}, {3, 4}, {4, 3}, {5, 2}, {6, 1}}));
  EXPECT_EQ(reversed.kendall_tau, -1);
  EXPECT_THAT(reversed.fastest_positions, ElementsAre(6, 5, 4, 3, 2));
  EXPECT_EQ(reversed.best_position, 6);
  EXPECT_EQ(reversed.regret.first, 5);
  EXPECT_EQ(reversed.regret.first_3, 3);
  EXPECT_EQ(reversed.regret.first_5, 1);
}

TEST(AssessPredictions, BiasSaysWhichWay) {
  EXPECT_DOUBLE_EQ(Assess(MakeGraph("g", {{2, 1}, {4, 2}, {9, 3}})).bias, 2);
  EXPECT_DOUBLE_EQ(Assess(MakeGraph("g", {{1, 2}, {2, 4}, {3, 9}})).bias, 0.5);
}

TEST(AssessPredictions, OneCandidate) {
  const GraphAccuracy accuracy = Assess(MakeGraph("g", {{3, 2}}));
  EXPECT_EQ(accuracy.candidates, 1);
  EXPECT_EQ(accuracy.kendall_tau, std::nullopt);
  EXPECT_DOUBLE_EQ(accuracy.median_absolute_error, 0.5);
  EXPECT_DOUBLE_EQ(accuracy.bias, 1.5);
  EXPECT_THAT(accuracy.fastest_positions, ElementsAre(1));
  EXPECT_EQ(accuracy.best_position_with_ties, 1);
  EXPECT_EQ(accuracy.regret.first_5, 0);
}

TEST(AssessPredictions, PositionsCountMeasuredCandidatesInPredictedOrder) {
  PredictedGraph graph = MakeGraph("g", {{1, 3}, {2, 1}, {3, 2}});
  graph.candidates[0].predicted_rank = 9;
  graph.candidates[1].predicted_rank = 4;
  graph.candidates[2].predicted_rank = 2;
  EXPECT_THAT(PredictedOrder(graph), ElementsAre(2, 1, 0));
  EXPECT_THAT(Assess(graph).fastest_positions, ElementsAre(2, 1, 3));
  EXPECT_THAT(BestSoFar(graph), ElementsAre(2, 1, 1));
}

TEST(AssessPredictions, WhoseIntervalOverlapsTheFastestCountsAsBest) {
  // The fastest is the fourth, 0.97 to 1.03; the second reaches down to 1.02, the first to 1.04 only.
  PredictedGraph graph = MakeGraph("g", {{1, 1.2}, {2, 1.1}, {3, 2}, {4, 1, 0.03}, {5, 1.01}});
  graph.candidates[0].low_seconds = 1.04;
  graph.candidates[1].low_seconds = 1.02;
  EXPECT_EQ(Assess(graph).best_position, 4);
  EXPECT_EQ(Assess(graph).best_position_with_ties, 2);
  // Touching is overlapping, as in server/rank; a wide interval of a slow candidate reaches as well.
  graph.candidates[0].low_seconds = graph.candidates[3].high_seconds;
  EXPECT_EQ(Assess(graph).best_position_with_ties, 1);
}

TEST(AssessPredictions, OfEqualMediansTheFirstPredictedIsFirst) {
  const GraphAccuracy accuracy = Assess(MakeGraph("g", {{1, 2}, {2, 1}, {3, 2}, {4, 1}}));
  EXPECT_THAT(accuracy.fastest_positions, ElementsAre(2, 4, 1, 3));
  EXPECT_EQ(accuracy.best_position, 2);
  EXPECT_THAT(Assess(MakeGraph("g", std::vector<PredictedTime>(100, {1, 2}))).fastest_positions,
              ElementsAre(1, 2, 3, 4, 5));
}

TEST(AssessPredictions, SummaryOverGraphs) {
  const std::vector<PredictedGraph> graphs = {
      MakeGraph("perfect", {{1, 1}, {2, 2}}),
      MakeGraph("reversed", {{1, 6}, {2, 5}, {3, 4}, {4, 3}, {5, 2}, {6, 1}}),
      MakeGraph("one", {{3, 2}}),
      // Tau 3 / 7; the best of the first three is 1.5 % off.
      MakeGraph("near", {{1, 1.03}, {1.25, 1.02}, {1.5, 1.015}, {2, 1, 0.02}, {3, 4}, {5, 6}, {6, 7}}),
  };
  const auto accuracy = AssessPredictions(graphs);
  ASSERT_TRUE(accuracy.ok()) << accuracy.status();
  const AccuracySummary& summary = accuracy->summary;
  ASSERT_EQ(accuracy->graphs.size(), 4u);
  EXPECT_EQ(accuracy->graphs[2].candidates, 1);
  EXPECT_EQ(summary.graphs, 4);
  EXPECT_EQ(summary.candidates, 16);
  // Errors: 0, 0; 5/6, 3/5, 1/4, 1/3, 3/2, 5; 1/2; 0.029, 0.225, 0.478, 1, 1/4, 1/6, 1/7. The middle two: 1/4
  // and 1/3.
  EXPECT_DOUBLE_EQ(summary.median_absolute_error, (1.0 / 4 + 1.0 / 3) / 2);
  EXPECT_EQ(summary.graphs_with_tau, 3);
  const double near = 9.0 / 21;  // 6 of 21 pairs are discordant
  EXPECT_THAT(accuracy->graphs[3].kendall_tau, testing::Optional(DoubleEq(near)));
  EXPECT_DOUBLE_EQ(*summary.median_tau, near);
  EXPECT_DOUBLE_EQ(*summary.mean_tau, near / 3);
  EXPECT_EQ(summary.min_tau, -1);
  EXPECT_DOUBLE_EQ(summary.best_in_first_5, 3.0 / 4);
  EXPECT_DOUBLE_EQ(summary.best_in_first_5_with_ties, 3.0 / 4);
  EXPECT_DOUBLE_EQ(summary.first_3_within_2_percent, 3.0 / 4);
  EXPECT_DOUBLE_EQ(summary.median_regret.first, (1.03 - 1) / 2);
  EXPECT_DOUBLE_EQ(summary.max_regret.first, 5);
  EXPECT_DOUBLE_EQ(summary.max_regret.first_3, 3);
  EXPECT_DOUBLE_EQ(summary.median_regret.first_5, 0);
  EXPECT_DOUBLE_EQ(summary.max_regret.first_5, 1);
}

TEST(AssessPredictions, TheFourthIsNotAmongTheFirstThree) {
  const auto accuracy = AssessPredictions({MakeGraph("g", {{1, 1.04}, {2, 1.03}, {3, 1.05}, {4, 1}})});
  ASSERT_TRUE(accuracy.ok()) << accuracy.status();
  EXPECT_EQ(accuracy->summary.first_3_within_2_percent, 0);
  EXPECT_EQ(accuracy->summary.best_in_first_5, 1);
}

TEST(AssessPredictions, TiesCanBringTheBestAmongTheFirstFive) {
  PredictedGraph graph = MakeGraph("g", {{1, 9}, {2, 8}, {3, 7}, {4, 6}, {5, 5}, {6, 1}});
  graph.candidates[4].low_seconds = 1;
  const auto accuracy = AssessPredictions({graph});
  ASSERT_TRUE(accuracy.ok()) << accuracy.status();
  EXPECT_EQ(accuracy->summary.best_in_first_5, 0);
  EXPECT_EQ(accuracy->summary.best_in_first_5_with_ties, 1);
}

TEST(AssessPredictions, WithoutAnyTauThereIsNone) {
  const auto accuracy = AssessPredictions({MakeGraph("one", {{3, 2}}), MakeGraph("equal", {{3, 2}, {3, 4}})});
  ASSERT_TRUE(accuracy.ok()) << accuracy.status();
  EXPECT_EQ(accuracy->summary.graphs_with_tau, 0);
  EXPECT_EQ(accuracy->summary.median_tau, std::nullopt);
  EXPECT_EQ(accuracy->summary.mean_tau, std::nullopt);
  EXPECT_EQ(accuracy->summary.min_tau, std::nullopt);
}

TEST(AssessPredictions, RejectsTimesThatAreNoneNamingTheCandidate) {
  const double kBad[] = {0, -1, std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::infinity()};
  for (double PredictedCandidate::*time :
       {&PredictedCandidate::predicted_seconds, &PredictedCandidate::measured_seconds,
        &PredictedCandidate::low_seconds, &PredictedCandidate::high_seconds})
    for (double bad : kBad) {
      std::vector<PredictedGraph> graphs = {MakeGraph("good", {{1, 1}}), MakeGraph("bad", {{1, 1}, {2, 2}})};
      graphs[1].candidates[1].*time = bad;
      const std::string error = Error(graphs);
      EXPECT_THAT(error, HasSubstr("bad, n=1024, device, cold: candidate bad2: "));
      EXPECT_THAT(error, HasSubstr("must be finite and above 0 s"));
    }
}

TEST(AssessPredictions, RejectsWhatCannotBe) {
  EXPECT_THAT(Error({}), HasSubstr("no graphs"));
  EXPECT_THAT(Error({MakeGraph("good", {{1, 1}}), MakeGraph("empty", {})}),
              HasSubstr("leave the graph out: empty"));
  PredictedGraph graph = MakeGraph("g", {{1, 1}, {2, 2}});
  graph.candidates[1].predicted_rank = 1;
  EXPECT_THAT(Error({graph}), HasSubstr("candidate g2: each candidate has a predicted rank of its own"));
  graph.candidates[1].predicted_rank = 0;
  EXPECT_THAT(Error({graph}), HasSubstr("candidate g2: predicted ranks count from 1"));
  graph = MakeGraph("g", {{1, 1}, {2, 2}});
  graph.candidates[0].low_seconds = 1.5;
  EXPECT_THAT(Error({graph}), HasSubstr("candidate g1: the measured interval must hold the median"));
  // The same rank in two graphs is no matter.
  EXPECT_TRUE(CheckPredictions({MakeGraph("a", {{1, 1}}), MakeGraph("b", {{1, 1}})}).ok());
}

TEST(BestSoFar, DescendsToOne) {
  EXPECT_THAT(BestSoFar(MakeGraph("g", {{1, 3}, {2, 4}, {3, 2.5}, {4, 2}, {5, 9}})),
              ElementsAre(1.5, 1.5, 1.25, 1, 1));
  EXPECT_TRUE(BestSoFar(MakeGraph("g", {})).empty());
}

TEST(GraphLabel, LeavesOutWhatIsEmpty) {
  PredictedGraph graph = MakeGraph("bicgk", {});
  EXPECT_EQ(GraphLabel(graph), "bicgk, n=1024, device, cold");
  graph.sizes = graph.cache = "";
  EXPECT_EQ(GraphLabel(graph), "bicgk, device");
  graph.name = "";
  EXPECT_EQ(GraphLabel(graph), "device");
}

}  // namespace
}  // namespace fusion
