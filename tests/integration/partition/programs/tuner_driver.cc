// A loop of simulated times that the online tuner splits, by the library in the folder of this program.
//
//   tuner_driver converge BEST    runs it until its share on the device stays near BEST, and prints "share S
//   runs N" tuner_driver once BEST        runs it a few times tuner_driver hold BEST        prints a line and
//   waits to be killed, with a tuner tuner_driver reason BEST      prints why there is no tuner tuner_driver
//   end|fork MS      ends after so many milliseconds, with a child or without, wherever the tuner is then
//
// The exit status is 1 where there is no tuner, or all takes longer than a minute.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "client/partition/loop_tuner.h"
#include "client/partition/tuner_start.h"

namespace {

fusion::TunerStart& Start() {
  static auto* const start = new fusion::TunerStart;
  return *start;
}

// A call takes as long as its longer part: the device is as fast as makes `best` the best share.
double SecondsOf(const fusion::LoopPlan& plan, double best) {
  const double device = plan.device_share / best, host = (1 - plan.device_share) / (1 - best);
  return 1e-3 * (device > host ? device : host) * (1 + .02 * std::fabs(std::log2(plan.chunks / 4.0)));
}

}  // namespace

int main(int, char** arguments) {
  const std::string mode = arguments[1];
  const double number = std::atof(arguments[2]);
  std::atexit([] { Start().End(); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Start().Begin();
  if (mode == "end" || mode == "fork") {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(number));
    if (mode == "fork" && fork() == 0) _exit(Start().Get() == nullptr ? 0 : 1);
    int status = 0;
    if (mode == "fork") wait(&status);
    return status == 0 ? 0 : 1;
  }
  fusion::LoopTuner* tuner = nullptr;
  while ((tuner = Start().Get()) == nullptr && Start().Reason().empty() &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  if (mode == "reason") std::printf("%s\n", Start().Reason().c_str());
  if (mode == "reason") return tuner == nullptr ? 0 : 1;
  if (tuner == nullptr) return 1;
  if (mode == "hold") {
    std::puts("ready");
    std::fflush(stdout);
    pause();
  }
  const fusion::LoopKey key{"src/prog.c:12:3", "gemm"};
  const fusion::LoopSpace space{2, true, true};
  const fusion::LoopPlan known{0, 1, 2, 0, 0};
  for (int runs = 1, near = 0; std::chrono::steady_clock::now() < end; ++runs) {
    const fusion::LoopPlan plan = tuner->Next(key, 100'000, 1e8, known, space);
    tuner->Done(SecondsOf(plan, number));
    if (mode == "once" && runs == 20) return 0;
    near = std::fabs(plan.device_share - number) < .05 ? near + 1 : 0;
    if (near < 200) continue;
    std::printf("share %.3f runs %d\n", plan.device_share, runs);
    return 0;
  }
  return 1;
}
