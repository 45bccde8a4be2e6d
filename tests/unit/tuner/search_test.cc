#include "server/tuner/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>

#include "tests/unit/tuner/space.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kHundred[] = "parameters { name: 'a' integer { lower: 0 upper: 100 step: 1 } }";
constexpr char kFive[] = "parameters { name: 'a' integer { lower: 0 upper: 4 step: 1 } }";

std::unique_ptr<TuningSearch> Search(std::shared_ptr<const ParameterSpace> space,
                                     const std::string& strategy = "", uint64_t seed = 1) {
  TuningSearchOptions options;
  options.strategy = strategy;
  options.seed = seed;
  absl::StatusOr<std::unique_ptr<TuningSearch>> search = TuningSearch::Create(std::move(space), options);
  EXPECT_TRUE(search.ok()) << search.status();
  return *std::move(search);
}

TuningMeasurement Ran(const TuningCandidate& candidate, double value) {
  return {candidate.id, candidate.point, 1, value, 0, value, 0};
}
TuningMeasurement RanBest(const TuningSearch& search, uint64_t count, double value, double deviation = 0) {
  return {0, search.state().best, count, value, deviation * deviation * static_cast<double>(count), value, 0};
}

using Function = std::function<double(const TuningPoint&)>;

// Evaluates what is proposed, with so much noise, until nothing is; the number of evaluations.
int Explore(TuningSearch& search, const Function& value, int most, double noise = 0, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  int evaluations = 0;
  while (evaluations < most) {
    const std::optional<TuningCandidate> candidate = search.Propose();
    if (!candidate) break;
    search.Observe(Ran(*candidate, value(candidate->point) * (1 + noise * normal(random))));
    ++evaluations;
  }
  return evaluations;
}

double Valley(const TuningPoint& point) { return 1 + std::abs(point[0] - 37) / 20; }

TEST(TuningSearchTest, BeginsWithTheDefaults) {
  auto search = Search(Space(kHundred));
  EXPECT_THAT(search->state().best, ElementsAre(50));
  EXPECT_EQ(search->state().value, 0);
  EXPECT_EQ(search->state().phase, v1::EXPLORING);
  EXPECT_EQ(search->state().provenance, v1::PROVENANCE_UNSPECIFIED);
  const std::optional<TuningCandidate> first = search->Propose();
  ASSERT_TRUE(first);
  EXPECT_THAT(first->point, ElementsAre(50));
}

TEST(TuningSearchTest, ThereIsNoSuchStrategy) {
  TuningSearchOptions options;
  options.strategy = "magic";
  const auto search = TuningSearch::Create(Space(kHundred), options);
  EXPECT_TRUE(absl::IsInvalidArgument(search.status()));
  EXPECT_THAT(std::string(search.status().message()),
              HasSubstr("there is no strategy magic; there are portfolio, exhaustive"));
}

class StrategyTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StrategyTest, FindsTheMinimumOfOneParameter) {
  auto search = Search(Space(kHundred), GetParam());
  Explore(*search, Valley, 400);
  EXPECT_LE(Valley(search->state().best), 1.05) << search->space().Text(search->state().best);
  EXPECT_EQ(search->state().provenance, v1::MEASURED);
}

TEST_P(StrategyTest, FindsTheMaximumWhereMoreIsBetter) {
  auto search = Search(Space(std::string(kHundred) + "objective { name: 'rate' unit: '1/s' maximize: true }"),
                       GetParam());
  Explore(
      *search, [](const TuningPoint& point) { return 1 / Valley(point); }, 400);
  EXPECT_LE(Valley(search->state().best), 1.05);
  EXPECT_NEAR(search->state().value, 1 / Valley(search->state().best), 1e-9);
}

TEST_P(StrategyTest, StaysWithinConstraintsAndAwayFromWhatFails) {
  auto search = Search(Space("parameters { name: 'a' integer { lower: 0 upper: 30 step: 3 } }"
                             "parameters { name: 'b' power_of_two { lower: 1 upper: 64 } }"
                             "parameters { name: 'c' enumeration { values: 'x' values: 'y' } }"
                             "constraints: 'a * b <= 200' constraints: 'c == y || b > 2'"),
                       GetParam());
  for (int i = 0; i < 120; ++i) {
    const std::optional<TuningCandidate> candidate = search->Propose();
    if (!candidate) break;
    ASSERT_TRUE(search->space().Check(candidate->point).ok()) << search->space().Text(candidate->point);
    TuningMeasurement measurement =
        Ran(*candidate, 1 + candidate->point[0] / 30 + std::abs(std::log2(candidate->point[1]) - 4) / 6);
    if (candidate->point[0] == 0) measurement = {candidate->id, candidate->point, 0, 0, 0, 0, 1};
    search->Observe(measurement);
  }
  EXPECT_NE(search->state().best[0], 0) << "it fails";
  EXPECT_GT(search->state().value, 0);
}

TEST_P(StrategyTest, TheSameSeedGivesTheSameSearch) {
  auto a = Search(Space(kHundred), GetParam(), 5), b = Search(Space(kHundred), GetParam(), 5);
  for (int i = 0; i < 60; ++i) {
    const auto from_a = a->Propose(), from_b = b->Propose();
    ASSERT_EQ(from_a.has_value(), from_b.has_value());
    if (!from_a) break;
    ASSERT_EQ(from_a->point, from_b->point) << i;
    a->Observe(Ran(*from_a, Valley(from_a->point)));
    b->Observe(Ran(*from_b, Valley(from_b->point)));
  }
}

TEST_P(StrategyTest, ManyAtOnceAreAnsweredInAnyOrder) {
  auto search = Search(Space(kHundred), GetParam());
  std::vector<TuningCandidate> out;
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    if (out.size() < 6)
      if (auto candidate = search->Propose()) out.push_back(*candidate);
    EXPECT_EQ(search->outstanding(), out.size());
    if (out.empty()) break;
    if (random() % 2) continue;
    const size_t which = random() % out.size();
    if (random() % 10 == 0)
      search->Forget(out[which].id);
    else
      search->Observe(Ran(out[which], Valley(out[which].point)));
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(which));
  }
  EXPECT_LE(Valley(search->state().best), 1.1);
}

INSTANTIATE_TEST_SUITE_P(All, StrategyTest, ::testing::ValuesIn(TuningStrategyNames()), [](const auto& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
});

// Programs that come faster than it can think: one look in eight.
TEST_P(StrategyTest, HurriedItStaysWithinConstraintsAndEnds) {
  auto search = Search(Space("parameters { name: 'a' integer { lower: 0 upper: 100 step: 1 } }"
                             "parameters { name: 'b' integer { lower: 0 upper: 100 step: 1 } }"
                             "constraints: 'a + b <= 150'"),
                       GetParam());
  const auto value = [](const TuningPoint& point) {
    return 1 + std::abs(point[0] - 37) / 50 + std::abs(point[1] - 80) / 50;
  };
  int proposals = 0;
  for (; proposals < 2000; ++proposals) {
    std::optional<TuningCandidate> candidate =
        proposals % 8 == 0 ? search->Propose() : search->ProposeQuickly();
    if (!candidate) break;
    ASSERT_TRUE(search->space().Check(candidate->point).ok()) << search->space().Text(candidate->point);
    search->Observe(Ran(*candidate, value(candidate->point)));
  }
  EXPECT_LE(value(search->state().best), 1.5);
  if (GetParam() == "portfolio" || GetParam() == "bayesian") {
    EXPECT_LT(proposals, 2000);
    EXPECT_LE(value(search->state().best), 1.05) << search->space().Text(search->state().best);
  }
}

TEST(TuningSearchTest, QuickProposalsBesideOneLookAreDistinct) {
  auto search = Search(
      Space(std::string(kHundred) + "parameters { name: 'b' integer { lower: 0 upper: 100 step: 1 } }"));
  const auto value = [](const TuningPoint& point) {
    return 1 + std::abs(point[0] - 37) / 20 + std::abs(point[1] - 80) / 20;
  };
  Explore(*search, value, 20);
  std::set<TuningPoint> points;
  ASSERT_TRUE(search->Propose());
  const size_t known = search->configurations();
  int repeats = 0;
  for (int i = 0; i < 8; ++i) {
    const std::optional<TuningCandidate> candidate = search->ProposeQuickly();
    ASSERT_TRUE(candidate);
    if (!points.insert(candidate->point).second) ++repeats;
  }
  EXPECT_EQ(repeats, 0);
  EXPECT_EQ(search->configurations(), known);  // none has run
  EXPECT_EQ(search->outstanding(), 9u);
}

TEST(TuningSearchTest, ATinySpaceIsMeasuredAsAWhole) {
  auto search = Search(Space(kFive));
  std::set<double> seen;
  Explore(
      *search,
      [&](const TuningPoint& point) {
        seen.insert(point[0]);
        return 1 + point[0];
      },
      100);
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_EQ(search->state().phase, v1::CONVERGED);
  EXPECT_THAT(search->state().best, ElementsAre(0));
}

TEST(TuningSearchTest, ChoicesAreRepeatedUntilTheyAreToldApart) {
  // 4 % apart at 5 % of noise: one run each would choose the wrong one in a quarter of all cases.
  int right = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    auto search = Search(Space("parameters { name: 'a' enumeration { values: 'x' values: 'y' } }"), "", seed);
    const int evaluations = Explore(
        *search, [](const TuningPoint& point) { return point[0] == 1 ? 1.0 : 1.06; }, 100, 0.05, seed);
    EXPECT_EQ(search->state().phase, v1::CONVERGED);
    EXPECT_GT(evaluations, 2);
    right += search->state().best[0] == 1;
  }
  EXPECT_GE(right, 44);
}

TEST(TuningSearchTest, AConvergedSearchSaysHowSureItIs) {
  auto search = Search(Space(kHundred));
  Explore(*search, Valley, 1000, 0.03);
  EXPECT_EQ(search->state().phase, v1::CONVERGED);
  EXPECT_FALSE(search->Propose());
  EXPECT_LT(search->state().relative_error, 0.03);
  EXPECT_NEAR(search->state().value, Valley(search->state().best), 0.06);
  EXPECT_EQ(search->Measurements(1)[0].count > 0, true);
  EXPECT_LE(search->configurations(), 101u);
}

TEST(TuningSearchTest, ExploringIsBoundedOnceSomethingGoodIsKnown) {
  auto search = Search(Space(kHundred));
  Explore(*search, Valley, 5);
  EXPECT_EQ(search->state().phase, v1::EXPLORING);
  Explore(*search, Valley, 20);
  EXPECT_EQ(search->state().phase, v1::BOUNDED);
}

TEST(TuningSearchTest, NothingThatWorks) {
  auto search = Search(Space(kFive));
  for (int i = 0; i < 50; ++i) {
    const auto candidate = search->Propose();
    if (!candidate) break;
    search->Observe({candidate->id, candidate->point, 0, 0, 0, 0, 1});
  }
  EXPECT_THAT(search->state().best, ElementsAre(2)) << "the default";
  EXPECT_EQ(search->state().value, 0);
}

TEST(TuningSearchTest, EarlierRunsOfTheSameAreKnown) {
  auto search = Search(Space(kHundred));
  search->Remember({{0, {37}, 30, 1.0, 0.01, 0.97, 0}, {0, {50}, 3, 1.65, 0.01, 1.6, 0}}, v1::EXACT);
  EXPECT_THAT(search->state().best, ElementsAre(37));
  EXPECT_NEAR(search->state().value, 1.0, 1e-9);
  EXPECT_EQ(search->state().phase, v1::BOUNDED);
  EXPECT_EQ(search->state().provenance, v1::EXACT);
}

TEST(TuningSearchTest, WhatWasGoodElsewhereIsTriedFirst) {
  for (v1::Provenance provenance : {v1::NEAR, v1::OTHER_DEVICE}) {
    auto search = Search(Space(kHundred));
    search->Remember(
        {{0, {35}, 30, 1.0, 0.01, 0.97, 0}, {0, {30.4}, 3, 1.1, 0.01, 1.1, 0}, {0, {90}, 0, 0, 0, 0, 2}},
        provenance);
    EXPECT_THAT(search->state().best, ElementsAre(35));
    EXPECT_EQ(search->state().value, 0) << "a value of another size says nothing";
    EXPECT_EQ(search->state().provenance, provenance);
    const auto first = search->Propose(), second = search->Propose(), third = search->Propose();
    ASSERT_TRUE(first && second && third);
    EXPECT_THAT(first->point, ElementsAre(35));
    EXPECT_THAT(second->point, ElementsAre(30));
    EXPECT_NE(third->point[0], 90) << "it only failed";
  }
}

TEST(TuningSearchTest, DriftIsNoticedAndTheSearchResumes) {
  auto search = Search(Space(kHundred));
  Explore(*search, Valley, 1000, 0.02);
  ASSERT_EQ(search->state().phase, v1::CONVERGED);
  for (int i = 0; i < 50; ++i) search->Observe(RanBest(*search, 1, search->state().value));
  ASSERT_EQ(search->state().generation, 1u) << "nothing has changed";
  // The program does something else now: another value is the best.
  const auto other = [](const TuningPoint& point) { return 2 + std::abs(point[0] - 80) / 20; };
  int until_noticed = 0;
  while (search->state().generation == 1 && until_noticed < 100) {
    search->Observe(RanBest(*search, 1, other(search->state().best)));
    ++until_noticed;
  }
  EXPECT_LE(until_noticed, 5);
  EXPECT_EQ(search->state().drifts, 1u);
  EXPECT_EQ(search->state().phase, v1::BOUNDED);
  Explore(*search, other, 1000, 0.02);
  EXPECT_LE(other(search->state().best), 2.1);
  EXPECT_EQ(search->state().phase, v1::CONVERGED);
}

TEST(TuningSearchTest, NoiseIsNoDrift) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto search = Search(Space(kHundred), "", seed);
    Explore(*search, Valley, 1000, 0.05, seed);
    ASSERT_EQ(search->state().phase, v1::CONVERGED);
    const double value = Valley(search->state().best);
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    for (int i = 0; i < 20'000; ++i)
      search->Observe(RanBest(*search, 1, value * (1 + 0.05 * normal(random))));
    EXPECT_EQ(search->state().drifts, 0u) << seed;
  }
}

TEST(TuningSearchTest, ValuesOfAnySizeAreSearchedAlike) {
  for (const double scale : {1e-320, 1e-300, 1e-160, 1.0, 1e160, 1e300}) {
    auto search = Search(Space(kHundred));
    Explore(
        *search, [&](const TuningPoint& point) { return Valley(point) * scale; }, 200);
    EXPECT_LE(Valley(search->state().best), 1.05) << scale;
    EXPECT_TRUE(std::isfinite(search->state().value) && search->state().value > 0) << scale;
    EXPECT_TRUE(std::isfinite(search->state().relative_error)) << scale;
  }
}

TEST(TuningSearchTest, AHugeValueForWhatCannotBeDoneSpoilsNothing) {
  auto search = Search(Space(kHundred));
  Explore(
      *search, [](const TuningPoint& point) { return point[0] > 60 ? 1.7e308 : Valley(point); }, 200, 1e-4);
  EXPECT_LE(Valley(search->state().best), 1.05);
}

TEST(TuningSearchTest, WhatFewPointsSatisfyIsSearchedAsAWhole) {
  // a * b = 2^20 has 21 solutions among 10^12 points.
  auto search =
      Search(Space("parameters { name: 'a' integer { lower: 1 upper: 1048576 step: 1 } }"
                   "parameters { name: 'b' integer { lower: 1 upper: 1048576 step: 1 } } constraints: 'a * b "
                   "== 1048576'"));
  std::set<double> seen;
  Explore(
      *search,
      [&](const TuningPoint& point) {
        seen.insert(point[0]);
        return 1 + std::abs(std::log2(point[0]) - 17);
      },
      300);
  EXPECT_EQ(search->state().best[0], 131072);
  EXPECT_GT(seen.size(), 10u);
}

TEST(TuningSearchTest, AResetForgets) {
  auto search = Search(Space(kHundred));
  Explore(*search, Valley, 30);
  const auto out = search->Propose();
  search->Reset();
  EXPECT_EQ(search->state().generation, 2u);
  EXPECT_EQ(search->outstanding(), 0u);
  EXPECT_EQ(search->configurations(), 0u);
  EXPECT_THAT(search->state().best, ElementsAre(50));
  const auto next = search->Propose();
  ASSERT_TRUE(out && next);
  EXPECT_GT(next->id, out->id) << "numbers are not used again";
}

TEST(TuningSearchTest, AForgottenCandidateIsProposedAgain) {
  auto search = Search(Space(kFive));
  std::set<double> seen;
  for (int i = 0; i < 40; ++i) {
    const auto candidate = search->Propose();
    if (!candidate) break;
    if (i < 5) {
      search->Forget(candidate->id);
      continue;
    }
    seen.insert(candidate->point[0]);
    search->Observe(Ran(*candidate, 1 + candidate->point[0]));
  }
  EXPECT_EQ(seen.size(), 5u);
}

TEST(TuningSearchTest, MeasurementsAreTheBestFirst) {
  auto search = Search(Space(kFive));
  search->Observe({0, {3}, 2, 3.0, 0.5, 2.5, 0});
  search->Observe({0, {3}, 2, 5.0, 0.5, 4.5, 0});
  search->Observe({0, {1}, 1, 2.0, 0, 2.0, 0});
  search->Observe({0, {0}, 0, 0, 0, 0, 3});
  const std::vector<TuningMeasurement> all = search->Measurements(10);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_THAT(all[0].point, ElementsAre(1));
  EXPECT_THAT(all[1].point, ElementsAre(3));
  EXPECT_EQ(all[1].count, 4u);
  EXPECT_NEAR(all[1].mean, 4.0, 1e-12);
  EXPECT_NEAR(all[1].squared_deviations, 5.0, 1e-12);  // 0.5 + 0.5 and 4 * 1
  EXPECT_EQ(all[1].minimum, 2.5);
  EXPECT_EQ(all[2].failures, 3u);
  EXPECT_EQ(search->Measurements(1).size(), 1u);
}

}  // namespace
}  // namespace fusion
