// Runs back to back, for any target. Included by the test of the host and by that of a GPU, which instantiate
// RepeatedRunsTest with their target and how its backend is opened.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "worker/build/builder.h"
#include "worker/measure/execution_backend.h"

namespace fusion {

struct RepeatedRunsTarget {
  v1::Target target = v1::HOST;
  // An error skips the tests.
  std::function<absl::StatusOr<std::unique_ptr<ExecutionBackend>>()> open;
  std::function<std::string(const ExecutionBackend&)> arch;
};

class RepeatedRunsTest : public ::testing::TestWithParam<RepeatedRunsTarget> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Builder>> builder = MakeBuilder(GetParam().target);
    if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
    absl::StatusOr<std::unique_ptr<ExecutionBackend>> backend = GetParam().open();
    if (!backend.ok()) GTEST_SKIP() << "SKIP: " << backend.status().message();
    backend_ = *std::move(backend);
    // Each launch multiplies the first entry by 2 and adds the factor of the launch, which shows their order;
    // and takes a millisecond at least.
    v1::BuildTask build;
    build.set_target(GetParam().target);
    build.set_arch(GetParam().arch(*backend_));
    build.set_source(GetParam().target == v1::HOST ? R"(
#include <chrono>
extern "C" void follow(long long, void* const* a) {
  double* x = *(double**)a[0];
  x[0] = 2 * x[0] + (double)*(long long*)a[1];
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(1)) {}
})"
                                                   : R"(
extern "C" __global__ void follow(double* x, long long factor) {
  x[0] = 2 * x[0] + (double)factor;
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < 1000000);
})");
    BuildOutput output = (*builder)->Build(build);
    ASSERT_EQ(output.result.outcome(), v1::OK) << output.result.log();
    absl::StatusOr<std::unique_ptr<LoadedBinary>> binary = backend_->Load(output.binary);
    ASSERT_TRUE(binary.ok()) << binary.status();
    binary_ = *std::move(binary);
    data_ = backend_->Allocate(16).value();
    launches_.resize(2);
    for (int64_t i = 0; i < 2; ++i) {
      PreparedLaunch& launch = launches_[i];
      launch.kernel = binary_->FindKernel("follow").value();
      launch.name = "follow";
      launch.grid = launch.threads = 1;
      launch.values = {data_, static_cast<uint64_t>(i)};
      for (uint64_t& value : launch.values) launch.arguments.push_back(&value);
      ASSERT_TRUE(backend_->Prepare(launch).ok());
    }
  }
  void TearDown() override {
    if (backend_ != nullptr) backend_->Free(data_);
  }
  double Entry() {
    double entry = 0;
    EXPECT_TRUE(backend_->CopyOut(&entry, data_, 8).ok());
    return entry;
  }

  std::unique_ptr<ExecutionBackend> backend_;
  std::unique_ptr<LoadedBinary> binary_;  // goes before the backend
  DeviceAddress data_ = 0;
  std::vector<PreparedLaunch> launches_;
};

TEST_P(RepeatedRunsTest, LaunchesRunInOrderAsOftenAsAskedFor) {
  for (int repeat : {1, 2, 20}) {
    const double zero = 0;
    ASSERT_TRUE(backend_->CopyIn(data_, &zero, 8).ok());
    RunOptions options;
    options.repeat = repeat;
    ASSERT_TRUE(backend_->Run(launches_, options).ok());
    double expected = 0;
    for (int i = 0; i < repeat; ++i) expected = 2 * (2 * expected + 0) + 1;
    EXPECT_EQ(Entry(), expected) << repeat;
  }
}

// The launches that a backend keeps are used again, for as many runs as are asked for.
TEST_P(RepeatedRunsTest, WhatIsKeptRunsAsOftenAsAskedForToo) {
  std::unique_ptr<RepeatedLaunches> kept;
  for (int repeat : {3, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 3, 2}) {
    const double zero = 0;
    ASSERT_TRUE(backend_->CopyIn(data_, &zero, 8).ok());
    RunOptions options;
    options.repeat = repeat;
    options.kept = &kept;
    int called = 0;
    options.before_launch = [&] { ++called; };
    options.after_run = [&] { ++called; };
    ASSERT_TRUE(backend_->Run(launches_, options).ok());
    double expected = 0;
    for (int i = 0; i < repeat; ++i) expected = 2 * (2 * expected + 0) + 1;
    EXPECT_EQ(Entry(), expected) << repeat;
    EXPECT_EQ(called, 2);
  }
}

TEST_P(RepeatedRunsTest, WhatLeadsRunsBeforeAndIsNotTimed) {
  for (int repeat : {1, 4}) {
    const double zero = 0;
    ASSERT_TRUE(backend_->CopyIn(data_, &zero, 8).ok());
    RunOptions options;
    options.repeat = repeat;
    options.lead = 3;
    int called = 0;
    options.before_launch = [&] { ++called; };
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<double> seconds = backend_->Run(launches_, options);
    const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    double expected = 0;
    for (int i = 0; i < 3 + repeat; ++i) expected = 2 * (2 * expected + 0) + 1;
    EXPECT_EQ(Entry(), expected) << repeat;
    EXPECT_EQ(called, 1);
    // Two launches that each take a millisecond; those of the lead are in what the call took alone.
    EXPECT_GE(*seconds, 1.9e-3);
    EXPECT_LE(repeat * *seconds + 3 * 1.9e-3, all);
  }
}

TEST_P(RepeatedRunsTest, TheTimeIsThatOfOneRun) {
  RunOptions options;
  options.repeat = 8;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<double> seconds = backend_->Run(launches_, options);
  const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  // Two launches that each take a millisecond, and eight times that fits in what the call took.
  EXPECT_GE(*seconds, 1.9e-3);
  EXPECT_LE(8 * *seconds, all);
}

TEST_P(RepeatedRunsTest, DataArePoisonedOnceBeforeTheFirst) {
  const std::vector<MemoryRange> poison = {{data_, 8}};
  RunOptions options;
  options.repeat = 3;
  options.poison = poison;
  int called = 0;
  options.before_launch = [&] { ++called; };
  ASSERT_TRUE(backend_->Run(launches_, options).ok());
  EXPECT_NE(Entry(), Entry());  // NaN stays NaN
  EXPECT_EQ(called, 1);
}

}  // namespace fusion
