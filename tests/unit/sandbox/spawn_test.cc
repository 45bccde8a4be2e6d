#include "base/sandbox/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/eventually.h"
#include "tests/processes.h"

namespace fusion {
namespace {

// What a command writes to its standard output, and its status.
std::string OutputOf(SpawnRequest request, int* status) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  request.output = ends[1];
  if (request.environment.empty()) request.environment = {"PATH=/usr/bin:/bin"};
  const absl::StatusOr<pid_t> child = Spawn(request);
  close(ends[1]);
  EXPECT_TRUE(child.ok()) << child.status();
  std::string text;
  char chunk[512];
  for (ssize_t count; (count = read(ends[0], chunk, sizeof chunk)) > 0;) text.append(chunk, count);
  close(ends[0]);
  if (child.ok()) {
    EXPECT_EQ(waitpid(*child, status, 0), *child);
  }
  return text;
}

TEST(SpawnTest, GivesExactlyTheEnvironmentTheFolderAndTheDescriptorsAskedFor) {
  const int leaked = open("/dev/null", O_RDONLY);  // not closed on exec
  ASSERT_GE(leaked, 0);
  SpawnRequest request;
  request.command = {"/bin/sh", "-c", "echo $SAID; pwd; for f in /proc/self/fd/*; do echo ${f##*/}; done"};
  request.environment = {"SAID=hello"};
  request.directory = "/usr";
  int status = -1;
  // The shell itself opens the folder that it lists as descriptor 3.
  EXPECT_EQ(OutputOf(request, &status), "hello\n/usr\n0\n1\n2\n3\n");
  EXPECT_EQ(status, 0);
  close(leaked);
}

TEST(SpawnTest, AMissingProgramIsAnErrorThatNamesIt) {
  SpawnRequest request;
  request.command = {"/no/such/program"};
  const absl::StatusOr<pid_t> child = Spawn(request);
  EXPECT_EQ(child.status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(absl::StrContains(child.status().message(), "/no/such/program")) << child.status();
}

TEST(SpawnTest, OutlivesTheThreadThatAskedForIt) {
  int to_child[2], from_child[2];
  ASSERT_EQ(pipe2(to_child, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(from_child, O_CLOEXEC), 0);
  SpawnRequest request;
  request.command = {"/bin/cat"};
  request.environment = {"PATH=/bin"};
  request.input = to_child[0];
  request.output = from_child[1];
  absl::StatusOr<pid_t> child = absl::InternalError("");
  pid_t thread_id = 0;
  std::thread([&] {
    thread_id = gettid();
    child = Spawn(request);
  }).join();
  close(to_child[0]);
  close(from_child[1]);
  ASSERT_TRUE(child.ok()) << child.status();
  // Whoever ends with the thread has been sent its signal by then.
  ASSERT_TRUE(
      Eventually([&] { return !std::filesystem::exists("/proc/self/task/" + std::to_string(thread_id)); }));
  char answer = 0;
  EXPECT_EQ(write(to_child[1], "x", 1), 1);
  EXPECT_EQ(read(from_child[0], &answer, 1), 1) << "it ended with the thread";
  EXPECT_EQ(answer, 'x');
  close(to_child[1]);
  close(from_child[0]);
  int status = -1;
  EXPECT_EQ(waitpid(*child, &status, 0), *child);
  EXPECT_EQ(status, 0);
}

TEST(SpawnTest, LeadsASessionAndAGroup) {
  for (const bool confined : {true, false}) {
    SpawnRequest request;
    request.command = {
        "/bin/sh", "-c",
        "read pid name state parent group session rest < /proc/self/stat; echo $group $session"};
    if (confined) request.policy.emplace().kind = SandboxKind::kDeviceCode;
    int status = -1;
    const std::string output = OutputOf(request, &status);
    const size_t space = output.find(' ');
    ASSERT_NE(space, std::string::npos) << output;
    // In bubblewrap both are those of a process outside, which have no number there.
    EXPECT_EQ(output.substr(0, space) + "\n", output.substr(space + 1));
    EXPECT_NE(output, absl::StrCat(getpgrp(), " ", getsid(0), "\n"));
  }
}

TEST(SpawnTest, ACompilerHasItsLimits) {
  for (const bool bubblewrap : {true, false}) {
    SpawnRequest request;
    request.command = {"/bin/sh", "-c", "ulimit -v; ulimit -c; ulimit -n"};
    request.policy.emplace().kind = SandboxKind::kHostCompiler;
    request.policy->use_bubblewrap = bubblewrap;
    int status = -1;
    EXPECT_EQ(OutputOf(request, &status), "2097152\n0\n256\n");
    EXPECT_EQ(status, 0);
  }
}

TEST(SpawnTest, ACompilerYieldsToWhatMeasures) {
  SpawnRequest request;
  request.command = {"/usr/bin/nice"};
  int status = -1;
  const int own = std::stoi(OutputOf(request, &status));
  for (const bool bubblewrap : {true, false}) {
    request.policy.emplace().kind = SandboxKind::kHostCompiler;
    request.policy->use_bubblewrap = bubblewrap;
    EXPECT_EQ(std::stoi(OutputOf(request, &status)), std::max(own, 10));
    EXPECT_EQ(status, 0);
  }
}

TEST(SpawnTest, ACompilerWritesInItsFolderAlone) {
  char folder[] = "/var/tmp/fusion-spawn-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  for (const bool bubblewrap : {true, false}) {
    SpawnRequest request;
    request.command = {"/bin/sh", "-c", "echo a > inside && cat inside; echo b > ../fusion-spawn-outside"};
    request.directory = folder;
    request.policy.emplace().kind = SandboxKind::kHostCompiler;
    request.policy->use_bubblewrap = bubblewrap;
    request.policy->write = {folder};
    int status = 0;
    EXPECT_EQ(OutputOf(request, &status), "a\n");
    EXPECT_NE(access("/var/tmp/fusion-spawn-outside", F_OK), 0);
    unlink("/var/tmp/fusion-spawn-outside");
  }
  unlink(absl::StrCat(folder, "/inside").c_str());
  rmdir(folder);
}

// A child that allocates waits for ever for a lock that another thread held when it was forked.
TEST(SpawnTest, ChildrenNeedNoLockOfThisProcess) {
  mallopt(M_ARENA_MAX, 1);  // all threads below share locks with the one that forks
  std::atomic<bool> stop = false, late = false;
  std::vector<std::thread> allocating;
  for (int i = 0; i < 8; ++i)
    allocating.emplace_back([&stop] {
      // Beyond what threads keep for themselves (1032 bytes).
      for (size_t bytes = 1100; !stop; bytes = bytes % 50'000 + 1100) std::string(bytes, 'x').clear();
    });
  std::atomic<int> ended = 0;
  std::future<int> started = std::async(std::launch::async, [&late, &ended] {
    SpawnRequest request;
    request.command = {"/bin/true"};
    request.environment.assign(300, "NAME=value");
    int ended_well = 0;
    for (int i = 0; i < 300 && !late; ++i) {
      const absl::StatusOr<pid_t> child = Spawn(request);
      if (!child.ok()) break;
      int status = -1;
      if (waitpid(*child, &status, 0) == *child && status == 0) ++ended_well;
      ++ended;
    }
    return ended_well;
  });
  // One that waits is killed, so that this ends.
  for (int before = -1; started.wait_for(std::chrono::seconds(20)) != std::future_status::ready;) {
    if (before != ended) {
      before = ended;
      continue;
    }
    late = true;
    for (pid_t child : ChildrenOf()) kill(child, SIGKILL);
  }
  stop = true;
  for (std::thread& thread : allocating) thread.join();
  EXPECT_EQ(started.get(), 300);
}

}  // namespace
}  // namespace fusion
