// Whatever lp_solve answers, covers are valid, bounds are bounds, and what is said to be proved is the best.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "server/linear/partition_program.h"
#include "tests/property/cover/small_graphs.h"
#include "tests/random_dags.h"

namespace fusion {
namespace {

using ::testing::Contains;
using testing::ConvexProblem;
using testing::DagOf;
using testing::Fault;
using ::testing::HasSubstr;

// What solve() of lp_solve 5.5 returns but for success: no memory, suboptimal, infeasible, unbounded,
// degenerate, numerical failure, aborted, out of time, presolved, accuracy error.
constexpr int kFailures[] = {-2, 1, 2, 3, 4, 5, 6, 7, 9, 25};
constexpr int kOptimal = 0;
// Solutions are taken to be the same that differ by less (relaxation.cc).
constexpr double kRounding = 2e-5;

void ExpectHonest(const CoverProblem& problem, const absl::StatusOr<CoverResult>& solved, double best) {
  ASSERT_TRUE(solved.ok()) << solved.status();
  ASSERT_FALSE(solved->covers.empty());
  for (const CoverSolution& cover : solved->covers) {
    EXPECT_EQ(Fault(problem, cover), "");
    EXPECT_GE(cover.seconds, best * (1 - 1e-9));
    EXPECT_GE(cover.seconds, solved->covers[0].seconds);
  }
  const double first = solved->covers[0].seconds;
  EXPECT_LE(solved->bound_seconds, first);
  EXPECT_LE(solved->bound_seconds, best * (1 + kRounding));
  if (solved->proved_optimal) {
    EXPECT_LE(first, best * (1 + kRounding));
  }
}

CoverProblem Random(int count, std::mt19937& random) {
  const uint64_t all = (uint64_t{1} << (count * (count - 1) / 2)) - 1;
  return ConvexProblem(DagOf(count, (random() | uint64_t{random()} << 32) & all), count < 8 ? 1.0 : 0.4, 1,
                       random);
}

double Best(const CoverProblem& problem) { return BruteForceCovers(problem, {})->covers[0].seconds; }

// Every failure at every call, and at it and all that follow.
TEST(EngineFailures, OfEveryKindAtEveryCallLeaveAValidCover) {
  std::mt19937 random(5);
  int failed = 0;
  for (int round = 0; round < 12; ++round) {
    const CoverProblem problem = Random(4 + round % 5, random);
    const double best = Best(problem);
    int calls = 0;
    ASSERT_TRUE(SolveCovers(problem, {.count = 3, .filter = [&](EngineAnswer&) { ++calls; }}).ok());
    for (int status : kFailures)
      for (bool ever_after : {false, true})
        for (int at = 0; at < calls; ++at) {
          SCOPED_TRACE(::testing::Message() << "round " << round << " status " << status << " at " << at);
          int call = 0;
          const auto solved = SolveCovers(problem, {.count = 3, .filter = [&](EngineAnswer& answer) {
                                                      const bool now = ever_after ? call >= at : call == at;
                                                      if (now) answer = {.status = status};
                                                      ++call;
                                                    }});
          ExpectHonest(problem, solved, best);
          // So small a graph has few down-sets.
          EXPECT_TRUE(solved->proved_optimal);
          // Of programs that all fail none can have been solved.
          if (ever_after && at == 0) {
            EXPECT_THAT(solved->notes, Contains(HasSubstr("lp_solve failed")));
            ++failed;
          }
          if (::testing::Test::HasFailure()) return;
        }
  }
  EXPECT_GT(failed, 0);
}

// Answers that claim to be optimal and are not: other values, prices or parts of them.
void Disturb(EngineAnswer& answer, std::mt19937& random) {
  if (answer.status != kOptimal) return;
  std::uniform_real_distribution<double> unit(0, 1);
  auto any = [&](std::vector<double>& numbers) -> double& { return numbers[random() % numbers.size()]; };
  switch (random() % 10) {
    case 0:
      any(answer.values) += unit(random);
      break;
    case 1:
      any(answer.values) = 0;
      break;
    case 2:
      std::shuffle(answer.values.begin(), answer.values.end(), random);
      break;
    case 3:
      any(answer.values) = std::numeric_limits<double>::quiet_NaN();
      break;
    case 4:
      for (double& value : answer.values) value = std::round(value);
      break;
    case 5:
      if (!answer.row_prices.empty()) any(answer.row_prices) *= 1 + unit(random);
      break;
    case 6:
      if (!answer.row_prices.empty()) any(answer.row_prices) = std::numeric_limits<double>::infinity();
      break;
    case 7:
      answer.row_prices.clear();
      break;
    case 8:
      for (double& price : answer.row_prices) price = -price;
      break;
    case 9:  // every node is left uncovered: those variables come first
      std::fill(answer.values.begin(), answer.values.end(), 0.0);
      for (size_t i = 0; i < std::min(answer.values.size(), answer.row_prices.size()); ++i)
        answer.values[i] = 1;
      break;
  }
}

TEST(EngineFailures, WrongAnswersAreNotBelieved) {
  std::mt19937 random(17);
  int proved = 0, noted = 0;
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const CoverProblem problem = Random(4 + round % 6, random);
    const double often = round % 3 == 0 ? 1.0 : round % 3 == 1 ? 0.3 : 0.05;
    std::uniform_real_distribution<double> unit(0, 1);
    int disturbed = 0;
    const auto solved =
        SolveCovers(problem, {.count = 4, .filter = [&](EngineAnswer& answer) {
                                if (unit(random) >= often) return;
                                ++disturbed;
                                if (random() % 3 == 0)
                                  answer = {.status = kFailures[random() % std::size(kFailures)]};
                                else
                                  Disturb(answer, random);
                              }});
    ExpectHonest(problem, solved, Best(problem));
    if (::testing::Test::HasFailure()) return;
    proved += disturbed > 0 && solved->proved_optimal;
    noted += disturbed > 0 && !solved->notes.empty();
  }
  EXPECT_GT(proved, 100);
  EXPECT_GT(noted, 100);
}

// Off by less than answers are checked to, lp_solve would have the second best proved; narrow graphs are
// solved by down-sets too.
TEST(EngineFailures, ThatAreWithinRoundingAreSeenByDownSets) {
  CoverProblem problem{.node_count = 2, .successors = {{1}, {}}};
  const double together = 2 * (1 - 2e-6);
  problem.columns = {{testing::SetOf(1), 1}, {testing::SetOf(2), 1}, {testing::SetOf(3), together}};
  int answers = 0;
  const auto solved = SolveCovers(problem, {.filter = [&](EngineAnswer& answer) {
                                    // Neither node uncovered, each by itself; each is worth its own set.
                                    ASSERT_EQ(answer.values.size(), 5u);
                                    const double one = 3 / (2 + together);
                                    answer = {.values = {0, 0, 1, 1, 0}, .row_prices = {one, one}};
                                    ++answers;
                                  }});
  EXPECT_GT(answers, 0);
  ExpectHonest(problem, solved, together);
  EXPECT_EQ(solved->covers[0].seconds, together);
  EXPECT_TRUE(solved->proved_optimal);
  EXPECT_THAT(solved->notes, Contains(HasSubstr("lp_solve's best cover is slower")));
}

// The same where the search branches, cuts and makes windows, against the best by down-sets.
TEST(EngineFailures, OfLargerGraphsLeaveAValidCover) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const FusibleSetProblem dag = testing::RandomDag(20, seed);
    const CoverProblem problem =
        testing::TrafficProblem(dag, EnumerateFusibleSets(dag, {.max_nodes = 5}).sets);
    const auto by_down_sets = DownSetCovers(problem, {});
    ASSERT_TRUE(by_down_sets.ok()) << by_down_sets.status();
    for (double often : {0.02, 0.2, 1.0}) {
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> unit(0, 1);
      const auto solved = SolveCovers(problem, {.count = 3, .filter = [&](EngineAnswer& answer) {
                                                  if (unit(random) < often) Disturb(answer, random);
                                                }});
      ExpectHonest(problem, solved, by_down_sets->covers[0].seconds);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Graphs of too many nodes and down-sets for the other engine: single nodes and a bound from dual ascent.
TEST(EngineFailures, OfGraphsThatAreTooWideForDownSetsLeaveAValidCover) {
  const FusibleSetProblem dag = testing::RandomDag(160, 4);
  const CoverProblem problem = testing::TrafficProblem(dag, EnumerateFusibleSets(dag, {.max_nodes = 4}).sets);
  const auto solved =
      SolveCovers(problem, {.count = 2, .filter = [](EngineAnswer& answer) { answer = {.status = 5}; }});
  ASSERT_TRUE(solved.ok()) << solved.status();
  for (const CoverSolution& cover : solved->covers) EXPECT_EQ(Fault(problem, cover), "");
  EXPECT_GT(solved->bound_seconds, 0);
  EXPECT_LE(solved->bound_seconds, solved->covers[0].seconds);
  EXPECT_FALSE(solved->proved_optimal);
  EXPECT_THAT(solved->notes, Contains(HasSubstr("lp_solve failed")));
}

}  // namespace
}  // namespace fusion
