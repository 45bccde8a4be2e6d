#include "server/connection/connection_table.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace fusion {
namespace {

using Verdict = ConnectionTable::Verdict;

boost::asio::ip::address Address(const char* text) { return boost::asio::ip::make_address(text); }

class Socket {
 public:
  Socket() : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {}
  ~Socket() { Close(); }
  int descriptor() const { return descriptor_; }
  void Close() {
    if (const int open = std::exchange(descriptor_, -1); open >= 0) close(open);
  }

 private:
  int descriptor_;
};

void WaitUntilItLooksAgain() { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }

TEST(ConnectionTableTest, NoMoreThanTheLimitAreOpen) {
  ConnectionTable table({.most = 2, .most_of_address = 2});
  Socket first, second, third;
  EXPECT_EQ(table.Take(first.descriptor(), Address("10.0.0.1")), Verdict::kTaken);
  EXPECT_EQ(table.Take(second.descriptor(), Address("10.0.0.2")), Verdict::kTaken);
  EXPECT_EQ(table.Take(third.descriptor(), Address("10.0.0.3")), Verdict::kFull);
  EXPECT_EQ(table.size(), 2);
}

TEST(ConnectionTableTest, OneAddressLeavesRoomForOthers) {
  ConnectionTable table({.most = 3, .most_of_address = 1});
  Socket sockets[7];
  EXPECT_EQ(table.Take(sockets[0].descriptor(), Address("10.0.0.1")), Verdict::kTaken);
  EXPECT_EQ(table.Take(sockets[1].descriptor(), Address("10.0.0.1")), Verdict::kAddressFull);
  EXPECT_EQ(table.Take(sockets[2].descriptor(), Address("::ffff:10.0.0.1")), Verdict::kAddressFull)
      << "the same, as a listener of both protocols sees it";
  EXPECT_EQ(table.Take(sockets[3].descriptor(), Address("2001:db8:0:1::1")), Verdict::kTaken);
  EXPECT_EQ(table.Take(sockets[4].descriptor(), Address("2001:db8:0:1:2::2")), Verdict::kAddressFull)
      << "a machine has 2^64 addresses";
  EXPECT_EQ(table.Take(sockets[5].descriptor(), Address("2001:db8:0:2::1")), Verdict::kTaken);
  EXPECT_EQ(table.Take(sockets[6].descriptor(), Address("10.0.0.9")), Verdict::kFull);
}

TEST(ConnectionTableTest, ClosedOnesMakeRoom) {
  ConnectionTable table({.most = 2, .most_of_address = 2});
  Socket first, second, third, fourth;
  ASSERT_EQ(table.Take(first.descriptor(), Address("10.0.0.1")), Verdict::kTaken);
  ASSERT_EQ(table.Take(second.descriptor(), Address("10.0.0.1")), Verdict::kTaken);
  ASSERT_EQ(table.Take(third.descriptor(), Address("10.0.0.1")), Verdict::kFull);
  first.Close();
  WaitUntilItLooksAgain();
  EXPECT_EQ(table.Take(third.descriptor(), Address("10.0.0.1")), Verdict::kTaken);
  EXPECT_EQ(table.size(), 2);
  second.Close();
  table.RemoveClosed();
  EXPECT_EQ(table.size(), 1);
  EXPECT_EQ(table.Take(fourth.descriptor(), Address("10.0.0.1")), Verdict::kTaken);
}

TEST(ConnectionTableTest, ADescriptorThatWasUsedAgainIsAnotherConnection) {
  ConnectionTable table({.most = 4, .most_of_address = 1});
  auto first = std::make_unique<Socket>();
  const int descriptor = first->descriptor();
  ASSERT_EQ(table.Take(descriptor, Address("10.0.0.1")), Verdict::kTaken);
  first = nullptr;
  Socket second;
  ASSERT_EQ(second.descriptor(), descriptor) << "the system gives the lowest free number";
  EXPECT_EQ(table.Take(second.descriptor(), Address("10.0.0.2")), Verdict::kTaken);
  EXPECT_EQ(table.size(), 1);
  Socket third;
  EXPECT_EQ(table.Take(third.descriptor(), Address("10.0.0.1")), Verdict::kTaken)
      << "what was counted of the former address is not any more";
}

TEST(ConnectionTableTest, ADescriptorOfSomethingElseIsNoConnection) {
  ConnectionTable table({.most = 4, .most_of_address = 4});
  auto first = std::make_unique<Socket>();
  const int descriptor = first->descriptor();
  ASSERT_EQ(table.Take(descriptor, Address("10.0.0.1")), Verdict::kTaken);
  first = nullptr;
  Socket stranger;  // nobody tells the table of it
  ASSERT_EQ(stranger.descriptor(), descriptor);
  table.RemoveClosed();
  EXPECT_EQ(table.size(), 0);
}

TEST(ConnectionTableTest, LimitsFollowTheLimitOfOpenFiles) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 1024) GTEST_SKIP() << "the limit of open files cannot be raised to 1024";
  const auto with = [&](rlim_t files) {
    const rlimit limit = {files, before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const ConnectionLimits limits = WithDefaults({});
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    return limits;
  };
  EXPECT_EQ(with(1024).most, 256) << "three descriptors each";
  EXPECT_EQ(with(1024).most_of_address, 128);
  EXPECT_EQ(with(100).most, 16);
  if (before.rlim_max >= 200000) {
    EXPECT_EQ(with(before.rlim_max).most, 65536);
  }
  EXPECT_EQ(WithDefaults({.most = 7}).most, 7);
  EXPECT_EQ(WithDefaults({.most = 7}).most_of_address, 3);
  EXPECT_EQ(WithDefaults({.most = 1}).most_of_address, 1);
  EXPECT_EQ(WithDefaults({.most = 7, .most_of_address = 9}).most_of_address, 7);
}

}  // namespace
}  // namespace fusion
