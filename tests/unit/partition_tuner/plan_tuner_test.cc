// Plans of loops that the tuner chooses, with a simulated server; all times are simulated, too.
#include "client/partition/tuner/plan_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/partition/size_class.h"
#include "tests/unit/tuner_library/tuner_fixture.h"

namespace fusion::testing {
namespace {

const LoopKey kLoop{"dir/prog.c:12:3", "gemm"};
constexpr LoopSpace kHost{16, false, false}, kDevice{16, true, false}, kColumns{16, true, true};

void ExpectValid(const LoopPlan& plan, const LoopSpace& space) {
  EXPECT_TRUE(plan.device_share >= 0 && plan.device_share <= (space.has_device ? 1 : 0)) << plan.device_share;
  EXPECT_TRUE(plan.threads >= 1 && plan.threads <= space.most_threads) << plan.threads;
  EXPECT_TRUE(plan.chunks >= 1 && plan.chunks <= 16 &&
              std::has_single_bit(static_cast<unsigned>(plan.chunks)))
      << plan.chunks;
  EXPECT_TRUE(plan.block_x == 0 || (plan.block_x >= 32 && plan.block_x <= 1024)) << plan.block_x;
  EXPECT_TRUE(plan.block_y >= 0 && plan.block_y <= (space.has_columns ? 32 : 0)) << plan.block_y;
  EXPECT_LE(plan.block_x * plan.block_y, 1024);
  if (plan.device_share == 0) {
    EXPECT_EQ(plan.chunks, 1);
    EXPECT_EQ(plan.block_x + plan.block_y, 0);
  }
}

TEST(PlanSpaceTest, EveryAnswerIsAPlanOfTheSpace) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const LoopSpace space{static_cast<int>(random() % 20), random() % 2 == 0, random() % 2 == 0};
    const PlanSpace plans(space, static_cast<int64_t>(random() % 3000));
    fusion_tuner_value values[PlanSpace::kMostParameters];
    for (fusion_tuner_value& value : values)
      value.integer =
          random() % 4 == 0 ? static_cast<int64_t>(random()) : static_cast<int64_t>(random() % 1100);
    LoopSpace valid = space;
    valid.most_threads = std::max(space.most_threads, 1);
    const LoopPlan plan = plans.PlanOf(values);
    ExpectValid(plan, valid);
    EXPECT_EQ(plans.Valid(plan), plan);
    for (const LoopPlan& end : plans.Ends(plan)) {
      ExpectValid(end, valid);
      EXPECT_EQ(plans.Valid(end), end);
    }
  }
}

TEST(PlanSpaceTest, BothEndsOfTheSharesAreExact) {
  for (const int64_t iterations : {1, 2, 3, 7, 100, 999, 1000, 1'000'000}) {
    const PlanSpace plans(kDevice, iterations);
    EXPECT_LE(plans.steps(), iterations);
    fusion_tuner_value values[PlanSpace::kMostParameters] = {};
    values[2].integer = 4;
    EXPECT_EQ(plans.PlanOf(values).device_share, 0);
    values[0].integer = plans.steps();
    EXPECT_EQ(plans.PlanOf(values).device_share, 1);
  }
}

TEST(PlanSpaceTest, WhatIsKnownIsBroughtIntoTheSpace) {
  const PlanSpace host(kHost, 1000), device(kDevice, 1000);
  EXPECT_EQ(host.Valid({1, 16, 99, 32, 32}), (LoopPlan{0, 1, 16, 0, 0}));
  EXPECT_EQ(host.Valid({0, 1, 0, 0, 0}).threads, 1);
  EXPECT_EQ(device.Valid({NAN, 1, 4, 0, 0}), (LoopPlan{0, 1, 4, 0, 0}));
  EXPECT_EQ(device.Valid({7, 99, 4, 64, 8}), (LoopPlan{1, 16, 16, 64, 0}));
}

TEST(SizeClassTest, ThereAreFourInAnOctave) {
  EXPECT_EQ(SizeClassOf(0), 0);
  EXPECT_EQ(SizeClassOf(-1), 0);
  EXPECT_EQ(SizeClassOf(NAN), 0);
  EXPECT_EQ(SizeClassOf(1024), 40);
  EXPECT_EQ(SizeClassOf(2047), 43);
  EXPECT_EQ(SizeClassOf(2048), 44);
  EXPECT_EQ(SizeClassOf(INFINITY), kSizeClasses - 1);
  for (int size_class = 0; size_class < kSizeClasses; ++size_class)
    EXPECT_EQ(SizeClassOf(WorkOfSizeClass(size_class) * 1.0001), size_class);
  // LU with another n in each of 2,000 calls has a few sections.
  std::set<int> classes;
  for (double n = 1; n <= 2000; ++n) classes.insert(SizeClassOf(n * n));
  EXPECT_LE(classes.size(), 90u);
}

TEST(SectionNameTest, NamesFileFunctionAndLine) {
  EXPECT_EQ(PlanTuner::SectionName(kLoop), "partition/prog.c:gemm:12:3");
  EXPECT_EQ(PlanTuner::SectionName({"/a/b\n\xc3\xa9.c:1:2", "f g"}), "partition/b___.c:f g:1:2");
  EXPECT_EQ(PlanTuner::SectionName({"", ""}), "partition/:");
  const std::string one = PlanTuner::SectionName({"a.cc:1:2", std::string(500, 'x')});
  const std::string other = PlanTuner::SectionName({"a.cc:1:3", std::string(500, 'x')});
  EXPECT_LE(one.size(), 190u);
  EXPECT_NE(one, other);
}

class PlanTunerTest : public TunerTest {
 protected:
  void Start() {
    Create(PlanTuner::kShare);
    plans_ = std::make_unique<PlanTuner>(std::exchange(tuner_, nullptr));
  }
  LoopPlan Run(const LoopPlan& known, const LoopSpace& space, double seconds = 1e-3,
               int64_t iterations = 2000, double work = 1e6) {
    const LoopPlan plan = plans_->Next(kLoop, iterations, work, known, space);
    plans_->Done(seconds);
    return plan;
  }
  std::vector<v1::SectionDeclaration> Declared() {
    std::vector<v1::SectionDeclaration> declared;
    for (const v1::TuneRequest& request : server_.Requests())
      if (request.has_declare()) declared.push_back(request.declare().declaration());
    return declared;
  }
  std::unique_ptr<PlanTuner> plans_;
};

TEST_F(PlanTunerTest, WithoutAServerWhatIsKnownRuns) {
  server_.SetDown(true);
  Start();
  const LoopPlan known{0.25, 2, 8, 64, 4};
  for (int i = 0; i < 500; ++i) EXPECT_EQ(Run(known, kColumns), known);
  plans_->Finish();
  EXPECT_EQ(Run(known, kColumns), known);
}

TEST_F(PlanTunerTest, DeclaresWhatMayBeChosen) {
  Start();
  for (const LoopSpace& space : {kColumns, kHost}) {
    Run(LoopPlan(), space);
    Run(LoopPlan(), space, 1e-3, 700);
    Run(LoopPlan(), space, 1e-3, 2000, 1e9);
  }
  ASSERT_TRUE(server_.WaitFor([&] { return Declared().size() >= 5; }));
  std::vector<v1::SectionDeclaration> declared = Declared();
  ASSERT_EQ(declared.size(), 5u);
  EXPECT_EQ(declared[0].section(), "partition/prog.c:gemm:12:3");
  EXPECT_EQ(declared[3].section(), "partition/prog.c:gemm:12:3:host");
  const auto sizes = [](const v1::SectionDeclaration& declaration) {
    std::vector<int64_t> values;
    for (const v1::ContextSize& size : declaration.context()) values.push_back(size.value());
    return values;
  };
  const auto class_of = [](double work) { return static_cast<int64_t>(WorkOfSizeClass(SizeClassOf(work))); };
  EXPECT_EQ(sizes(declared[0]), (std::vector<int64_t>{class_of(1e6), 1000}));
  EXPECT_EQ(sizes(declared[1]), (std::vector<int64_t>{class_of(1e6), 512}));
  EXPECT_EQ(sizes(declared[2]), (std::vector<int64_t>{class_of(1e9), 1000}));
  EXPECT_EQ(sizes(declared[3]), (std::vector<int64_t>{class_of(1e6)}));
  std::vector<std::string> names;
  for (const v1::TuningParameter& parameter : declared[0].parameters()) names.push_back(parameter.name());
  EXPECT_EQ(names,
            (std::vector<std::string>{"device_steps", "host_threads", "chunks", "block_x", "block_y"}));
  ASSERT_EQ(declared[3].parameters_size(), 1);
  EXPECT_EQ(declared[3].parameters(0).enumeration().values_size(), 3);
}

TEST_F(PlanTunerTest, NothingIsDeclaredWhereNothingCanBeChosen) {
  Start();
  EXPECT_EQ(Run({0, 1, 4, 0, 0}, {1, false, false}), LoopPlan());
  Run(LoopPlan(), kHost);
  ASSERT_TRUE(server_.WaitFor([&] { return !Declared().empty(); }));
  EXPECT_EQ(Declared().size(), 1u);
}

// The server proposes anything, all of it bad: plans stay valid, and what is lost stays a small share.
TEST_F(PlanTunerTest, ProposalsCostTheirShareAtMost) {
  std::mt19937_64 random(11);
  uint64_t id = 0;
  const auto choice = [&](uint32_t section) {
    v1::TuneResponse response;
    v1::TuningChoice& message = *response.mutable_choice();
    message = ChoiceOf({0, 2, 4, 256, 1}, 1, v1::EXPLORING);
    message.set_section(section);
    for (int i = 0; i < 4; ++i)
      AddProposal(message, ++id,
                  {1.0 + random() % 1000, random() % 3 + 0.0, std::exp2(random() % 5),
                   std::exp2(5 + random() % 5), std::exp2(random() % 2)});
    return response;
  };
  server_.SetChoice([&](const v1::DeclareSection& declare) { return choice(declare.section()).choice(); });
  server_.SetOnReport([&](const v1::TuningReport& report) { server_.SendLocked(choice(report.section())); });
  Start();
  const LoopPlan known{0, 1, 16, 0, 0};
  double usual = 0, all = 0;
  int explored = 0;
  const auto run = [&] {
    const LoopPlan plan = plans_->Next(kLoop, 5000, 1e6, known, kColumns);
    ExpectValid(plan, kColumns);
    const double seconds = plan == known ? 1 : 3;
    explored += plan != known;
    EXPECT_EQ(plans_->IsTrial(), plan != known);
    usual += 1;
    all += seconds;
    EXPECT_LE(all - usual, PlanTuner::kShare * all + 2);
    plans_->Done(seconds);
  };
  EXPECT_TRUE(server_.WaitFor([&] {
    for (int i = 0; i < 100; ++i) run();
    return explored >= 20;
  })) << explored;
  plans_->Finish();  // the server calls the functions above until then
}

// The plan that the server has found is compared with what is known, and then in force.
TEST_F(PlanTunerTest, AFasterPlanComesIntoForce) {
  server_.SetChoice([](const v1::DeclareSection&) { return ChoiceOf({700, 2, 4, 256, 1}, 1, v1::BOUNDED); });
  Start();
  const LoopPlan known{0, 1, 16, 0, 0};
  int better = 0;
  EXPECT_TRUE(server_.WaitFor([&] {
    const LoopPlan plan = plans_->Next(kLoop, 5000, 1e6, known, kColumns);
    better = plan.device_share == 0.7 ? better + 1 : 0;
    plans_->Done(plan.device_share == 0.7 ? .3 : 1);
    return better >= 100;
  }));
}

// The server's best plan is slower than what is known: it stays a candidate, no more.
TEST_F(PlanTunerTest, ASlowerPlanDoesNot) {
  server_.SetChoice([](const v1::DeclareSection&) {
    return ChoiceOf({700, 2, 4, 256, 1}, 1, v1::CONVERGED);
  });
  Start();
  const LoopPlan known{1, 2, 16, 128, 2};
  int tried = 0, runs = 0;
  EXPECT_TRUE(server_.WaitFor([&] {
    const LoopPlan plan = plans_->Next(kLoop, 5000, 1e6, known, kColumns);
    ExpectValid(plan, kColumns);
    tried += plan != known;
    ++runs;
    plans_->Done(plan == known ? 1 : 1.2);
    return tried >= 20;
  }));
  EXPECT_LE(tried * .2, PlanTuner::kShare * runs * 1.1 + 1);
}

// One thread, all threads and the device alone are compared at the end of the search.
TEST_F(PlanTunerTest, TheEndsAreCompared) {
  server_.SetChoice([](const v1::DeclareSection&) {
    return ChoiceOf({700, 2, 4, 256, 1}, 1, v1::CONVERGED);
  });
  Start();
  const LoopPlan known{0, 1, 16, 0, 0};
  int device_alone = 0;
  EXPECT_TRUE(server_.WaitFor([&] {
    const LoopPlan plan = plans_->Next(kLoop, 5000, 1e6, known, kColumns);
    const bool is_fastest = plan.device_share == 1 && plan.chunks == 8;
    device_alone += is_fastest;
    plans_->Done(is_fastest ? .5 : 1);
    return device_alone >= 100;  // many more than are compared
  }));
}

TEST_F(PlanTunerTest, APlanThatFailsIsLeft) {
  server_.SetChoice([](const v1::DeclareSection&) { return ChoiceOf({700, 2, 4, 256}, 1, v1::BOUNDED); });
  Start();
  const LoopPlan known{0, 1, 16, 0, 0};
  int failures = 0;
  EXPECT_TRUE(server_.WaitFor([&] {
    const LoopPlan plan = plans_->Next(kLoop, 5000, 1e6, known, kDevice);
    if (plan == known) {
      plans_->Done(1);
    } else {
      ++failures;
      plans_->Failed();
    }
    return failures >= 1;
  }));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Run(known, kDevice, 1), known);
}

}  // namespace
}  // namespace fusion::testing
