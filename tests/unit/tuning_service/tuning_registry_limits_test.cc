// What programs may ask of the registry, many of them at once, and a disk that is full.
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/tuning_service/tuning_registry_fixture.h"

namespace fusion {
namespace {

TEST_F(TuningRegistryTest, Limits) {
  options_.programs = 2;
  options_.sections_of_program = 2;
  options_.tunings = 2;
  options_.reports_of_batch = 3;
  options_.declaration_bytes = 1000;
  Restart();
  TestProgram program(*registry_, "p");
  auto second = std::make_unique<TestProgram>(*registry_, "second");
  v1::Hello hello;
  hello.set_process("third");
  auto outbox = std::make_shared<ProgramOutbox>([] {});
  EXPECT_TRUE(absl::IsResourceExhausted(registry_->Connect(hello, outbox).status()));
  second->Disconnect();
  EXPECT_TRUE(registry_->Connect(hello, outbox).ok());
  hello.set_process("");
  EXPECT_TRUE(absl::IsInvalidArgument(registry_->Connect(hello, outbox).status()));

  auto large = SectionOf(kTile);
  large.add_constraints(std::string(2000, ' '));
  EXPECT_EQ(program.Declare(large, 1).status().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(program.Declare(SectionOf(kTile), 2).status().code(), 0);
  v1::DeclareSection more;
  more.set_section(3);
  *more.mutable_declaration() = SectionOf(kTile);
  v1::ReportBatch batch;
  batch.set_sequence(1);
  for (int i = 0; i < 4; ++i) *batch.add_reports() = TestProgram::Run({8}, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(program.Send(batch)));
}

TEST_F(TuningRegistryTest, MemoryIsGivenBack) {
  options_.tunings = 3;
  Restart();
  for (int i = 0; i < 10; ++i) {
    TestProgram program(*registry_, "p" + std::to_string(i));
    EXPECT_EQ(program.Declare(SectionOf(kTile, "cpu", i + 1)).status().code(), 0) << i;
  }
}

TEST_F(TuningRegistryTest, ConfigurationsThatNobodyProposedFillNoMemory) {
  options_.live.configurations = 10;
  Restart();
  TestProgram program(*registry_, "p");
  const std::string name = program.Declare(SectionOf(kTile)).tuning();
  for (int tile = 1; tile <= 64; ++tile) {
    ASSERT_TRUE(program.Report({TestProgram::Run({static_cast<double>(tile)}, 100 + tile)}).ok());
    program.ExpectAcknowledged(program.sequence);
  }
  EXPECT_LE(Get(name).configurations(), 10u);
}

TEST_F(TuningRegistryTest, ManyProgramsAtOnce) {
  constexpr int kPrograms = 8, kBatches = 50;
  std::string name;
  {
    TestProgram program(*registry_, "first");
    name = program.Declare(SectionOf(kTile)).tuning();
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kPrograms; ++i) {
    threads.emplace_back([&, i] {
      auto program = std::make_unique<TestProgram>(*registry_, "p" + std::to_string(i));
      program->Declare(SectionOf(kTile));
      for (int batch = 1; batch <= kBatches; ++batch) {
        EXPECT_TRUE(
            program->Report({TestProgram::Run({static_cast<double>(1 + (batch * 7 + i) % 64)}, 2)}, 2).ok());
        if (batch % 20 == 0) {
          const uint64_t sent = program->sequence;
          program = std::make_unique<TestProgram>(*registry_, "p" + std::to_string(i));
          program->Declare(SectionOf(kTile));
          program->sequence = sent;
        }
      }
      program->ExpectAcknowledged(kBatches);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get(name).runs(), kPrograms * kBatches);
  EXPECT_EQ(StoredReports(name), static_cast<size_t>(kPrograms * kBatches));
}

TEST_F(TuningRegistryTest, FullDiskAcknowledgesNothingAndTheSearchGoesOn) {
  store_options_.max_bytes = 400 * 1024;
  Restart();
  std::string name;
  uint64_t acknowledged = 0, sent = 0;
  {
    TestProgram program(*registry_, "p");
    name = program.Declare(SectionOf(kTile)).tuning();
    // More than the disk holds.
    const std::vector<v1::TuningReport> reports(100, TestProgram::Run({8}, 2));
    while (program.sequence < 500) ASSERT_TRUE(program.Report(reports).ok());
    // Proposals need no disk.
    ASSERT_TRUE(program.Report({}, 1).ok());
    sent = program.sequence;
    EXPECT_EQ(program.ExpectProposals(1).size(), 1u);
    for (const v1::TuneResponse& response : program.Received())
      if (response.has_acknowledged()) acknowledged = response.acknowledged().sequence();
  }
  store_options_.max_bytes = 0;
  Restart();
  TestProgram again(*registry_, "p");
  EXPECT_GE(again.last_sequence, acknowledged);
  EXPECT_LT(again.last_sequence, sent);
  again.Declare(SectionOf(kTile));
  std::vector<v1::TuningReport> reports(100, TestProgram::Run({8}, 2));
  while (again.sequence < sent) ASSERT_TRUE(again.Report(reports).ok());
  again.ExpectAcknowledged(sent);
  EXPECT_EQ(Get(name).runs(), 100 * sent);
}

TEST_F(TuningRegistryTest, StopEndsConnectionsAndWrites) {
  TestProgram program(*registry_, "p");
  const std::string name = program.Declare(SectionOf(kTile)).tuning();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(program.Report({TestProgram::Run({8}, 2)}).ok());
  registry_->Stop();
  ASSERT_TRUE(program.ended());
  EXPECT_TRUE(absl::IsUnavailable(*program.ended()));
  EXPECT_EQ(Get(name).runs(), 20u);
  v1::Hello hello;
  hello.set_process("late");
  EXPECT_TRUE(
      absl::IsUnavailable(registry_->Connect(hello, std::make_shared<ProgramOutbox>([] {})).status()));
}

}  // namespace
}  // namespace fusion
