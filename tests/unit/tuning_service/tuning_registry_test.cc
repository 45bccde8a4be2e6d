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

TEST_F(TuningRegistryTest, NonsenseEndsItsSectionAlone) {
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
      {"outside", [](auto& r) { r.mutable_configuration()->set_values(0, 65); }, "tile"},
      {"not a number", [&](auto& r) { r.mutable_configuration()->set_values(0, kNan); }, "tile"},
      {"dimensions", [](auto& r) { r.mutable_configuration()->add_values(1); }, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TestProgram program(*registry_, c.name);
    const std::string name = program.Declare(SectionOf(kTile), 1).tuning();
    program.Declare(SectionOf(kTile, "other"), 2);
    v1::TuningReport bad = TestProgram::Run({8}, 2);
    c.spoil(bad);
    const uint64_t before = Get(name).runs();
    ASSERT_TRUE(program.Report({bad, TestProgram::Run({8}, 2), TestProgram::Run({8}, 2, 0, 2)}).ok());
    const v1::Declared told = program.Expect(&v1::TuneResponse::has_declared).declared();
    EXPECT_EQ(told.section(), 1u);
    EXPECT_EQ(told.status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(told.status().message(), HasSubstr(c.said));
    program.ExpectAcknowledged(1);
    EXPECT_EQ(Get(name).runs(), before);
    EXPECT_EQ(Get(name).programs(), 0u);
  }
  v1::ListTuningsRequest all;
  EXPECT_EQ(registry_->List(all)->tunings(0).runs(), std::size(cases));  // of the other sections
}

TEST_F(TuningRegistryTest, UnknownSectionIsSaid) {
  TestProgram program(*registry_, "p");
  ASSERT_TRUE(program.Report({TestProgram::Run({8}, 2, 0, 77), TestProgram::Run({8}, 2, 0, 77)}).ok());
  const v1::Declared told = program.Expect(&v1::TuneResponse::has_declared).declared();
  EXPECT_EQ(told.section(), 77u);
  EXPECT_EQ(told.status().code(), static_cast<int>(absl::StatusCode::kNotFound));
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
