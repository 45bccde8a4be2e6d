// Random spaces and random answers: whatever strategies propose is a configuration of the space, and what is
// known of them is what was reported.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/tuner/knowledge.h"
#include "server/tuner/search.h"

namespace fusion {
namespace {

v1::SectionDeclaration RandomDeclaration(std::mt19937_64& random) {
  v1::SectionDeclaration declaration;
  declaration.set_program("p");
  declaration.set_section("s");
  declaration.set_device_class("d");
  const int parameters = 1 + static_cast<int>(random() % 5);
  for (int i = 0; i < parameters; ++i) {
    v1::TuningParameter* parameter = declaration.add_parameters();
    parameter->set_name(absl::StrCat("p", i));
    switch (random() % 4) {
      case 0: {
        const auto lower = static_cast<int64_t>(random() % 2000) - 1000;
        parameter->mutable_integer()->set_lower(lower);
        parameter->mutable_integer()->set_upper(lower + static_cast<int64_t>(random() % 500));
        parameter->mutable_integer()->set_step(1 + static_cast<int64_t>(random() % 7));
        break;
      }
      case 1:
        parameter->mutable_power_of_two()->set_lower(int64_t{1} << random() % 4);
        parameter->mutable_power_of_two()->set_upper(int64_t{1} << (4 + random() % 8));
        break;
      case 2:
        for (uint64_t value = 0; value <= random() % 5; ++value)
          parameter->mutable_enumeration()->add_values(absl::StrCat("v", i, "_", value));
        break;
      default:
        parameter->mutable_real()->set_lower(0.5);
        parameter->mutable_real()->set_upper(0.5 + static_cast<double>(random() % 100));
        parameter->mutable_real()->set_logarithmic(random() % 2 == 0);
    }
    if (i > 0 && random() % 4 == 0) parameter->set_condition(absl::StrCat("p0 != ", random() % 3));
  }
  if (parameters > 1 && random() % 2) declaration.add_constraints("p0 + p1 <= max(600, abs(p0))");
  return declaration;
}

TEST(TuningSearchProperty, ProposalsAreConfigurationsOfTheSpace) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    std::mt19937_64 random(seed);
    const v1::SectionDeclaration declaration = RandomDeclaration(random);
    const auto space = ParameterSpace::Create(declaration);
    if (!space.ok()) continue;  // no configuration satisfies the constraint
    ASSERT_TRUE((*space)->Check((*space)->defaults()).ok()) << declaration.ShortDebugString();
    TuningSearchOptions options;
    options.strategy = TuningStrategyNames()[seed % TuningStrategyNames().size()];
    options.seed = seed;
    auto search = TuningSearch::Create(*space, options);
    ASSERT_TRUE(search.ok());
    uint64_t last = 0, reported = 0;
    std::vector<TuningCandidate> out;
    for (int i = 0; i < 120; ++i) {
      if (auto candidate = (*search)->Propose()) {
        ASSERT_GT(candidate->id, last);
        last = candidate->id;
        const absl::Status status = (*space)->Check(candidate->point);
        ASSERT_TRUE(status.ok()) << options.strategy << ": " << status << " in "
                                 << declaration.ShortDebugString();
        out.push_back(*candidate);
      }
      if (out.empty()) break;
      if (out.size() < 4 && random() % 3 == 0) continue;
      const TuningCandidate done = out.back();
      out.pop_back();
      TuningMeasurement measurement{done.id, done.point, 1, 0, 0, 0, 0};
      measurement.mean = measurement.minimum =
          0.001 + std::abs(std::sin(static_cast<double>(random() % 1000)));
      if (random() % 10 == 0) measurement = {done.id, done.point, 0, 0, 0, 0, 1};
      (*search)->Observe(measurement);
      ++reported;
      ASSERT_TRUE((*space)->Check((*search)->state().best).ok());
    }
    uint64_t known = 0;
    for (const TuningMeasurement& measurement : (*search)->Measurements(100'000))
      known += measurement.count + measurement.failures;
    EXPECT_EQ(known, reported);
  }
}

TEST(ParameterSpaceProperty, CanonicalPointsStayAsTheyAre) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto space = ParameterSpace::Create(RandomDeclaration(random));
    if (!space.ok()) continue;
    std::uniform_real_distribution<double> wide(-2000, 2000), unit(-0.2, 1.2);
    for (int i = 0; i < 50; ++i) {
      std::vector<double> values((*space)->dimensions()), units((*space)->dimensions());
      for (double& value : values) value = wide(random);
      for (double& value : units) value = unit(random);
      for (const TuningPoint& point : {(*space)->Canonical(values), (*space)->FromUnit(units)}) {
        EXPECT_EQ((*space)->Canonical(point), point);
        const TuningPoint again = (*space)->FromUnit((*space)->ToUnit(point));
        for (size_t axis = 0; axis < point.size(); ++axis)
          EXPECT_NEAR(again[axis], point[axis], 1e-9 * std::max(1.0, std::abs(point[axis])));
      }
    }
  }
}

// The lowest arm, which is kept with constant work, against a look at all of them.
TEST(TuningKnowledgeProperty, TheLowestIsTheLowest) {
  v1::SectionDeclaration declaration;
  declaration.set_program("p");
  declaration.set_section("s");
  declaration.set_device_class("d");
  v1::TuningParameter* parameter = declaration.add_parameters();
  parameter->set_name("a");
  parameter->mutable_integer()->set_upper(300);
  parameter->mutable_integer()->set_step(1);
  const auto space = ParameterSpace::Create(declaration);
  ASSERT_TRUE(space.ok());
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    TuningKnowledge knowledge(*space, seed);
    std::map<double, std::vector<double>> reported;
    for (int i = 0; i < 3000; ++i) {
      // Often the lowest, with worse values than before, so that it is not the lowest any more.
      const double point = knowledge.lowest() >= 0 && random() % 2
                               ? knowledge.arms()[static_cast<size_t>(knowledge.lowest())].point[0]
                               : static_cast<double>(random() % 301);
      const double value = 1 + static_cast<double>(random() % 1000) / 1000 + i / 3000.0;
      knowledge.Add({point}, 1, value, 0, value, 0);
      reported[point].push_back(value);
      double lowest = std::numeric_limits<double>::infinity();
      for (const TuningArm& arm : knowledge.arms()) lowest = std::min(lowest, arm.cost);
      ASSERT_EQ(knowledge.arms()[static_cast<size_t>(knowledge.lowest())].cost, lowest) << i;
    }
    for (const TuningArm& arm : knowledge.arms()) {
      const std::vector<double>& values = reported[arm.point[0]];
      double mean = 0, squares = 0;
      for (double value : values) mean += value / static_cast<double>(values.size());
      for (double value : values) squares += (value - mean) * (value - mean);
      ASSERT_EQ(arm.runs.count, values.size());
      EXPECT_NEAR(arm.runs.mean, mean, 1e-9);
      EXPECT_NEAR(arm.runs.squared_deviations(), squares, 1e-9);
    }
  }
}

}  // namespace
}  // namespace fusion
