#include "worker/measure/guarded_memory.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fusion
