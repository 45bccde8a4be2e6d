#include "base/sandbox/message_pipe.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/sandbox/child_process.h"
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

TEST_F(MessagePipeTest, MoreThanIsAllowedIsRefused) {
  v1::RunnerBinary message;
  message.set_content(std::string(1000, 'x'));
  const uint32_t size = static_cast<uint32_t>(message.ByteSizeLong());
  v1::RunnerBinary read;
  ASSERT_TRUE(WriteMessage(ends_[1], message).ok());
  EXPECT_TRUE(ReadMessage(ends_[0], &read, nullptr, size).ok());
  ASSERT_TRUE(WriteMessage(ends_[1], message).ok());
  EXPECT_EQ(ReadMessage(ends_[0], &read, nullptr, size - 1).code(), absl::StatusCode::kDataLoss);
}

TEST_F(MessagePipeTest, ALengthThatIsOnlyAnnouncedTakesNoMemory) {
  const auto peak_kilobytes = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kilobytes();
  ASSERT_EQ(write(ends_[1], "\0\0\0\x20some bytes", 14), 14);  // of 512 MiB
  CloseWriter();
  v1::RunnerBinary read;
  EXPECT_EQ(ReadMessage(ends_[0], &read).code(), absl::StatusCode::kCancelled);
  EXPECT_LT(peak_kilobytes() - before, 64 << 10);
}

TEST_F(MessagePipeTest, AMessageThatComesByteByByteCanBeGivenUp) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    EXPECT_EQ(write(ends_[1], "\0\0\0\x10", 4), 4);
    // Never a pause of the 20 ms after which the reader looks at the time.
    while (!stop && write(ends_[1], "x", 1) == 1) {
    }
  });
  v1::RunnerBinary read;
  const auto start = std::chrono::steady_clock::now();
  const absl::Status status = ReadMessage(ends_[0], &read, [&]() -> absl::Status {
    return std::chrono::steady_clock::now() - start < std::chrono::milliseconds(100)
               ? absl::OkStatus()
               : absl::DeadlineExceededError("enough");
  });
  stop = true;
  writer.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
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

// As a runner whose program has stopped it: what the pipe holds is sent, the rest is not waited for.
TEST_F(MessagePipeTest, AProcessThatDoesNotReadIsGivenUp) {
  const auto child = ChildProcess::Start({.command = {"sleep", "60"}, .input = true});
  ASSERT_TRUE(child.ok()) << child.status();
  v1::RunnerBinary large;
  large.set_content(std::string(5 << 20, 'x'));
  int calls = 0;
  const absl::Status status = WriteMessage((*child)->input(), large, [&]() -> absl::Status {
    return ++calls < 10 ? absl::OkStatus() : absl::DeadlineExceededError("enough");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace fusion
