#include "server/identity/waiting_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "server/identity/network.h"
#include "server/service/status_conversion.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
constexpr WaitingAnswers::Time kBegin{std::chrono::hours(1)};
const std::string kEva = "ipv4:10.0.0.7:1", kEvaAgain = "ipv4:10.0.0.7:2", kMax = "ipv4:10.0.0.8:1";

AnswerLimits Limits() {
  AnswerLimits limits;
  limits.of_connection = 1 << 20;
  limits.of_address = 3 << 20;
  limits.of_all = 5 << 20;
  limits.little = 100 << 10;
  return limits;
}

TEST(Network, OfAPeerIsItsAddressOrItsSite) {
  EXPECT_EQ(NetworkOfPeer("ipv4:10.0.0.7:51234"), "10.0.0.7");
  EXPECT_EQ(NetworkOfPeer("ipv6:[2001:db8::7]:51234"), "2001:db8::");
  EXPECT_EQ(NetworkOfPeer("ipv6:[2001:db8::8:9]:1"), "2001:db8::");
  EXPECT_EQ(NetworkOfPeer("ipv6:[::1]:51234"), "::1");
  for (const char* none : {"", "inproc", "unix:/run/x", "ipv4:", "ipv4:nobody:1", "ipv6:[::1"})
    EXPECT_EQ(NetworkOfPeer(none), "") << none;
}

TEST(WaitingAnswers, AConnectionThatDoesNotTakeGetsNoFurther) {
  WaitingAnswers answers(Limits());
  std::shared_ptr<void> first = answers.Hold(kEva, 800 << 10, kBegin, nullptr);
  EXPECT_TRUE(answers.Admit(kEva, kBegin).ok());
  std::shared_ptr<void> second = answers.Hold(kEva, 800 << 10, kBegin, nullptr);
  const absl::Status refused = answers.Admit(kEva, kBegin);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("this connection"));
  EXPECT_GT(RetrySeconds(refused), 0);
  EXPECT_TRUE(answers.Admit(kEvaAgain, kBegin).ok());
  second.reset();
  EXPECT_TRUE(answers.Admit(kEva, kBegin).ok());
  first.reset();
  EXPECT_EQ(answers.bytes(), 0u);
}

TEST(WaitingAnswers, OneAloneMayBeLargerThanAllLimits) {
  WaitingAnswers answers(Limits());
  std::shared_ptr<void> blob = answers.Hold(kEva, 64 << 20, kBegin, nullptr);
  EXPECT_FALSE(answers.Admit(kEva, kBegin).ok());
  EXPECT_THAT(std::string(answers.Admit(kEvaAgain, kBegin).message()), HasSubstr("this address"));
  EXPECT_THAT(std::string(answers.Admit(kMax, kBegin).message()), HasSubstr("others"));
  blob.reset();
  EXPECT_TRUE(answers.Admit(kMax, kBegin).ok());
}

TEST(WaitingAnswers, CallsCountThoughTheirAnswersAreSmall) {
  WaitingAnswers answers(Limits());
  std::vector<std::shared_ptr<void>> held;
  while (answers.Admit(kEva, kBegin).ok() && held.size() < 1000)
    held.push_back(answers.Hold(kEva, 10, kBegin, nullptr));
  EXPECT_LT(held.size(), 100u);
}

TEST(WaitingAnswers, TheServersOwnProcessHasNoLimit) {
  WaitingAnswers answers(Limits());
  for (const char* own : {"", "inproc"}) {
    const std::shared_ptr<void> held = answers.Hold(own, 64 << 20, kBegin, nullptr);
    EXPECT_TRUE(answers.Admit(own, kBegin).ok());
    EXPECT_EQ(answers.bytes(), 0u);
  }
}

TEST(WaitingAnswers, WhatIsNotTakenInTimeIsGivenUpOnce) {
  WaitingAnswers answers(Limits());
  int small_ended = 0, large_ended = 0, taken_ended = 0;
  const auto small = answers.Hold(kEva, 10, kBegin, [&] { ++small_ended; });
  const auto large = answers.Hold(kEva, 640 << 10, kBegin, [&] { ++large_ended; });  // 10 s more
  answers.Hold(kEva, 10, kBegin, [&] { ++taken_ended; }).reset();
  answers.GiveUpOverdue(kBegin + milliseconds(59'999));
  EXPECT_EQ(small_ended, 0);
  answers.GiveUpOverdue(kBegin + seconds(61));
  EXPECT_EQ(small_ended, 1);
  EXPECT_EQ(answers.bytes(), (640u << 10) + (16u << 10));
  answers.GiveUpOverdue(kBegin + milliseconds(69'999));
  EXPECT_EQ(large_ended, 0);
  answers.GiveUpOverdue(kBegin + seconds(71));
  answers.GiveUpOverdue(kBegin + seconds(1000));
  EXPECT_EQ(small_ended, 1);
  EXPECT_EQ(large_ended, 1);
  EXPECT_EQ(taken_ended, 0);
  EXPECT_EQ(answers.given_up(), 2u);
  EXPECT_EQ(answers.bytes(), 0u);
}

TEST(WaitingAnswers, WhoHoldsMuchOfAnAddressMakesRoomForTheOthers) {
  WaitingAnswers answers(Limits());
  int ended = 0;
  std::vector<std::shared_ptr<void>> held;
  const auto hold = [&](const std::string& peer, size_t bytes) {
    held.push_back(answers.Hold(peer, bytes, kBegin, [&] { ++ended; }));
  };
  const std::vector<std::string> greedy = {"ipv4:10.0.0.7:11", "ipv4:10.0.0.7:12", "ipv4:10.0.0.7:13",
                                           "ipv4:10.0.0.7:14"};
  for (int i = 0; i < 3; ++i)
    for (const std::string& peer : greedy) hold(peer, 250 << 10);
  ASSERT_GE(answers.bytes(), 3u << 20);
  for (const std::string& peer : greedy)
    EXPECT_THAT(std::string(answers.Admit(peer, kBegin + seconds(30)).message()), HasSubstr("this address"));
  EXPECT_TRUE(answers.Admit(kEva, kBegin).ok()) << "a quarter is left for who holds little";
  hold(kEvaAgain, 700 << 10);
  EXPECT_EQ(ended, 0);
  EXPECT_FALSE(answers.Admit(kEva, kBegin + milliseconds(99)).ok()) << "they may be on their way";
  EXPECT_FALSE(answers.Admit(kEvaAgain, kBegin + seconds(30)).ok());
  EXPECT_EQ(ended, 0);
  // At 1 MB/s the first would be there after 260 ms.
  EXPECT_FALSE(answers.Admit(kEva, kBegin + milliseconds(355)).ok());
  EXPECT_EQ(ended, 0);
  EXPECT_TRUE(answers.Admit(kEva, kBegin + milliseconds(365)).ok());
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(answers.Admit(kMax, kBegin).ok()) << "another address";
  held.clear();
  EXPECT_EQ(answers.bytes(), 0u);
}

TEST(WaitingAnswers, TheAddressThatHoldsMostMakesRoomForTheOthers) {
  AnswerLimits limits = Limits();
  limits.of_all = 2 << 20;
  WaitingAnswers answers(limits);
  int ended = 0;
  const auto small = answers.Hold(kMax, 10, kBegin, [&] { ended += 10; });
  const auto large = answers.Hold(kEva, 3 << 20, kBegin, [&] { ++ended; });
  EXPECT_FALSE(answers.Admit(kMax, kBegin + seconds(3)).ok());
  EXPECT_TRUE(answers.Admit(kMax, kBegin + milliseconds(3200)).ok());
  EXPECT_EQ(ended, 1);
}

TEST(WaitingAnswers, TicketsMayOutliveIt) {
  auto answers = std::make_unique<WaitingAnswers>(Limits());
  const std::shared_ptr<void> held = answers->Hold(kEva, 10, kBegin, nullptr);
  answers.reset();
}

// The same, added up again each time.
TEST(WaitingAnswers, CountsAsAddingUpWould) {
  std::mt19937 dice(5);
  const AnswerLimits limits = Limits();
  WaitingAnswers answers(limits);
  struct Held {
    std::string peer;
    size_t bytes;
    std::shared_ptr<void> ticket;
  };
  std::vector<Held> held;
  const std::vector<std::string> peers = {kEva, kEvaAgain, kMax, "ipv6:[2001:db8::1]:1",
                                          "ipv6:[2001:db8::2]:1"};
  int refused = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::string& peer = peers[dice() % peers.size()];
    size_t of_connection = 0, of_address = 0, all = 0;
    for (const Held& answer : held) {
      const size_t bytes = answer.bytes + (16 << 10);
      all += bytes;
      if (answer.peer == peer) of_connection += bytes;
      if (NetworkOfPeer(answer.peer) == NetworkOfPeer(peer)) of_address += bytes;
    }
    ASSERT_EQ(answers.bytes(), all);
    // None has waited for a moment, so that none is given up.
    const auto limit = [&](size_t of) { return of_connection < limits.little ? of / 4 * 5 : of; };
    const bool may = of_connection < limits.of_connection && of_address < limit(limits.of_address) &&
                     all < limit(limits.of_all);
    ASSERT_EQ(answers.Admit(peer, kBegin).ok(), may) << step;
    refused += may ? 0 : 1;
    if (may && dice() % 3 != 0) {
      const size_t bytes = dice() % (600 << 10);
      held.push_back({peer, bytes, answers.Hold(peer, bytes, kBegin, nullptr)});
    } else if (!held.empty()) {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(dice() % held.size()));
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace fusion
