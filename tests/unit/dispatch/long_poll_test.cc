#include "server/dispatch/long_poll.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <future>

namespace fusion {
namespace {

using std::chrono::milliseconds;

v1::SynchronizeRequest From(const std::string& worker) {
  v1::SynchronizeRequest request;
  request.set_worker(worker);
  return request;
}

class LongPollsTest : public ::testing::Test {
 protected:
  ~LongPollsTest() override {
    polls_.Close();
    pool_.join();
  }
  std::future<v1::SynchronizeResponse> Hold(const std::string& worker, milliseconds wait,
                                            int64_t number = 0) {
    auto promise = std::make_shared<std::promise<v1::SynchronizeResponse>>();
    v1::SynchronizeResponse response;
    response.set_next_contact_seconds(3);
    polls_.Hold(
        From(worker), response, wait, [promise](v1::SynchronizeResponse r) { promise->set_value(r); },
        number);
    return promise->get_future();
  }

  std::atomic<bool> news_ = false;
  std::atomic<int> looks_ = 0;
  boost::asio::thread_pool pool_{2};
  LongPolls polls_{pool_.get_executor(),
                   [this](const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response) {
                     ++looks_;
                     if (!news_) return false;
                     response.add_cancelled("news for " + request.worker());
                     return true;
                   }};
};

TEST_F(LongPollsTest, NewsAreToldAtOnceWithWhatWasThereBefore) {
  news_ = true;
  const v1::SynchronizeResponse answer = Hold("w", milliseconds(60000)).get();
  EXPECT_EQ(answer.cancelled(0), "news for w");
  EXPECT_EQ(answer.next_contact_seconds(), 3);
}

TEST_F(LongPollsTest, WithoutWaitingTheAnswerComesInAnyCase) {
  EXPECT_EQ(Hold("w", milliseconds(0)).get().cancelled_size(), 0);
  EXPECT_EQ(looks_, 1);
}

TEST_F(LongPollsTest, TimeEndsAHeldCallWithALastLook) {
  EXPECT_EQ(Hold("w", milliseconds(5)).get().cancelled_size(), 0);
  EXPECT_EQ(looks_, 2);
}

TEST_F(LongPollsTest, WakingLooksAgain) {
  std::future<v1::SynchronizeResponse> a = Hold("a", milliseconds(60000)), b = Hold("b", milliseconds(60000));
  news_ = true;
  polls_.Wake("nobody");
  polls_.Wake("b");
  EXPECT_EQ(b.get().cancelled(0), "news for b");
  polls_.WakeAll();
  EXPECT_EQ(a.get().cancelled(0), "news for a");
}

TEST_F(LongPollsTest, WakingLaterLooksAgainThen) {
  std::future<v1::SynchronizeResponse> answer = Hold("w", milliseconds(60000));
  news_ = true;
  const auto asked = std::chrono::steady_clock::now();
  polls_.WakeAfter("w", milliseconds(20));
  polls_.WakeAfter("w", milliseconds(40000));
  ASSERT_EQ(answer.wait_for(milliseconds(10000)), std::future_status::ready);
  EXPECT_EQ(answer.get().cancelled(0), "news for w");
  EXPECT_GE(std::chrono::steady_clock::now() - asked, milliseconds(20));
}

TEST_F(LongPollsTest, WakingWithoutNewsKeepsHolding) {
  std::future<v1::SynchronizeResponse> held = Hold("w", milliseconds(60000));
  polls_.Wake("w");
  while (looks_ < 2) std::this_thread::yield();
  EXPECT_EQ(held.wait_for(milliseconds(0)), std::future_status::timeout);
  news_ = true;
  polls_.Wake("w");
  EXPECT_EQ(held.get().cancelled_size(), 1);
}

TEST_F(LongPollsTest, TheNewestCallIsHeldInWhateverOrderTheyAreTakenUp) {
  auto second = Hold("w", milliseconds(60000), 2);
  EXPECT_EQ(Hold("w", milliseconds(60000), 1).get().cancelled_size(), 0) << "it is out of date";
  polls_.GiveUpOlder("w", 1);
  EXPECT_EQ(second.wait_for(milliseconds(50)), std::future_status::timeout);
  polls_.GiveUpOlder("w", 3);
  EXPECT_EQ(second.get().cancelled_size(), 0) << "before the third is held";
}

TEST_F(LongPollsTest, ClosingAnswersAllAndLaterCallsAtOnce) {
  std::future<v1::SynchronizeResponse> a = Hold("a", milliseconds(60000)), b = Hold("b", milliseconds(60000));
  polls_.Close();
  EXPECT_EQ(a.get().next_contact_seconds(), 3);
  EXPECT_EQ(b.get().next_contact_seconds(), 3);
  news_ = true;
  EXPECT_EQ(Hold("c", milliseconds(60000)).get().cancelled_size(), 0) << "closed: nothing is looked at";
}

TEST_F(LongPollsTest, EveryCallIsAnsweredExactlyOnceUnderContention) {
  // set_value would throw on a second answer.
  std::vector<std::future<v1::SynchronizeResponse>> answers;
  for (int i = 0; i < 200; ++i) {
    if (i % 3 == 0) news_ = !news_;
    answers.push_back(Hold("w" + std::to_string(i % 5), milliseconds(i % 4)));
    polls_.WakeAll();
  }
  for (auto& answer : answers) EXPECT_EQ(answer.get().next_contact_seconds(), 3);
}

}  // namespace
}  // namespace fusion
