#include "worker/build/host_builder.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/sandbox/child_process.h"
#include "base/sha256.h"
#include "tests/eventually.h"
#include "tests/processes.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// A variable of the environment, as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name); before != nullptr) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_.has_value()) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

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
    EXPECT_TRUE(Eventually([] { return !ChildrenOf().empty(); }));
    stop.request_stop();
  });
  EXPECT_EQ(builder_->Build(HostTask(kEndlessSource), stop.get_token()).result.outcome(), v1::TIMEOUT);
  stopper.join();
}

TEST_F(HostBuilderTest, WithoutAFolderThereIsNoOutcome) {
  const Variable nowhere("TMPDIR", "/no/such/folder");
  const BuildOutput output = builder_->Build(HostTask("int f() { return 1; }"), {});
  EXPECT_FALSE(output.has_outcome()) << v1::Outcome_Name(output.result.outcome());
  EXPECT_THAT(output.result.log(), HasSubstr("$TMPDIR (/no/such/folder): No such file or directory"));
}

TEST_F(HostBuilderTest, NorWhereTheSourceIsNotWrittenToItsEnd) {
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit little{1000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  // What is left of it would compile.
  const BuildOutput output =
      builder_->Build(HostTask("int f() { return 1; }" + std::string(100000, '\n')), {});
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, before);
  EXPECT_FALSE(output.has_outcome()) << v1::Outcome_Name(output.result.outcome());
  EXPECT_THAT(output.result.log(), HasSubstr("cannot write the source"));
}

// With a script for a compiler, which says its version, takes no offence at an empty source and ends as the
// test says at others.
class FailingCompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::filesystem::create_directory(folder_ + "/bin");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  BuildOutput Build(const std::string& end, bool remove_compiler = false) {
    const std::string compiler = folder_ + "/bin/compiler";
    std::ofstream(compiler) << "#!/bin/sh\ncase \"$*\" in\n*fused.cc*) " << end
                            << " ;;\n*) echo compiler 1.0 ;;\nesac\n";
    std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
    const Variable script("CXX", compiler);
    absl::StatusOr<std::unique_ptr<Builder>> builder = HostBuilder::Create();
    EXPECT_TRUE(builder.ok()) << builder.status();
    if (!builder.ok()) return {};
    if (remove_compiler) std::filesystem::remove(compiler);
    return (*builder)->Build(HostTask("int f() { return 1; }"), {});
  }
  // Why there is no outcome.
  std::string Fault(const std::string& end, bool remove_compiler = false) {
    const BuildOutput output = Build(end, remove_compiler);
    EXPECT_FALSE(output.has_outcome()) << end << ": " << v1::Outcome_Name(output.result.outcome());
    EXPECT_TRUE(output.binary.empty());
    return output.result.log();
  }

  std::string folder_ = "/var/tmp/fusion-test-XXXXXX";
};

TEST_F(FailingCompilerTest, WhatThisMachineDidToItIsNoOutcome) {
  EXPECT_THAT(Fault("kill -9 $$"), HasSubstr("killed by signal 9"));
  EXPECT_THAT(Fault("kill -11 $$"), HasSubstr("killed by signal 11"));
  EXPECT_THAT(Fault("echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1"),
              HasSubstr("Killed signal terminated program cc1plus"));
  EXPECT_THAT(Fault("true", true), HasSubstr("no program "));
  EXPECT_THAT(Fault("true"), HasSubstr("no shared object"));
}

TEST_F(FailingCompilerTest, HowItEndedIsFoundBehindALogOfAnyLength) {
  EXPECT_THAT(
      Fault("i=0; while [ $i -lt 3000 ]; do echo 'fused.cc:1:1: note: required from here, and from there'; "
            "i=$((i+1)); done; echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1"),
      HasSubstr("Killed signal"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// As a worker is that was started with a limit below that of a build (ulimit -v, LimitAS= of a unit).
TEST_F(FailingCompilerTest, WantOfMemoryIsNoOutcomeWhereABuildMayNotHaveItsShare) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit small = before;
  small.rlim_cur = (rlim_t{2} << 30) - 4096;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
  const std::string said = Fault("echo 'cc1plus: out of memory allocating 65536 bytes'; exit 1");
  const std::string aborted = Fault("kill -6 $$");
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(said, HasSubstr("out of memory allocating"));
  EXPECT_THAT(aborted, HasSubstr("killed by signal 6"));
}
#endif

TEST_F(FailingCompilerTest, WhatTheSourceAskedForIsAnOutcome) {
  for (const char* end :
       {"echo 'fused.cc:1:1: error: no such thing'; exit 1",
        "echo 'as: out of memory allocating 1 bytes'; exit 1", "kill -6 $$",
        "echo 'g++: internal compiler error: File size limit exceeded signal terminated program as'; exit 4"})
    EXPECT_EQ(Build(end).result.outcome(), v1::COMPILE_ERROR) << end;
}

TEST(HostCompilerTest, AMissingCompilerIsAClearError) {
  const Variable missing("CXX", "no-such-compiler");
  absl::StatusOr<std::unique_ptr<Builder>> builder = HostBuilder::Create();
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
  const pid_t descendant = std::atoi(text);
  ASSERT_FALSE(HasEnded(descendant));
  (*child)->Kill();
  std::optional<ExitStatus> status =
      (*child)->Wait(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->signal, SIGKILL);
  EXPECT_TRUE(Eventually([&] { return HasEnded(descendant); }));
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
