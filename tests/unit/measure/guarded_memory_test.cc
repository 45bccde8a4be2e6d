#include "worker/measure/guarded_memory.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "worker/measure/host_backend.h"

namespace fusion {
namespace {

class GuardedMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto backend = HostBackend::Open();
    ASSERT_TRUE(backend.ok());
    backend_ = std::move(*backend);
    const std::vector<std::pair<std::string, int64_t>> layout = {{"x", 1000}, {"y", 0}, {"z", 4}};
    auto memory = GuardedMemory::Create(backend_.get(), GuardedMemory::Capacity(layout));
    ASSERT_TRUE(memory.ok());
    memory_ = std::move(*memory);
    ASSERT_TRUE(memory_->Cut(layout).ok());
  }
  char* Data(int buffer) { return reinterpret_cast<char*>(memory_->buffers()[buffer].range.address); }
  std::string Damage() { return memory_->Check().value(); }
  std::unique_ptr<ExecutionBackend> backend_;
  std::unique_ptr<GuardedMemory> memory_;
};

TEST_F(GuardedMemoryTest, BuffersAreAlignedAndMayBeWrittenToTheLastByte) {
  ASSERT_EQ(memory_->buffers().size(), 3u);
  for (const GuardedMemory::Buffer& buffer : memory_->buffers()) {
    EXPECT_EQ(buffer.range.address % 256, 0u);
    std::memset(reinterpret_cast<void*>(buffer.range.address), 0, buffer.range.bytes);
  }
  EXPECT_EQ(Damage(), "");
}

TEST_F(GuardedMemoryTest, OneByteTooFarIsFoundAndNamed) {
  Data(0)[1000] ^= 1;
  EXPECT_NE(Damage().find("after the end of x"), std::string::npos) << Damage();
  ASSERT_TRUE(memory_->Arm().ok());
  EXPECT_EQ(Damage(), "");
  Data(0)[-1] ^= 1;
  EXPECT_NE(Damage().find("before the start of x"), std::string::npos) << Damage();
  ASSERT_TRUE(memory_->Arm().ok());
  Data(2)[4 + kGuardBytes - 1] ^= 1;
  EXPECT_NE(Damage().find("after the end of z"), std::string::npos) << Damage();
}

TEST_F(GuardedMemoryTest, GuardsReadAsNotANumber) {
  float narrow;
  double wide;
  std::memcpy(&narrow, Data(0) + 1000, 4);
  std::memcpy(&wide, Data(0) + 1000, 8);
  EXPECT_TRUE(std::isnan(narrow));
  EXPECT_TRUE(std::isnan(wide));
}

TEST_F(GuardedMemoryTest, LayingWritesNothingAndRunsWriteTheGuards) {
  const std::vector<std::pair<std::string, int64_t>> other = {{"a", 500}};
  memory_->Lay(other);
  EXPECT_NE(Damage(), "");  // what were buffers is now a guard
  RunOptions options;
  options.guards = memory_->guards();
  ASSERT_TRUE(backend_->Run({}, options).ok());
  EXPECT_EQ(Damage(), "");
}

// After a run each inspection finds what the calls for one thing find.
TEST_F(GuardedMemoryTest, InspectionsOfARunAreThoseOfTheSingleCalls) {
  Data(0)[1003] ^= 1;
  Data(0)[-7] ^= 1;
  Data(0)[-6] ^= 1;
  const std::vector<double> reference = {1.5, 2, 3};
  const std::vector<float> output = {1.5, 2.5, 3};
  const DeviceAddress narrow = backend_->Allocate(12).value(), wide = backend_->Allocate(24).value();
  ASSERT_TRUE(backend_->CopyIn(narrow, output.data(), 12).ok());
  ASSERT_TRUE(backend_->CopyIn(wide, reference.data(), 24).ok());
  std::vector<Inspection> inspections;
  for (const MemoryRange& guard : memory_->guards())
    inspections.push_back({.kind = Inspection::Kind::kGuard, .range = guard});
  inspections.push_back({.kind = Inspection::Kind::kHash, .range = {narrow, 12}});
  inspections.push_back(
      {.kind = Inspection::Kind::kCompare, .range = {narrow, 12}, .reference = wide, .scale = 1});
  RunOptions options;
  options.inspections = inspections;
  Inspected inspected;
  options.inspected = &inspected;
  std::vector<std::string> order;
  options.before_launch = [&] { order.push_back("before"); };
  options.after_run = [&] { order.push_back("after"); };
  ASSERT_TRUE(backend_->Run({}, options).ok());
  EXPECT_EQ(order, (std::vector<std::string>{"before", "after"}));
  ASSERT_EQ(inspected.found.size(), 6u);
  EXPECT_EQ(inspected.found[0], 2u);  // before x
  EXPECT_EQ(inspected.found[1], 1u);  // after x
  EXPECT_EQ(inspected.found[2] + inspected.found[3], 0u);
  EXPECT_EQ(inspected.found[4], backend_->Hash(narrow, 12).value());
  EXPECT_EQ(std::bit_cast<double>(inspected.found[5]), 0.25);
  EXPECT_GT(inspected.seconds, 0);
}

}  // namespace
}  // namespace fusion
