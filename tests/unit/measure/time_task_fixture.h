// Timings of small programs on any target: z = x + y, computed rightly by the unfused program in two kernels
// and by candidates in one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "worker/build/builder.h"
#include "worker/build/host_builder.h"
#include "worker/measure/time_task.h"

namespace fusion {

inline constexpr int64_t kEntries = 100003;
inline constexpr char kAdd[] = "z[i] = x[i] + y[i];";

class TimeTaskTest : public ::testing::TestWithParam<v1::Target> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Builder>> builder = MakeBuilder(GetParam());
    if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
    builder_ = std::move(*builder);
    absl::StatusOr<v1::DescribeReply> devices = Described();
    ASSERT_TRUE(devices.ok()) << devices.status();
    if (devices->devices().empty()) GTEST_SKIP() << "SKIP: " << devices->notes(0);
    device_ = devices->devices(0);
    v1::Session* session = task_.mutable_session();
    session->set_key("z = x + y");
    for (int id = 0; id < 2; ++id) SetBuffer(id, id == 0 ? "x" : "y", session->add_inputs());
    SetBuffer(2, "z", session->add_outputs());
    session->add_tolerances(1e-6);
    session->set_seed(11);
    session->set_floor_bytes(3.0 * kEntries * 4);
    *session->mutable_reference() = Kernel("reference", "double", kAdd);
    v1::Program* unfused = session->mutable_unfused();
    *unfused = Kernel("copy", "float", "z[i] = x[i];");
    *unfused->add_launches() = Kernel("add", "float", kAdd).launches(0);
    unfused->set_name("unfused");
    SetBuffer(3, "t", unfused->add_temporaries());
    unfused->mutable_launches(0)->mutable_arguments(2)->set_buffer(3);
    unfused->mutable_launches(1)->mutable_arguments(0)->set_buffer(3);
    v1::MeasurementMethod* method = task_.mutable_method();
    method->set_minimum_samples(6);
    method->set_maximum_samples(8);
    method->set_seconds_limit(1);
    method->set_run_deadline_seconds(20);  // of a machine that stands still now and then
    task_.set_device_uuid(device_.uuid());
  }

  // Measuring the device once is enough for all tests.
  static absl::StatusOr<v1::DescribeReply> Described() {
    static auto* described = new absl::StatusOr<v1::DescribeReply>(RunnerProcess().Describe(GetParam()));
    return *described;
  }

  static void SetBuffer(int id, const std::string& name, v1::Buffer* buffer) {
    buffer->set_id(id);
    buffer->set_name(name);
    buffer->set_count(kEntries);
    buffer->set_data_type(v1::F32);
  }

  // A program of one kernel with arguments x, y, z, n, whose body runs for every i in [0, n). The preamble
  // stands before it; STATE in it declares what lasts from run to run.
  v1::Program Kernel(const std::string& name, const std::string& type, const std::string& body,
                     const std::string& preamble = "") {
    v1::BuildTask build;
    build.set_target(GetParam());
    build.set_arch(device_.arch());
    build.set_source(
        GetParam() == v1::HOST
            ? absl::StrCat("#define STATE static\n", preamble, "\nextern \"C\" void kernel_", name,
                           "(long long grid, void* const* a) {\n  ", type, " *x = *(", type,
                           "**)a[0], *y = *(", type, "**)a[1], *z = *(", type,
                           "**)a[2];\n  long long n = *(long long*)a[3];\n#pragma omp parallel for\n",
                           "  for (long long i = 0; i < n; ++i) { ", body, " }\n}\n")
            : absl::StrCat(
                  "#define STATE __device__\n", preamble, "\nextern \"C\" __global__ void kernel_", name, "(",
                  type, "* x, ", type, "* y, ", type,
                  "* z, long long n) {\n  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; ",
                  "i += gridDim.x * 256LL) { ", body, " }\n}\n"));
    BuildOutput output = builder_->Build(build);
    EXPECT_EQ(output.result.outcome(), v1::OK) << output.result.log();
    binaries_[output.result.binary()] = output.binary;
    v1::Program program;
    program.set_name(name);
    v1::Launch* launch = program.add_launches();
    launch->set_binary(output.result.binary());
    launch->set_kernel(absl::StrCat("kernel_", name));
    launch->set_grid(64);
    launch->set_threads(256);
    for (int id = 0; id < 3; ++id) launch->add_arguments()->set_buffer(id);
    launch->add_arguments()->set_integer(kEntries);
    return program;
  }
  void AddProgram(const std::string& name, const std::string& body, const std::string& preamble = "") {
    *task_.add_programs() = Kernel(name, "float", body, preamble);
  }

  absl::StatusOr<v1::TimeResult> Execute(TimeTaskOptions options = {}) {
    return ExecuteBy(&runner_, task_, std::move(options));
  }
  // Another task of programs that Kernel has built, by another runner.
  absl::StatusOr<v1::TimeResult> ExecuteBy(RunnerProcess* runner, const v1::TimeTask& task,
                                           TimeTaskOptions options = {}) const {
    options.copy_bytes_per_second = device_.copy_bytes_per_second();
    return ExecuteTimeTask(
        *runner, task,
        [&](const std::string& digest) -> absl::StatusOr<std::string> {
          const auto found = binaries_.find(digest);
          if (found == binaries_.end()) return absl::NotFoundError(digest);
          return found->second;
        },
        options);
  }

  static void ExpectGood(const v1::ProgramMeasurement& measurement) {
    EXPECT_EQ(measurement.outcome(), v1::OK) << measurement.name() << ": " << measurement.message();
    EXPECT_LE(measurement.max_relative_error(), measurement.tolerance());
    EXPECT_GE(measurement.cold_samples_size(), 6);
    // Samples that other processes disturbed do not count.
    EXPECT_GE(measurement.cold().samples(), 1);
    EXPECT_LE(measurement.cold().samples(), measurement.cold_samples_size());
    EXPECT_LE(measurement.warm().samples(), measurement.warm_samples_size());
    for (const v1::Statistics& statistics : {measurement.cold(), measurement.warm()}) {
      EXPECT_GT(statistics.low(), 0);
      EXPECT_LE(statistics.low(), statistics.median());
      EXPECT_LE(statistics.median(), statistics.high());
    }
  }

  // The task has one bad program between two good ones: they must not suffer.
  v1::ProgramMeasurement MeasureBetweenGoodOnes(const std::string& body) {
    AddProgram("before", kAdd);
    AddProgram("bad", body);
    AddProgram("after", kAdd);
    absl::StatusOr<v1::TimeResult> result = Execute();
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    EXPECT_EQ(result->failure(), "");
    EXPECT_EQ(result->programs_size(), 3);
    ExpectGood(result->unfused());
    ExpectGood(result->programs(0));
    ExpectGood(result->programs(2));
    EXPECT_EQ(result->programs(1).name(), "bad");
    return result->programs(1);
  }

  std::unique_ptr<Builder> builder_;
  v1::DeviceDescription device_;
  v1::TimeTask task_;
  std::map<std::string, std::string> binaries_;
  RunnerProcess runner_;
};

}  // namespace fusion
