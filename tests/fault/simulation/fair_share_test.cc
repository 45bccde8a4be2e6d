// Users on simulated time: how long the tasks of each take, beside one who asks for a hundred times as much.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/dispatch/ready_queue.h"
#include "tests/fault/long_form.h"
#include "tests/fault/simulation/event_loop.h"

namespace fusion {
namespace {

using Duration = EventLoop::Duration;

constexpr int kWorkers = 8;
constexpr int kUsers = 5;
constexpr double kTaskSeconds = 1;
// Of each ordinary user: together they ask for half of the farm.
constexpr double kTasksPerSecond = 0.5 * kWorkers / kTaskSeconds / kUsers;

class SharedFarm {
 public:
  // noise: how many times as much as the others the user "user0" asks for.
  SharedFarm(uint64_t seed, double noise) : random_(seed) {
    for (int user = 0; user < kUsers; ++user) Arrive(user, kTasksPerSecond * (user == 0 ? noise : 1));
  }
  // The mean time from asking for a task to its end of the users but user0, in seconds.
  double Run(double seconds) {
    while (loop_.RunOne(Duration(static_cast<int64_t>(seconds * 1e6)))) {
    }
    return sum_seconds_ / ended_;
  }

 private:
  Duration Exponential(double mean_seconds) {
    return Duration(
        static_cast<int64_t>(std::exponential_distribution<double>(1 / mean_seconds)(random_) * 1e6));
  }
  void Arrive(int user, double per_second) {
    loop_.After(Exponential(1 / per_second), [this, user, per_second] {
      const std::string id = absl::StrCat(++number_);
      asked_[id] = {user, loop_.now()};
      queue_.Add(ReadyTask{
          .number = number_, .id = id, .requirements = {"HOST", "", ""}, .user = absl::StrCat("user", user)});
      Arrive(user, per_second);
      Work();
    });
  }
  void Work() {
    while (busy_ < kWorkers) {
      const std::vector<ReadyTask> taken = queue_.Take(
          {.worker = "w", .capabilities = {{"HOST", "", ""}}, .count = 1}, Timestamp(loop_.now()));
      if (taken.empty()) return;
      ++busy_;
      const Duration time = Exponential(kTaskSeconds);
      loop_.After(time, [this, id = taken[0].id, time] {
        --busy_;
        queue_.Ended(id, time.count() / 1e6);
        const auto [user, asked] = asked_.at(id);
        if (user != 0) {
          sum_seconds_ += (loop_.now() - asked).count() / 1e6;
          ++ended_;
        }
        asked_.erase(id);
        Work();
      });
    }
  }

  EventLoop loop_;
  std::mt19937_64 random_;
  ReadyQueue queue_;
  int64_t number_ = 0;
  int busy_ = 0;
  std::map<std::string, std::pair<int, Duration>> asked_;
  double sum_seconds_ = 0;
  int64_t ended_ = 0;
};

TEST(FairShareSimulationTest, ANoisyUserDelaysTheOthersByLittle) {
  double quiet = 0, noisy = 0;
  constexpr int kSeeds = 10;
  constexpr double kNoise = 100;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    quiet += SharedFarm(seed, 1).Run(600) / kSeeds;
    noisy += SharedFarm(seed, kNoise).Run(600) / kSeeds;
  }
  std::printf(
      "others wait %.2f s for a task of %.0f s, and %.2f s beside a user who asks for 100 times as much: "
      "%.2f times\n",
      quiet, kTaskSeconds, noisy, noisy / quiet);
  TellFigure("the noisy user asks for, times", kNoise);
  TellFigure("others wait, times as long", noisy / quiet);
  EXPECT_LE(noisy, 1.5 * quiet);
}

}  // namespace
}  // namespace fusion
