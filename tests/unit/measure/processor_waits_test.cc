#include "worker/measure/processor_waits.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

namespace fusion {
namespace {

TEST(ProcessorWaits, AreThoseOfAllThreads) {
  const std::filesystem::path root = std::filesystem::path(::testing::TempDir()) / "processor_waits";
  std::filesystem::remove_all(root);
  for (const auto& [thread, line] : {std::pair("7", "900 2000000000 3"), std::pair("8", "5 500000000 1")}) {
    const std::filesystem::path folder = root / "proc/self/task" / thread;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "schedstat") << line << "\n";
  }
  EXPECT_DOUBLE_EQ(ProcessorWaitSeconds(root), 2.5);
  std::filesystem::remove_all(root);
  EXPECT_EQ(ProcessorWaitSeconds(root), 0) << "the system does not say";
}

// A thread that works for 100 ms on a processor where another process never rests.
TEST(ProcessorWaits, AThreadBesideABusyProcessWaitsForIt) {
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "SKIP: this system does not say it";
  double waited = 0;
  std::thread worker([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const pid_t test = getpid(), busy = fork();
    if (busy == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != test) _exit(0);
      for (volatile bool works = true; works;) {
      }
    }
    const double before = ProcessorWaitSeconds();
    timespec time{};
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    while (time.tv_sec == 0 && time.tv_nsec < 100'000'000);
    waited = ProcessorWaitSeconds() - before;
    kill(busy, SIGKILL);
    waitpid(busy, nullptr, 0);
  });
  worker.join();
  EXPECT_GT(waited, 0.02);
}

}  // namespace
}  // namespace fusion
