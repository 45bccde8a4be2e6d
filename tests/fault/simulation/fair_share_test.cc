// Users on simulated time: how long the tasks of each take, beside one who asks for a hundred times as much.
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/dispatch/device_jobs.h"
#include "server/dispatch/ready_queue.h"
#include "tests/fault/long_form.h"
#include "tests/fault/simulation/event_loop.h"

namespace fusion {
namespace {

using Duration = EventLoop::Duration;

constexpr int kGpus = 8;
constexpr int kUsers = 5;
constexpr double kNoise = 100;
constexpr double kTaskSeconds = 1;
// From the end of a job's task to the moment at which it asks for the next.
constexpr Duration kBetweenTasks = std::chrono::milliseconds(5);

// What the users' jobs are.
struct Jobs {
  int tasks = 1;       // one after the other
  bool bound = false;  // they are timings, all of a job's on one GPU (DeviceJobs)
  int most_of_user = std::numeric_limits<int>::max();  // unfinished; further ones are refused
};

class SharedFarm {
 public:
  // noise: how many times as much as the others, who together ask for half of the farm, the user "user0" asks
  // for.
  SharedFarm(uint64_t seed, double noise, const Jobs& jobs) : jobs_(jobs), random_(seed) {
    for (int gpu = 0; gpu < kGpus; ++gpu) gpus_.push_back(absl::StrCat("GPU-", gpu));
    const double jobs_per_second = 0.5 * kGpus / (kTaskSeconds * jobs.tasks) / kUsers;
    for (int user = 0; user < kUsers; ++user) Arrive(user, jobs_per_second * (user == 0 ? noise : 1));
  }
  // The mean time from asking for a job to its end of the users but user0, in seconds.
  double Run(double seconds) {
    while (loop_.RunOne(EventLoop::Seconds(seconds))) {
    }
    return sum_seconds_ / ended_;
  }

 private:
  struct Job {
    std::string name;
    int user = 0;
    Duration asked{};
    int left = 0;  // tasks
    std::string gpu;
  };

  Duration Exponential(double mean_seconds) {
    return EventLoop::Seconds(std::exponential_distribution<double>(1 / mean_seconds)(random_));
  }

  void Arrive(int user, double per_second) {
    loop_.After(Exponential(1 / per_second), [this, user, per_second] {
      if (jobs_of_user_[user] < jobs_.most_of_user) {
        ++jobs_of_user_[user];
        const std::string job = absl::StrCat("job", ++number_);
        const std::string gpu = jobs_.bound ? device_jobs_.LeastUsed(gpus_) : "";
        if (jobs_.bound) device_jobs_.Bind(job, absl::StrCat("user", user), gpu);
        Ask({job, user, loop_.now(), jobs_.tasks, gpu});
      }
      Arrive(user, per_second);
    });
  }
  // Queues the next task of the job.
  void Ask(const Job& job) {
    const std::string id = absl::StrCat(++number_);
    job_of_task_[id] = job;
    queue_.Add(ReadyTask{.number = number_,
                         .id = id,
                         .kind = jobs_.bound ? TaskKind::kTime : TaskKind::kBuild,
                         .requirements = {"HOST", "", job.gpu},
                         .user = absl::StrCat("user", job.user)});
    for (const std::string& gpu : gpus_) Work(gpu);
  }
  void Work(const std::string& gpu) {
    if (busy_.contains(gpu)) return;
    std::optional<Timestamp> look_again;
    const std::vector<ReadyTask> taken =
        queue_.Take({.worker = gpu,
                     .kind = jobs_.bound ? TaskKind::kTime : TaskKind::kBuild,
                     .capabilities = {{"HOST", "", gpu}},
                     .count = 1},
                    Timestamp(loop_.now()), &look_again);
    if (look_again.has_value()) loop_.After(*look_again - Timestamp(loop_.now()), [this, gpu] { Work(gpu); });
    if (taken.empty()) return;
    busy_.insert(gpu);
    const Duration time = Exponential(kTaskSeconds);
    loop_.After(time, [this, gpu, id = taken[0].id, time] {
      busy_.erase(gpu);
      queue_.Done(id, time.count() / 1e6, Timestamp(loop_.now()));
      Job job = job_of_task_.extract(id).mapped();
      if (--job.left > 0)
        loop_.After(kBetweenTasks, [this, job] { Ask(job); });
      else
        HasEnded(job);
      Work(gpu);
    });
  }
  void HasEnded(const Job& job) {
    --jobs_of_user_[job.user];
    device_jobs_.Release(job.name);
    queue_.LetGo(job.gpu, absl::StrCat("user", job.user), Timestamp(loop_.now()));
    if (job.user == 0) return;
    sum_seconds_ += (loop_.now() - job.asked).count() / 1e6;
    ++ended_;
  }

  const Jobs jobs_;
  EventLoop loop_;
  std::mt19937_64 random_;
  ReadyQueue queue_;
  int64_t number_ = 0;
  DeviceJobs device_jobs_;
  std::vector<std::string> gpus_;
  std::set<std::string> busy_;
  std::map<int, int> jobs_of_user_;
  std::map<std::string, Job> job_of_task_;
  double sum_seconds_ = 0;
  int64_t ended_ = 0;
};

// How many times as long the others' jobs take beside user0 as without. Prints it.
double TimesAsLong(const std::string& what, const Jobs& jobs) {
  double quiet = 0, noisy = 0;
  constexpr int kSeeds = 10;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    quiet += SharedFarm(seed, 1, jobs).Run(600) / kSeeds;
    noisy += SharedFarm(seed, kNoise, jobs).Run(600) / kSeeds;
  }
  std::printf(
      "others wait %.2f s for %s, and %.2f s beside a user who asks for %.0f times as much: %.2f times\n",
      quiet, what.c_str(), noisy, kNoise, noisy / quiet);
  TellFigure("the noisy user asks for, times", kNoise);
  TellFigure("others wait, times as long", noisy / quiet);
  return noisy / quiet;
}

TEST(FairShareSimulationTest, ANoisyUserDelaysTheOthersByLittle) {
  EXPECT_LE(TimesAsLong("a task", {}), 1.5);
}

// Four times as many of his jobs are in progress as there are GPUs.
TEST(FairShareSimulationTest, ANoisyUserDelaysJobsOfSeveralTimingsByLittle) {
  EXPECT_LE(TimesAsLong("a job of three timings", {.tasks = 3, .bound = true, .most_of_user = 4 * kGpus}),
            1.5);
}

}  // namespace
}  // namespace fusion
