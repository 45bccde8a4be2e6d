#include "client/partition/tuner_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

namespace fusion {
namespace {

class FakeTuner : public LoopTuner {
 public:
  explicit FakeTuner(std::atomic<int>& finished) : finished_(finished) {}
  LoopPlan Next(const LoopKey&, int64_t, double, const LoopPlan& known, const LoopSpace&) override {
    return known;
  }
  bool IsTrial() const override { return false; }
  void Done(double) override {}
  void Failed() override {}
  void Finish() override { ++finished_; }

 private:
  std::atomic<int>& finished_;
};

LoopTuner* WaitForTuner(TunerStart& start) {
  LoopTuner* tuner = nullptr;
  while ((tuner = start.Get()) == nullptr) std::this_thread::yield();
  return tuner;
}

TEST(TunerStartTest, TheTunerComesLater) {
  std::atomic<int> finished{0};
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  TunerStart start([&finished, gone] {
    gone.wait();
    return std::make_unique<FakeTuner>(finished);
  });
  EXPECT_EQ(start.Get(), nullptr);
  start.Begin();
  EXPECT_EQ(start.Get(), nullptr);
  go.set_value();
  LoopTuner* const tuner = WaitForTuner(start);
  start.Begin();
  EXPECT_EQ(start.Get(), tuner);
  EXPECT_EQ(start.Reason(), "");
  start.End();
  EXPECT_EQ(finished, 1);
}

TEST(TunerStartTest, TheEndWaitsForATunerInTheMaking) {
  std::atomic<int> finished{0};
  std::promise<void> begun;
  TunerStart start([&] {
    begun.set_value();
    return std::make_unique<FakeTuner>(finished);
  });
  start.Begin();
  begun.get_future().wait();
  start.End();
  EXPECT_EQ(finished, 1);
}

TEST(TunerStartTest, NothingBeginsAfterTheEnd) {
  std::atomic<int> finished{0};
  TunerStart start([&] { return std::make_unique<FakeTuner>(finished); });
  start.End();
  start.Begin();
  EXPECT_EQ(start.Get(), nullptr);
  EXPECT_EQ(finished, 0);
}

TEST(TunerStartTest, TheThreadTakesNoSignals) {
  std::atomic<int> finished{0};
  sigset_t blocked;
  TunerStart start([&] {
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    return std::make_unique<FakeTuner>(finished);
  });
  start.Begin();
  WaitForTuner(start);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
}

// This program is in a folder without the library.
TEST(TunerStartTest, WithoutTheLibraryThereIsNone) {
  TunerStart start;
  start.Begin();
  start.End();
  EXPECT_EQ(start.Get(), nullptr);
  EXPECT_THAT(start.Reason(), ::testing::HasSubstr("libfusion_partition_tuner.so"));
}

TEST(TunerStartTest, AChildHasNone) {
  std::atomic<int> finished{0};
  TunerStart start([&] { return std::make_unique<FakeTuner>(finished); });
  start.Begin();
  WaitForTuner(start);
  const pid_t child = fork();
  if (child == 0) {
    start.Begin();
    start.End();
    _exit(start.Get() == nullptr && finished == 0 && start.Reason().empty() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NE(start.Get(), nullptr);
}

}  // namespace
}  // namespace fusion
