#include "worker/measure/message_pipe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "fusion/v1/runner.pb.h"

namespace fusion {
namespace {

class MessagePipeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_), 0); }
  void TearDown() override {
    CloseWriter();
    close(ends_[0]);
  }
  void CloseWriter() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  int ends_[2];
};

TEST_F(MessagePipeTest, CarriesSmallEmptyAndLargeMessages) {
  v1::RunnerBinary small, empty, large;
  small.set_digest("sha256:1");
  large.set_content(std::string(5 << 20, 'x'));
  std::thread writer([&] {
    for (const auto* message : {&small, &empty, &large}) EXPECT_TRUE(WriteMessage(ends_[1], *message).ok());
  });
  for (const auto* message : {&small, &empty, &large}) {
    v1::RunnerBinary read;
    ASSERT_TRUE(ReadMessage(ends_[0], &read).ok());
    EXPECT_EQ(read.SerializeAsString(), message->SerializeAsString());
  }
  writer.join();
}

TEST_F(MessagePipeTest, AClosedPipeIsCancelled) {
  CloseWriter();
  v1::RunnerBinary read;
  EXPECT_EQ(ReadMessage(ends_[0], &read).code(), absl::StatusCode::kCancelled);
}

TEST_F(MessagePipeTest, GarbageIsRefused) {
  ASSERT_EQ(write(ends_[1], "\xff\xff\xff\xff", 4), 4);
  v1::RunnerBinary read;
  EXPECT_EQ(ReadMessage(ends_[0], &read).code(), absl::StatusCode::kDataLoss);
  ASSERT_EQ(write(ends_[1], "\x02\0\0\0\xff\xff", 6), 6);
  EXPECT_EQ(ReadMessage(ends_[0], &read).code(), absl::StatusCode::kDataLoss);
}

TEST_F(MessagePipeTest, WaitingEndsWhenToldTo) {
  v1::RunnerBinary read;
  int calls = 0;
  absl::Status status = ReadMessage(ends_[0], &read, [&]() -> absl::Status {
    return ++calls < 3 ? absl::OkStatus() : absl::DeadlineExceededError("enough");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace fusion
