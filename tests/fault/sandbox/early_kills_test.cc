// A process that is killed while it puts itself in a sandbox leaves nothing behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/sandbox/spawn.h"

namespace fusion {
namespace {

TEST(SpawnTest, NothingOutlivesItsGroupHoweverSoonItIsKilled) {
  for (int trial = 0; trial < 300; ++trial) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    SpawnRequest request;
    request.command = {"/bin/sleep", "1000"};
    request.environment = {"PATH=/bin"};
    request.output = ends[1];
    request.policy.emplace().kind = SandboxKind::kHostCode;
    const absl::StatusOr<pid_t> child = Spawn(request);
    close(ends[1]);
    ASSERT_TRUE(child.ok()) << child.status();
    const auto delay = std::chrono::microseconds(trial * 40);  // to 12 ms, in which bubblewrap is ready
    std::this_thread::sleep_for(delay);
    kill(-*child, SIGKILL);
    EXPECT_EQ(waitpid(*child, nullptr, 0), *child);
    // All that had the pipe have ended.
    pollfd waiting{ends[0], POLLIN, 0};
    const int ended = poll(&waiting, 1, 20'000);
    close(ends[0]);
    ASSERT_EQ(ended, 1) << "something lives on after a kill behind " << delay.count() << " us";
  }
}

}  // namespace
}  // namespace fusion
