#include "worker/build/host_builder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "library/catalog/sha256.h"
#include "worker/build/child_process.h"

namespace fusion {
namespace {

v1::BuildTask HostTask(const std::string& source) {
  v1::BuildTask task;
  task.set_target(v1::HOST);
  task.set_arch(HostArch());
  task.set_source(source);
  return task;
}

class HostBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Builder>> builder = HostBuilder::Create();
    if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
    builder_ = std::move(*builder);
  }
  std::unique_ptr<Builder> builder_;
};

TEST_F(HostBuilderTest, BuildsASharedObjectThatUsesOpenMp) {
  BuildOutput output = builder_->Build(HostTask(R"(
#include <omp.h>
extern "C" long long triangle(long long n) {
  long long sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long long i = 1; i <= n; ++i) sum += i;
  return omp_get_max_threads() > 0 ? sum : -1;
})"),
                                       {});
  ASSERT_EQ(output.result.outcome(), v1::OK) << output.result.log();
  EXPECT_EQ(output.result.binary(), absl::StrCat("sha256:", Sha256Hex(output.binary)));
  char path[] = "/tmp/fusion-test-XXXXXX";
  const int descriptor = mkstemp(path);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(write(descriptor, output.binary.data(), output.binary.size()), ssize_t(output.binary.size()));
  close(descriptor);
  void* library = dlopen(path, RTLD_NOW);
  unlink(path);
  ASSERT_NE(library, nullptr) << dlerror();
  auto triangle = reinterpret_cast<long long (*)(long long)>(dlsym(library, "triangle"));
  ASSERT_NE(triangle, nullptr);
  EXPECT_EQ(triangle(1000), 500500);
}

TEST_F(HostBuilderTest, AnErrorIsAnOutcomeWithTheCompilersLog) {
  BuildOutput output = builder_->Build(HostTask("int f() { return undeclared; }"), {});
  EXPECT_EQ(output.result.outcome(), v1::COMPILE_ERROR);
  EXPECT_NE(output.result.log().find("undeclared"), std::string::npos) << output.result.log();
  EXPECT_TRUE(output.binary.empty());
}

TEST_F(HostBuilderTest, PassesTheOptionsOfTheTask) {
  v1::BuildTask task = HostTask("#if ANSWER != 42\n#error wrong\n#endif\nint f() { return ANSWER; }");
  EXPECT_EQ(builder_->Build(task, {}).result.outcome(), v1::COMPILE_ERROR);
  task.add_options("-DANSWER=42");
  EXPECT_EQ(builder_->Build(task, {}).result.outcome(), v1::OK);
}

// Takes any compiler far longer than the deadline: 2^30 instantiations.
constexpr char kEndlessSource[] = R"(
template <int N, long long P> struct Tree {
  static constexpr long long value = Tree<N - 1, 2 * P>::value + Tree<N - 1, 2 * P + 1>::value;
};
template <long long P> struct Tree<0, P> { static constexpr long long value = P; };
long long f() { return Tree<30, 1>::value; })";

TEST_F(HostBuilderTest, ADeadlineEndsTheCompiler) {
  v1::BuildTask task = HostTask(kEndlessSource);
  task.set_deadline_seconds(0.3);
  BuildOutput output = builder_->Build(task, {});
  EXPECT_EQ(output.result.outcome(), v1::TIMEOUT);
  EXPECT_TRUE(output.binary.empty());
}

TEST_F(HostBuilderTest, AStoppedBuildEnds) {
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  EXPECT_EQ(builder_->Build(HostTask(kEndlessSource), stop.get_token()).result.outcome(), v1::TIMEOUT);
  stopper.join();
}

TEST(HostCompilerTest, AMissingCompilerIsAClearError) {
  const char* before = std::getenv("CXX");
  const std::string saved = before != nullptr ? before : "";
  setenv("CXX", "no-such-compiler", 1);
  absl::StatusOr<std::unique_ptr<Builder>> builder = HostBuilder::Create();
  if (before != nullptr) {
    setenv("CXX", saved.c_str(), 1);
  } else {
    unsetenv("CXX");
  }
  EXPECT_EQ(builder.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(builder.status().message().find("no-such-compiler"), std::string::npos);
}

TEST(HostArchTest, EveryLevelHasAnOption) {
  EXPECT_EQ(HostArchOption("x86-64-avx512"), "-march=x86-64-v4");
  EXPECT_EQ(HostArchOption("x86-64-avx2"), "-march=x86-64-v3");
  EXPECT_EQ(HostArchOption("something else"), "-march=native");
  EXPECT_NE(HostArch(), "");
}

TEST(ChildProcessTest, KillEndsDescendantsToo) {
  ChildProcess::Options options;
  options.command = {"sh", "-c", "sleep 1000 & echo $!; wait"};
  absl::StatusOr<std::unique_ptr<ChildProcess>> child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  char text[32] = {};
  ASSERT_GT(read((*child)->output(), text, sizeof text - 1), 0);
  const std::string descendant = absl::StrCat("/proc/", std::atoi(text), "/stat");
  ASSERT_EQ(access(descendant.c_str(), F_OK), 0);
  (*child)->Kill();
  std::optional<ExitStatus> status =
      (*child)->Wait(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->signal, SIGKILL);
  // The orphan is dead; whoever inherits it may need a moment to reap it.
  bool dead = false;
  for (int i = 0; i < 1000 && !dead; ++i) {
    std::ifstream file(descendant);
    std::string pid, name, state;
    dead = !(file >> pid >> name >> state) || state == "Z";
    if (!dead) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(dead);
}

TEST(ChildProcessTest, SaysHowAProcessEnded) {
  ChildProcess::Options options;
  options.command = {"sh", "-c", "exit 7"};
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok());
  auto status = (*child)->Wait(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->ToString(), "exited with code 7");
  options.command = {"no-such-program"};
  EXPECT_EQ(ChildProcess::Start(options).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fusion
