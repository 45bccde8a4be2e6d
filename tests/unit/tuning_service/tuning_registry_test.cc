#include "server/tuner/tuning_registry.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/unit/tuning_service/tuning_registry_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST_F(TuningRegistryTest, FirstChoiceIsTheDefault) {
  TestProgram program(*registry_, "p");
  EXPECT_EQ(program.last_sequence, 0u);
  const v1::Declared declared = program.Declare(SectionOf(kTile));
  EXPECT_EQ(declared.status().code(), 0);
  EXPECT_EQ(declared.tuning().rfind("tunings/", 0), 0u);
  const v1::TuningChoice choice = program.ExpectChoice();
  ASSERT_EQ(choice.best().values_size(), 1);
  EXPECT_EQ(choice.best().values(0), 8);
  EXPECT_EQ(choice.provenance(), v1::PROVENANCE_UNSPECIFIED);
  EXPECT_EQ(choice.proposals_size(), 0);
  EXPECT_EQ(choice.generation(), 1u);
  EXPECT_GT(choice.exploration_share(), 0);
  EXPECT_EQ(Get(declared.tuning()).programs(), 1u);
  program.Disconnect();
  EXPECT_EQ(Get(declared.tuning()).programs(), 0u);
}

TEST_F(TuningRegistryTest, TunesAndStores) {
  TestProgram program(*registry_, "p");
  const std::string name = program.Declare(SectionOf(kTile)).tuning();
  Tune(program, 60, Valley);
  // What a program was told is stored at the latest when the server has stopped.
  program.Disconnect();
  Restart();
  const v1::Tuning tuning = Get(name);
  if (tuning.phase() != v1::CONVERGED) {
    EXPECT_GE(tuning.runs(), 60u);
  }
  EXPECT_EQ(tuning.runs(), program.reported);
  EXPECT_EQ(tuning.runs(), StoredReports(name));
  EXPECT_NEAR(tuning.best().values(0), 40, 4);
  EXPECT_GT(tuning.exploration_excess(), 0);
  EXPECT_GT(tuning.total_value(), tuning.exploration_excess());
  auto details = registry_->Details(name);
  ASSERT_TRUE(details.ok());
  EXPECT_EQ(static_cast<uint64_t>(details->configurations_size()), tuning.configurations());
  EXPECT_GT(details->convergence_size(), 0);
  for (int i = 1; i < details->convergence_size(); ++i)
    EXPECT_GT(details->convergence(i).evaluations(), details->convergence(i - 1).evaluations());
  uint64_t runs = 0;
  for (const auto& configuration : details->configurations()) runs += configuration.count();
  EXPECT_EQ(runs, tuning.runs());
  std::lock_guard lock(changed_mutex_);
  EXPECT_TRUE(changed_.count(name));
}

TEST_F(TuningRegistryTest, ProposalsOfProgramsAreDistinct) {
  std::vector<std::unique_ptr<TestProgram>> programs;
  std::set<uint64_t> ids;
  std::set<double> points;
  size_t count = 0;
  for (int i = 0; i < 4; ++i) {
    programs.push_back(std::make_unique<TestProgram>(*registry_, "p" + std::to_string(i)));
    programs.back()->Declare(SectionOf(kTile));
    ASSERT_TRUE(programs.back()->Report({}, 1).ok());
    for (const v1::TuningProposal& proposal : programs.back()->ExpectProposals(1)) {
      ids.insert(proposal.id());
      points.insert(proposal.configuration().values(0));
      ++count;
    }
  }
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_EQ(points.size(), 4u);
}

TEST_F(TuningRegistryTest, NoMoreProposalsThanWanted) {
  TestProgram program(*registry_, "p");
  program.Declare(SectionOf(kTile));
  ASSERT_TRUE(program.Report({}, 3).ok());
  const auto proposals = program.ExpectProposals(3);
  ASSERT_EQ(proposals.size(), 3u);
  program.ExpectAcknowledged(1);
  for (const v1::TuneResponse& response : program.Received())
    EXPECT_EQ(response.choice().proposals_size(), 0);
  // One is done, one more comes.
  ASSERT_TRUE(program.Report({TestProgram::Run(proposals[0], 1)}).ok());
  EXPECT_EQ(program.ExpectProposals(1).size(), 1u);
}

// In a space of two configurations those who wait get what the other one had.
TEST_F(TuningRegistryTest, ProposalsOfAProgramThatHasGoneAreForgotten) {
  const auto two = SectionOf("parameters { name: 'a' enumeration { values: 'x' values: 'y' } }");
  auto first = std::make_unique<TestProgram>(*registry_, "first");
  first->Declare(two);
  ASSERT_TRUE(first->Report({}, 2).ok());
  const auto had = first->ExpectProposals(2);
  TestProgram second(*registry_, "second");
  second.Declare(two);
  second.ExpectChoice();
  ASSERT_TRUE(second.Report({}, 1).ok());
  second.ExpectAcknowledged(1);
  first->Disconnect();
  const auto got = second.ExpectProposals(1);
  ASSERT_EQ(got.size(), 1u);
  for (const auto& proposal : had) EXPECT_NE(proposal.id(), got[0].id());
}

TEST_F(TuningRegistryTest, BatchCountsOnceAcrossConnections) {
  TestProgram first(*registry_, "p");
  const std::string name = first.Declare(SectionOf(kTile)).tuning();
  v1::ReportBatch batch;
  batch.set_sequence(1);
  *batch.add_reports() = TestProgram::Run({8}, 2);
  ASSERT_TRUE(first.Send(batch).ok());
  ASSERT_TRUE(first.Send(batch).ok());
  first.ExpectAcknowledged(1);
  ASSERT_TRUE(first.Send(batch).ok());
  first.ExpectAcknowledged(1);

  TestProgram again(*registry_, "p");
  EXPECT_EQ(again.last_sequence, 1u);
  ASSERT_TRUE(first.ended());
  EXPECT_TRUE(absl::IsAborted(*first.ended()));
  EXPECT_TRUE(absl::IsAborted(first.Send(batch)));
  again.Declare(SectionOf(kTile));
  ASSERT_TRUE(again.Send(batch).ok());
  again.ExpectAcknowledged(1);
  first.Disconnect();
  EXPECT_EQ(Get(name).runs(), 1u);
  EXPECT_EQ(Get(name).programs(), 1u);

  again.Disconnect();
  Restart();
  TestProgram later(*registry_, "p");
  EXPECT_EQ(later.last_sequence, 1u);
  later.Declare(SectionOf(kTile));
  ASSERT_TRUE(later.Send(batch).ok());
  later.ExpectAcknowledged(1);
  EXPECT_EQ(Get(name).runs(), 1u);
  EXPECT_EQ(StoredReports(name), 1u);
}

TEST_F(TuningRegistryTest, SequencesThatAreNone) {
  TestProgram program(*registry_, "p");
  program.Declare(SectionOf(kTile));
  v1::ReportBatch batch;
  EXPECT_TRUE(absl::IsInvalidArgument(program.Send(batch)));
  batch.set_sequence(std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(absl::IsInvalidArgument(program.Send(batch)));
  // A store may be older than the process, so the first may be any.
  batch.set_sequence(7);
  EXPECT_TRUE(program.Send(batch).ok());
  batch.set_sequence(9);
  const absl::Status gap = program.Send(batch);
  EXPECT_TRUE(absl::IsInvalidArgument(gap));
  EXPECT_THAT(std::string(gap.message()), HasSubstr("after batch 7 comes batch 8, not 9"));
  batch.set_sequence(8);
  EXPECT_TRUE(program.Send(batch).ok());
}

TEST_F(TuningRegistryTest, NonsenseIsRefusedAlone) {
  const double kNan = std::numeric_limits<double>::quiet_NaN(),
               kInfinite = std::numeric_limits<double>::infinity();
  struct Case {
    const char* name;
    std::function<void(v1::TuningReport&)> spoil;
    const char* said;
  };
  const Case cases[] = {
      {"nan", [&](auto& r) { r.set_mean(kNan); }, "mean: must be positive"},
      {"negative", [](auto& r) { r.set_mean(-1); }, "mean: must be positive"},
      {"infinite", [&](auto& r) { r.set_mean(kInfinite); }, "mean: must be positive"},
      {"no run", [](auto& r) { r.set_count(0); }, "no run at all"},
      {"many runs", [](auto& r) { r.set_count(UINT64_MAX); }, "more runs"},
      {"minimum", [](auto& r) { r.set_minimum(3); }, "minimum"},
      {"deviations", [&](auto& r) { r.set_squared_deviations(kNan); }, "squared_deviations"},
      {"negative deviations", [](auto& r) { r.set_squared_deviations(-1); }, "squared_deviations"},
      {"proposal", [](auto& r) { r.set_proposal(UINT64_MAX); }, "proposal"},
      {"not on the grid", [](auto& r) { r.mutable_configuration()->set_values(0, 8.5); }, "tile"},
      {"excess", [&](auto& r) { r.set_excess(kNan); }, "excess: must be finite"},
      {"outside", [](auto& r) { r.mutable_configuration()->set_values(0, 65); }, "tile"},
      {"not a number", [&](auto& r) { r.mutable_configuration()->set_values(0, kNan); }, "tile"},
      {"dimensions", [](auto& r) { r.mutable_configuration()->add_values(1); }, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TestProgram program(*registry_, c.name);
    const std::string name = program.Declare(SectionOf(kTile), 1).tuning();
    const std::string other = program.Declare(SectionOf(kTile, "other"), 2).tuning();
    v1::TuningReport bad = TestProgram::Run({8}, 2);
    c.spoil(bad);
    const uint64_t before = Get(name).runs(), before_of_other = Get(other).runs();
    ASSERT_TRUE(program.Report({bad, TestProgram::Run({8}, 2), TestProgram::Run({8}, 2, 0, 2)}).ok());
    const v1::ReportRefused told = program.Expect(&v1::TuneResponse::has_refused).refused();
    EXPECT_EQ(told.section(), 1u);
    EXPECT_EQ(told.status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(told.status().message(), HasSubstr(c.said));
    EXPECT_EQ(told.runs(), bad.count());
    program.ExpectAcknowledged(1);
    EXPECT_EQ(Get(name).runs(), before + 1) << "the other report of the section";
    EXPECT_EQ(Get(other).runs(), before_of_other + 1);
    EXPECT_EQ(Get(name).programs(), 1u) << "it is tuned as before";
  }
}

TEST_F(TuningRegistryTest, AnythingPositiveIsStoredAndKeepsNobodyElseFromTheDisk) {
  TestProgram absurd(*registry_, "absurd"), other(*registry_, "other");
  const std::string name = absurd.Declare(SectionOf(kTile)).tuning();
  const std::string good = other.Declare(SectionOf(kTile, "other")).tuning();
  constexpr double kGreatest = std::numeric_limits<double>::max(),
                   kLeast = std::numeric_limits<double>::denorm_min();
  // Sums, squares and counts of these are all beyond what a row can hold.
  uint64_t runs = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<v1::TuningReport> reports;
    for (const double value : {kGreatest, 1e-300, 1e200, kLeast, 1.0}) {
      v1::TuningReport report = TestProgram::Run({8}, value);
      report.set_count(uint64_t{1} << 50);
      report.set_failures(round == 0 ? 1 : 0);
      report.set_squared_deviations(value == kGreatest ? kGreatest : 0);
      report.set_excess(value == 1e200 ? -kGreatest : value);
      reports.push_back(report);
      reports.push_back(TestProgram::Run({static_cast<double>(9 + round)}, value));
      runs += report.count() + 1;
    }
    ASSERT_TRUE(absurd.Report(reports).ok());
    ASSERT_TRUE(other.Report({TestProgram::Run({8}, 2)}).ok());
  }
  absurd.ExpectAcknowledged(absurd.sequence);
  other.ExpectAcknowledged(other.sequence);
  EXPECT_EQ(Get(good).runs(), 3u);
  const v1::Tuning tuning = Get(name);
  EXPECT_EQ(tuning.runs(), std::min(runs, uint64_t{1} << 53));
  EXPECT_EQ(tuning.total_value(), kGreatest);
  EXPECT_TRUE(std::isfinite(tuning.exploration_excess()));
  const v1::TuningDetails details = *registry_->Details(name);
  for (const v1::ConfigurationStatistics& statistics : details.configurations()) {
    EXPECT_TRUE(std::isfinite(statistics.mean()) && statistics.mean() > 0) << statistics.ShortDebugString();
    EXPECT_TRUE(std::isfinite(statistics.standard_deviation()));
    EXPECT_TRUE(std::isfinite(statistics.expected()));
    EXPECT_TRUE(std::isfinite(statistics.relative_error()));
  }
  // All is read again, and goes on.
  absurd.Disconnect();
  other.Disconnect();
  Restart();
  TestProgram again(*registry_, "again");
  EXPECT_EQ(again.Declare(SectionOf(kTile)).status().code(), 0);
  ASSERT_TRUE(again.Report({TestProgram::Run({8}, kGreatest)}, 1).ok());
  again.ExpectAcknowledged(1);
  EXPECT_EQ(again.ExpectProposals(1).size(), 1u);
}

TEST_F(TuningRegistryTest, AProposalWithoutAUsableReportMakesRoomForTheNext) {
  TestProgram program(*registry_, "p");
  program.Declare(SectionOf(kTile));
  ASSERT_TRUE(program.Report({}, 1).ok());
  for (int i = 0; i < 5; ++i) {
    const std::vector<v1::TuningProposal> proposals = program.ExpectProposals(1);
    ASSERT_EQ(proposals.size(), 1u);
    ASSERT_TRUE(program.Report({TestProgram::Run(proposals[0], -1)}, 1).ok());
    EXPECT_EQ(program.Expect(&v1::TuneResponse::has_refused).refused().runs(), 1u);
  }
}

TEST_F(TuningRegistryTest, TheBestIsTheFirstOfTheTableByWhatIsKnown) {
  TestProgram program(*registry_, "p");
  const std::string name = program.Declare(SectionOf(kTile)).tuning();
  // 30 was lucky once; 20 is known well, and better than the default.
  std::vector<v1::TuningReport> reports;
  for (int i = 0; i < 20; ++i) {
    reports.push_back(TestProgram::Run({20}, 1 + 0.1 * (i % 3 - 1)));
    reports.push_back(TestProgram::Run({8}, 2 + 0.2 * (i % 3 - 1)));
  }
  reports.push_back(TestProgram::Run({30}, 0.97));
  ASSERT_TRUE(program.Report(reports).ok());
  program.ExpectAcknowledged(1);
  const v1::TuningDetails details = *registry_->Details(name);
  ASSERT_EQ(details.configurations_size(), 3);
  EXPECT_EQ(details.configurations(0).configuration().values(0), 20);
  EXPECT_EQ(details.configurations(1).configuration().values(0), 30) << "its mean is the lowest";
  for (int i = 1; i < 3; ++i)
    EXPECT_LE(details.configurations(i - 1).expected(), details.configurations(i).expected());
  EXPECT_EQ(details.tuning().best().values(0), 20);
  EXPECT_EQ(details.tuning().best_value(), details.configurations(0).mean());
  EXPECT_EQ(details.tuning().best_relative_error(), details.configurations(0).relative_error());
  EXPECT_TRUE(details.tuning().better_than_default());
  EXPECT_NEAR(details.tuning().default_value(), 2, 0.05);
  EXPECT_FALSE(details.tuning().below_clock());
  // The program is told the same one.
  const v1::TuneResponse told = program.Expect([](const v1::TuneResponse& response) {
    return response.has_choice() && response.choice().best().values(0) == 20;
  });
  EXPECT_NEAR(told.choice().expected_value(), details.tuning().best_value(), 1e-12);
}

TEST_F(TuningRegistryTest, WhatIsNotToldApartFromTheDefaultIsNotBetter) {
  TestProgram program(*registry_, "p");
  const std::string name = program.Declare(SectionOf(kTile)).tuning();
  std::vector<v1::TuningReport> reports;
  for (int i = 0; i < 9; ++i) {
    reports.push_back(TestProgram::Run({20}, 1 + 0.5 * (i % 3 - 1)));
    reports.push_back(TestProgram::Run({8}, 1.06 + 0.5 * (i % 3 - 1)));
  }
  ASSERT_TRUE(program.Report(reports).ok());
  program.ExpectAcknowledged(1);
  const v1::Tuning tuning = Get(name);
  EXPECT_EQ(tuning.best().values(0), 20);
  EXPECT_FALSE(tuning.better_than_default());
}

TEST_F(TuningRegistryTest, RunsBelowTheClockAreCalledSo) {
  TestProgram program(*registry_, "p");
  v1::SectionDeclaration declaration = SectionOf(kTile);
  declaration.set_clock_seconds(1e-6);
  const std::string name = program.Declare(declaration).tuning();
  std::vector<v1::TuningReport> reports;
  for (int i = 0; i < 9; ++i) {
    reports.push_back(TestProgram::Run({20}, 2e-6));
    reports.push_back(TestProgram::Run({8}, 8e-6));
  }
  ASSERT_TRUE(program.Report(reports).ok());
  program.ExpectAcknowledged(1);
  EXPECT_TRUE(Get(name).below_clock());
  EXPECT_FALSE(Get(name).better_than_default());
  // What is no time is told by no clock.
  declaration = SectionOf(kTile, "other");
  declaration.mutable_objective()->set_name("loss");
  declaration.mutable_objective()->set_unit("1");
  const std::string loss = program.Declare(declaration, 2).tuning();
  for (v1::TuningReport& report : reports) report.set_section(2);
  ASSERT_TRUE(program.Report(reports).ok());
  program.ExpectAcknowledged(2);
  EXPECT_FALSE(Get(loss).below_clock());
  EXPECT_TRUE(Get(loss).better_than_default());
}

TEST_F(TuningRegistryTest, WhatExploringCostIsWhatTheProgramSaysAndIsToldToLaterOnes) {
  const auto cost = [&](TestProgram& program) { return program.ExpectChoice(); };
  {
    TestProgram program(*registry_, "p");
    const std::string name = program.Declare(SectionOf(kTile)).tuning();
    EXPECT_EQ(cost(program).total_value(), 0);
    ASSERT_TRUE(program.Report({TestProgram::Run({8}, 2)}, 2).ok());
    const std::vector<v1::TuningProposal> proposals = program.ExpectProposals(2);
    v1::TuningReport dear = TestProgram::Run(proposals[0], 5), cheap = TestProgram::Run(proposals[1], 2);
    dear.set_excess(2.5);
    cheap.set_excess(-0.5);
    ASSERT_TRUE(program.Report({dear, cheap}).ok());
    program.ExpectAcknowledged(program.sequence);
    EXPECT_DOUBLE_EQ(Get(name).exploration_excess(), 2);
    EXPECT_DOUBLE_EQ(Get(name).total_value(), 9);
  }
  TestProgram later(*registry_, "later");
  later.Declare(SectionOf(kTile));
  const v1::TuningChoice choice = cost(later);
  EXPECT_DOUBLE_EQ(choice.exploration_excess(), 2);
  EXPECT_DOUBLE_EQ(choice.total_value(), 9);
}

TEST_F(TuningRegistryTest, ADeclarationThatCannotBeReadIsRefusedAlone) {
  TestProgram program(*registry_, "p");
  const std::string name = program.Declare(SectionOf(kTile), 1).tuning();
  ASSERT_TRUE(
      registry_->RefuseDeclaration(program.program(), 2, absl::InvalidArgumentError("not UTF-8")).ok());
  const v1::Declared told = program.Expect(&v1::TuneResponse::has_declared).declared();
  EXPECT_EQ(told.section(), 2u);
  EXPECT_EQ(told.status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  ASSERT_TRUE(program.Report({TestProgram::Run({8}, 2), TestProgram::Run({8}, 2, 0, 2)}).ok());
  EXPECT_EQ(program.Expect(&v1::TuneResponse::has_refused).refused().section(), 2u);
  program.ExpectAcknowledged(1);
  EXPECT_EQ(Get(name).runs(), 1u);
}

TEST_F(TuningRegistryTest, UnknownSectionIsSaid) {
  TestProgram program(*registry_, "p");
  ASSERT_TRUE(program.Report({TestProgram::Run({8}, 2, 0, 77), TestProgram::Run({8}, 2, 0, 77)}).ok());
  const v1::Declared told = program.Expect(&v1::TuneResponse::has_declared).declared();
  EXPECT_EQ(told.section(), 77u);
  EXPECT_EQ(told.status().code(), static_cast<int>(absl::StatusCode::kNotFound));
  const v1::ReportRefused refused = program.Expect(&v1::TuneResponse::has_refused).refused();
  EXPECT_EQ(refused.section(), 77u);
  EXPECT_EQ(refused.runs(), 2u);
  program.ExpectAcknowledged(1);
  EXPECT_TRUE(program.Received().empty());
}

TEST_F(TuningRegistryTest, WrongDeclarationsAreSaid) {
  TestProgram program(*registry_, "p");
  auto none = SectionOf(kTile);
  none.clear_program();
  EXPECT_EQ(program.Declare(none, 1).status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(program.Declare(SectionOf("parameters { name: 'a' integer { lower: 5 upper: 1 step: 1 } }"), 2)
                .status()
                .code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
  auto strategy = SectionOf(kTile);
  strategy.set_strategy("magic");
  const v1::Declared magic = program.Declare(strategy, 3);
  EXPECT_EQ(magic.status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(magic.status().message(), HasSubstr("portfolio"));
  EXPECT_EQ(registry_->List({})->tunings_size(), 0);
  EXPECT_EQ(program.Declare(SectionOf(kTile), 4).status().code(), 0);
  // The same again is the same answer.
  EXPECT_EQ(program.Declare(SectionOf(kTile), 4).status().code(), 0);
  v1::DeclareSection other;
  other.set_section(4);
  *other.mutable_declaration() = SectionOf(kTile, "other");
}

TEST_F(TuningRegistryTest, OtherDeclarationWhileAProgramRuns) {
  const auto wider =
      SectionOf("parameters { name: 'tile' integer { lower: 1 upper: 128 step: 1 } default_value: 8 }");
  auto first = std::make_unique<TestProgram>(*registry_, "first");
  const std::string name = first->Declare(SectionOf(kTile)).tuning();
  Tune(*first, 40, Valley);
  const uint64_t reported = first->reported;
  TestProgram second(*registry_, "second");
  const v1::Declared refused = second.Declare(wider, 1);
  EXPECT_EQ(refused.status().code(), static_cast<int>(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(refused.status().message(),
              HasSubstr("parameter tile: 1..64 step 1, default 8 there, 1..128 step 1, default 8 here"));
  // When nobody else is there the new one counts; the best of before is tried first, at the same place
  // between the bounds.
  ExpectSearched(name, reported);
  const double best = Get(name).best().values(0);
  first->Disconnect();
  const v1::Declared replaced = second.Declare(wider, 2);
  EXPECT_EQ(replaced.status().code(), 0) << replaced.status().message();
  EXPECT_EQ(replaced.tuning(), name);
  const v1::TuningChoice choice = second.ExpectChoice();
  EXPECT_EQ(choice.generation(), 2u);
  EXPECT_EQ(choice.provenance(), v1::NEAR);
  EXPECT_NEAR(choice.best().values(0), 1 + (best - 1) / 63 * 127, 1);
  EXPECT_EQ(Get(name).runs(), 0u);
  EXPECT_EQ(StoredReports(name), reported);
}

TEST_F(TuningRegistryTest, LaterProgramsBeginWithWhatIsKnown) {
  std::string name;
  double best = 0;
  {
    TestProgram program(*registry_, "first");
    name = program.Declare(SectionOf(kTile)).tuning();
    Tune(program, 60, Valley);
    best = Get(name).best().values(0);
  }
  Restart();
  TestProgram same(*registry_, "same");
  EXPECT_EQ(same.Declare(SectionOf(kTile)).tuning(), name);
  v1::TuningChoice choice = same.ExpectChoice();
  EXPECT_EQ(choice.provenance(), v1::EXACT);
  EXPECT_NEAR(choice.best().values(0), best, 4);
  EXPECT_GT(choice.expected_value(), 0);
  EXPECT_EQ(choice.provenance_tuning(), "");

  // The nearer of two contexts; then another device.
  TestProgram far(*registry_, "far");
  far.Declare(SectionOf(kTile, "cpu", 10));
  Tune(far, 40, [](double tile) { return 1 + std::abs(tile - 5) / 20; });
  TestProgram near(*registry_, "near");
  near.Declare(SectionOf(kTile, "cpu", 2000));
  choice = near.ExpectChoice();
  EXPECT_EQ(choice.provenance(), v1::NEAR);
  EXPECT_EQ(choice.provenance_tuning(), name);
  EXPECT_NEAR(choice.best().values(0), 40, 5);
  EXPECT_EQ(choice.expected_value(), 0);
  TestProgram small(*registry_, "small");
  small.Declare(SectionOf(kTile, "cpu", 20));
  EXPECT_NEAR(small.ExpectChoice().best().values(0), 5, 5);
  TestProgram device(*registry_, "device");
  device.Declare(SectionOf(kTile, "other"));
  choice = device.ExpectChoice();
  EXPECT_EQ(choice.provenance(), v1::OTHER_DEVICE);
  EXPECT_EQ(choice.provenance_tuning(), name);
  // Another set of sizes is not the same thing.
  TestProgram other(*registry_, "other");
  auto sizes = SectionOf(kTile);
  sizes.mutable_context(0)->set_name("m");
  other.Declare(sizes);
  EXPECT_EQ(other.ExpectChoice().provenance(), v1::PROVENANCE_UNSPECIFIED);
}

TEST_F(TuningRegistryTest, CandidatesOfLaterSearchesHaveOtherNumbers) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    TestProgram program(*registry_, "p" + std::to_string(i));
    program.Declare(SectionOf(kTile));
    ASSERT_TRUE(program.Report({}, 2).ok());
    for (const auto& proposal : program.ExpectProposals(2)) EXPECT_TRUE(ids.insert(proposal.id()).second);
    program.Disconnect();
    if (i == 1) Restart();
  }
}

TEST_F(TuningRegistryTest, ResetForgetsWhatWasMeasured) {
  TestProgram program(*registry_, "p");
  const std::string name = program.Declare(SectionOf(kTile)).tuning();
  Tune(program, 30, Valley);
  const size_t reports = StoredReports(name);
  ASSERT_TRUE(program.Report({}, 1).ok());
  auto reset = registry_->Reset(name);
  ASSERT_TRUE(reset.ok()) << reset.status();
  EXPECT_EQ(reset->generation(), 2u);
  EXPECT_EQ(reset->runs(), 0u);
  EXPECT_EQ(reset->best().values(0), 8);
  EXPECT_EQ(reset->phase(), v1::EXPLORING);
  EXPECT_EQ(StoredReports(name), reports);
  const v1::TuneResponse told = program.Expect([](const v1::TuneResponse& response) {
    return response.has_choice() && response.choice().generation() == 2;
  });
  EXPECT_EQ(told.choice().best().values(0), 8);
  // What was proposed before is history only.
  v1::TuningReport late = TestProgram::Run({40}, 0.001, (uint64_t{1} << 32) + 1);
  ASSERT_TRUE(program.Report({late}).ok());
  program.ExpectAcknowledged(program.sequence);
  EXPECT_EQ(Get(name).best().values(0), 8);
  EXPECT_EQ(Get(name).configurations(), 0u);
  EXPECT_EQ(StoredReports(name), reports + 1);

  // Also when nobody tunes it.
  program.Disconnect();
  reset = registry_->Reset(name);
  ASSERT_TRUE(reset.ok()) << reset.status();
  EXPECT_EQ(reset->generation(), 3u);
  EXPECT_TRUE(absl::IsNotFound(registry_->Reset("tunings/none").status()));
  TestProgram later(*registry_, "later");
  later.Declare(SectionOf(kTile));
  EXPECT_EQ(later.ExpectChoice().generation(), 3u);
}

}  // namespace
}  // namespace fusion
