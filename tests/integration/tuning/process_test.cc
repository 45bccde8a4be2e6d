// What tuning does to the process that it is in: signals, forks, the end.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/temporary_directory.h"
#include "client/tuner/fusion_tuner.h"

namespace fusion::testing {
namespace {

// In a process of its own, where nothing of the library has been used: by the three calls of AtuneRT, with a
// server in the process and this data directory.
class TunedProcessDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (::testing::internal::InDeathTestChild()) return;  // has the environment of its parent
    auto data = TemporaryDirectory::Create();
    ASSERT_TRUE(data.ok()) << data.status();
    data_ = *std::move(data);
    setenv("FUSION_DATA_DIR", data_->path().c_str(), 1);
    setenv("FUSION_SERVER", "", 1);
  }
  std::unique_ptr<TemporaryDirectory> data_;
};

int64_t Ask(int64_t upper = 100) { return fusion_get_partition_parameter("loop", 1, upper, 1); }

void RunLoop(int times) {
  for (int i = 0; i < times; ++i) {
    const int64_t value = Ask();
    fusion_start_measurements("loop");
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 10 * std::abs(value - 50)));
    fusion_stop_measurements("loop");
  }
}

// The server in the process says for the first time that something is wrong, and goes on saying it in exit().
[[noreturn]] void EndWithAFullDisk() {
  RunLoop(100);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_FSIZE, &none);
  RunLoop(300);
  std::exit(0);
}

TEST_F(TunedProcessDeathTest, AFullDiskDoesNotKeepAProgramFromItsEnd) {
  EXPECT_EXIT(EndWithAFullDisk(), ::testing::ExitedWithCode(0), "");
}

// Children that use the loop which another thread was making when they were made.
[[noreturn]] void ForkBesideNewLoops() {
  Ask();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (int64_t upper = 1000; !stop; ++upper) Ask(upper);
  });
  int wrong = 0;
  for (int i = 0; i < 150 && wrong == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);  // a child that hangs ends
      Ask(200 + i);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) ++wrong;
  }
  stop = true;
  other.join();
  _exit(wrong);
}

TEST_F(TunedProcessDeathTest, AChildFindsNoLoopThatIsBeingMade) {
  EXPECT_EXIT(ForkBesideNewLoops(), ::testing::ExitedWithCode(0), "");
}

// A program that blocks a signal in its threads, to wait for it, is not ended by it in one of ours.
[[noreturn]] void CountThreadsThatTakeSignals() {
  const std::string own = std::to_string(getpid());
  RunLoop(20);
  int open = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == own) continue;
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:") && (std::stoull(line.substr(7), nullptr, 16) >> (SIGUSR1 - 1) & 1) == 0)
        ++open;
  }
  _exit(open);
}

TEST_F(TunedProcessDeathTest, ThreadsOfTheLibraryTakeNoSignals) {
  EXPECT_EXIT(CountThreadsThatTakeSignals(), ::testing::ExitedWithCode(0), "");
}

// Runs a loop while the thread ends, after the destructors of C++.
[[noreturn]] void RunALoopInADestructorOfAKey() {
  Ask();
  static pthread_key_t key;
  static int64_t value = 0;
  pthread_key_create(&key, [](void*) {
    for (int i = 0; i < 3; ++i) value = Ask(7);
    if (fusion_start_measurements("loop") != 0 || fusion_stop_measurements("loop") != 0) value = -1;
  });
  std::thread([] {
    Ask(7);
    pthread_setspecific(key, &value);
  }).join();
  _exit(value >= 1 && value <= 7 ? 0 : 1);
}

TEST_F(TunedProcessDeathTest, ALoopMayRunWhileItsThreadEnds) {
  EXPECT_EXIT(RunALoopInADestructorOfAKey(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace fusion::testing
