// The process's own Partitioner, by the environment: each test runs this program again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/partition/site.h"
#include "tests/unit/partition/test_site.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

struct ChildEnd {
  int status;
  std::string errors;
};

// Runs the test ProcessTest.Child in a process of its own.
ChildEnd RunChild(const std::vector<std::string>& environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {-1, "no pipe"};
  const pid_t process = fork();
  if (process == 0) {
    dup2(ends[1], STDERR_FILENO);
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    std::vector<char*> variables;
    std::string no_leaks = "ASAN_OPTIONS=detect_leaks=0";  // threads are not there in a child of the child
    variables.push_back(no_leaks.data());
    std::vector<std::string> copies = environment;
    for (std::string& variable : copies) variables.push_back(variable.data());
    variables.push_back(nullptr);
    std::string filter = "--gtest_filter=ProcessTest.Child", program = "partition_test";
    char* const arguments[] = {program.data(), filter.data(), nullptr};
    execve("/proc/self/exe", arguments, variables.data());
    _exit(127);
  }
  close(ends[1]);
  ChildEnd end;
  char buffer[1000];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof(buffer))) > 0;)
    end.errors.append(buffer, static_cast<size_t>(count));
  close(ends[0]);
  waitpid(process, &end.status, 0);
  return end;
}

// The other tests run this one in other environments.
TEST(ProcessTest, Child) {
  std::vector<int64_t> numbers(1000, 1);
  int64_t* context = numbers.data();
  const auto body = [](int64_t first, int64_t last, void* context) {
    for (int64_t i = first; i < last; ++i) (*static_cast<int64_t**>(context))[i] += i;
  };
  TestSite site(body, {numbers.data()}, {{0, kRead | kWritten, 0, 8, 8, 8}}, {{0, 0}}, sizeof(int64_t*));
  if (fusion_partition_least_work <= 1e6) {
    fusion_partition_refuse(site.get());
    ASSERT_EQ(fusion_partition_enter(site.get(), 1000, 1e6, &context, site.facts()), 1);
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(numbers[static_cast<size_t>(i)], 1 + i);
    const pid_t process = fork();
    if (process == 0) std::exit(std::isinf(fusion_partition_least_work) ? 3 : 4);
    int status = 0;
    waitpid(process, &status, 0);
    const char* mode = std::getenv("FUSION_PARTITION");
    EXPECT_EQ(WEXITSTATUS(status), mode == nullptr || std::string(mode) == "auto" ? 4 : 3);
  } else {
    EXPECT_EQ(fusion_partition_enter(site.get(), 1000, 1e6, &context, site.facts()),
              std::isinf(fusion_partition_least_work) ? 0 : 1);
  }
}

TEST(ProcessTest, ReportsAtTheEnd) {
  const ChildEnd end =
      RunChild({"FUSION_PARTITION=device", "FUSION_PARTITION_DEVICE=simulated", "FUSION_PARTITION_THREADS=2",
                "FUSION_PARTITION_SPLIT=0.25", "FUSION_PARTITION_REPORT=1"});
  EXPECT_EQ(end.status, 0);
  EXPECT_THAT(end.errors,
              ::testing::MatchesRegex("loop.c:12:3 Loop: calls 1, split 25% device, host threads 2, seconds "
                                      "[0-9.]+; refused: conditions 1, overlap 0, busy 0, unreadable 0\n"));
}

TEST(ProcessTest, SaysOnceThatThereIsNoDevice) {
  const ChildEnd end =
      RunChild({"FUSION_PARTITION=device", "FUSION_PARTITION_THREADS=2", "CUDA_VISIBLE_DEVICES="});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.errors,
            "fusion: FUSION_PARTITION=device, but there is no device: loops run on the host's threads\n");
}

TEST(ProcessTest, NoDeviceIsNeededForASplitOfNothing) {
  const ChildEnd end = RunChild({"FUSION_PARTITION=device", "FUSION_PARTITION_SPLIT=0"});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.errors, "");
}

TEST(ProcessTest, IsSilentByDefault) {
  const ChildEnd end = RunChild({});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.errors, "");
}

TEST(ProcessTest, UnknownModesAreOff) {
  const ChildEnd end = RunChild({"FUSION_PARTITION=gpu", "FUSION_PARTITION_REPORT=1"});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.errors, "fusion: FUSION_PARTITION=gpu is none of off, host, device, auto, check\n");
}

TEST(ProcessTest, AThresholdKeepsLoopsOut) {
  const ChildEnd end = RunChild({"FUSION_PARTITION_LEAST_WORK=2e6"});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.errors, "");
}

}  // namespace
}  // namespace fusion
