// Tests of what a good program and each kind of bad one must give, for any target. Included by the test of
// the host and by that of a GPU, which instantiate TimeTaskTest with their target.
#pragma once

#include "base/sha256.h"
#include "tests/eventually.h"
#include "tests/unit/measure/time_task_fixture.h"
#include "worker/measure/activity.h"

namespace fusion {

TEST_P(TimeTaskTest, AGoodProgramIsMeasuredAndPairedWithTheUnfused) {
  AddProgram("good", kAdd);
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failure(), "");
  ExpectGood(result->unfused());
  ASSERT_EQ(result->programs_size(), 1);
  ExpectGood(result->programs(0));
  EXPECT_EQ(result->programs(0).name(), "good");
  EXPECT_EQ(result->programs(0).max_relative_error() > 0, true);  // f32 rounding against f64
  EXPECT_EQ(result->unfused().kernels_size(), 2);
  ASSERT_EQ(result->programs(0).kernels_size(), 1);
  EXPECT_EQ(result->programs(0).kernels(0).kernel(), "kernel_good");
  // Each pair is from one round, so the speed-up is the quotient of samples, not of medians.
  // Pairs that other processes disturbed may not count.
  EXPECT_GE(result->programs(0).paired_speedup().samples(), 1);
  EXPECT_LE(result->programs(0).paired_speedup().samples(), result->programs(0).cold_samples_size());
  EXPECT_GT(result->programs(0).paired_speedup().median(), 0);
  EXPECT_EQ(result->unfused().paired_speedup().median(), 1);
  EXPECT_GE(result->programs(0).paired_warm_speedup().samples(), 1);
  EXPECT_LE(result->programs(0).paired_warm_speedup().samples(), result->programs(0).warm_samples_size());
  EXPECT_GT(result->programs(0).paired_warm_speedup().median(), 0);
  EXPECT_EQ(result->unfused().paired_warm_speedup().median(), 1);
  EXPECT_NE(result->conditions().driver_version(), "");
}

// The memory of x is that of z: it holds x when a run begins, in every run.
TEST_P(TimeTaskTest, AnOutputInTheMemoryOfAnInputBeginsAsThatInput) {
  task_.mutable_session()->mutable_outputs(0)->set_memory_of(0);
  AddProgram("in_place", kAdd);
  AddProgram("adds_to_it", "z[i] += y[i];");
  AddProgram("too_early", "z[i] = 0; z[i] = x[i] + y[i];");
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failure(), "");
  ExpectGood(result->unfused());
  ASSERT_EQ(result->programs_size(), 3);
  ExpectGood(result->programs(0));
  ExpectGood(result->programs(1));
  EXPECT_EQ(result->programs(2).outcome(), v1::WRONG_RESULT);
}

TEST_P(TimeTaskTest, TheMemoryOfAnOutputIsThatOfAnInputThatThereIs) {
  task_.mutable_session()->mutable_outputs(0)->set_memory_of(77);
  AddProgram("in_place", kAdd);
  const absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(result->failure().find("takes the memory of no input of its size"), std::string::npos)
      << result->failure();
}

TEST_P(TimeTaskTest, EachProgramNamesTheBinariesThatRan) {
  AddProgram("good", kAdd);
  AddProgram("wrong", "z[i] = x[i];");
  const v1::Program& unfused = task_.session().unfused();
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->unfused().binaries_size(), 2);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(result->unfused().binaries(i), unfused.launches(i).binary());
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(result->programs(i).binaries_size(), 1);
    EXPECT_EQ(result->programs(i).binaries(0), task_.programs(i).launches(0).binary());
  }
  EXPECT_EQ(result->programs(1).outcome(), v1::WRONG_RESULT);
}

TEST_P(TimeTaskTest, ABinaryThatArrivesDamagedIsTheWorkersFault) {
  AddProgram("good", kAdd);
  for (const v1::Program* program :
       {&task_.session().reference(), &task_.session().unfused(), &task_.programs(0)}) {
    std::string& binary = binaries_.at(program->launches(0).binary());
    binary[binary.size() / 2] ^= 1;
    const absl::StatusOr<v1::TimeResult> result = Execute();
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss) << result.status();
    EXPECT_NE(result.status().message().find(program->launches(0).binary()), std::string::npos);
    binary[binary.size() / 2] ^= 1;
  }
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectGood(result->programs(0));
}

TEST_P(TimeTaskTest, ItIsToldWhenSamplesAreTaken) {
  AddProgram("good", kAdd);
  TimeTaskOptions options;
  int told = 0;
  options.nearly_done = [&] { ++told; };
  ASSERT_TRUE(Execute(options).ok());
  EXPECT_EQ(told, 1);
  // It is never told where all are bad before.
  task_.clear_programs();
  task_.mutable_session()->clear_unfused();
  AddProgram("bad", "z[i] = x[i]; if (i == 9) *(volatile float*)64 = 1;");
  ASSERT_TRUE(Execute(options).ok());
  EXPECT_EQ(told, 1);
}

TEST_P(TimeTaskTest, WarmTimesCanEndSampling) {
  task_.mutable_method()->set_warm(true);
  task_.mutable_method()->set_relative_half_width(1e9);  // any interval will do
  AddProgram("good", kAdd);
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  for (const v1::ProgramMeasurement& program : {result->unfused(), result->programs(0)}) {
    ExpectGood(program);
    // On a busy machine sampling goes on until times are steady.
    EXPECT_GE(program.warm_samples_size(), 6);
    EXPECT_LE(program.warm_samples_size(), program.cold_samples_size());
  }
}

TEST_P(TimeTaskTest, AWrongEntryIsFoundWhereItIs) {
  v1::ProgramMeasurement bad = MeasureBetweenGoodOnes("z[i] = x[i] + y[i] + (i == 777 ? 1 : 0);");
  EXPECT_EQ(bad.outcome(), v1::WRONG_RESULT);
  EXPECT_NE(bad.message().find("output z: entry 777"), std::string::npos) << bad.message();
  EXPECT_GT(bad.max_relative_error(), bad.tolerance());
}

// The size of a single entry alone says nothing: the entry is the difference of two products now and then.
TEST_P(TimeTaskTest, ASmallDifferenceInOneEntryIsNoError) {
  const std::string difference = "z[i] = x[i] * (1 / 0.3f) - y[i] * (1 / 0.31f);";
  v1::Session* session = task_.mutable_session();
  *session->mutable_reference() =
      Kernel("reference", "double", "z[i] = x[i] * (double)(1 / 0.3f) - y[i] * (double)(1 / 0.31f);");
  *session->mutable_unfused() = Kernel("unfused", "float", difference);
  AddProgram("good", difference);
  AddProgram("bad", "z[i] = x[i] * (1 / 0.3f) - y[i] * (1 / 0.31f) + 1e-4f;");
  for (v1::Program* program : {session->mutable_reference(), session->mutable_unfused(),
                               task_.mutable_programs(0), task_.mutable_programs(1)})
    program->mutable_launches(0)->mutable_arguments(3)->set_integer(1);
  for (v1::Buffer& buffer : *session->mutable_inputs()) buffer.set_count(1);
  session->mutable_outputs(0)->set_count(1);
  // The reference computes with rounding: how far that can bring its result is tried out.
  session->mutable_reference()->mutable_launches(0)->add_results(session->outputs(0).id());
  session->set_tolerances(0, 2e-7);
  for (int seed = 1; seed <= 8; ++seed) {
    session->set_seed(seed);
    absl::StatusOr<v1::TimeResult> result = Execute();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->unfused().outcome(), v1::OK) << result->unfused().message();
    ASSERT_EQ(result->programs_size(), 2) << result->failure();
    EXPECT_EQ(result->programs(0).outcome(), v1::OK) << result->programs(0).message();
    EXPECT_EQ(result->programs(1).outcome(), v1::WRONG_RESULT);
  }
}

TEST_P(TimeTaskTest, AnUnwrittenEntryIsFoundThoughOthersWroteItBefore) {
  v1::ProgramMeasurement bad = MeasureBetweenGoodOnes("if (i != n - 1) z[i] = x[i] + y[i];");
  EXPECT_EQ(bad.outcome(), v1::WRONG_RESULT);
  EXPECT_NE(bad.message().find("entry 100002 was not written"), std::string::npos) << bad.message();
}

TEST_P(TimeTaskTest, WritingBehindTheEndIsFound) {
  v1::ProgramMeasurement bad = MeasureBetweenGoodOnes("z[i] = x[i] + y[i]; if (i == n - 1) z[n] = 1;");
  EXPECT_EQ(bad.outcome(), v1::WRONG_RESULT);
  EXPECT_NE(bad.message().find("after the end of z"), std::string::npos) << bad.message();
}

TEST_P(TimeTaskTest, ReadingBehindTheEndShowsInTheResult) {
  v1::ProgramMeasurement bad = MeasureBetweenGoodOnes("z[i] = x[i] + y[i] + 0 * x[i + 1];");
  EXPECT_EQ(bad.outcome(), v1::WRONG_RESULT);
  EXPECT_NE(bad.message().find("entry 100002"), std::string::npos) << bad.message();
}

TEST_P(TimeTaskTest, ChangingAnInputIsFoundAndRepaired) {
  v1::ProgramMeasurement bad = MeasureBetweenGoodOnes("z[i] = x[i] + y[i]; if (i == 5) y[5] = 3;");
  EXPECT_EQ(bad.outcome(), v1::WRONG_RESULT);
  EXPECT_NE(bad.message().find("changed the input y"), std::string::npos) << bad.message();
}

TEST_P(TimeTaskTest, AResultThatIsRightOnlyTheFirstTimeIsWrong) {
  // z is poisoned before every run; what is left over in x + y of an earlier run does not help.
  v1::ProgramMeasurement bad = MeasureBetweenGoodOnes("if (z[i] == z[i]) z[i] = x[i] + y[i];");
  EXPECT_EQ(bad.outcome(), v1::WRONG_RESULT);
}

TEST_P(TimeTaskTest, AnIllegalAddressIsAFaultOfThatProgramAlone) {
  v1::ProgramMeasurement bad = MeasureBetweenGoodOnes("z[i] = x[i]; if (i == 9) *(volatile float*)64 = 1;");
  EXPECT_EQ(bad.outcome(), v1::FAULT);
  EXPECT_NE(bad.message(), "");
  // And the same runner goes on.
  absl::StatusOr<v1::TimeResult> again = Execute();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->programs(1).outcome(), v1::FAULT);
  ExpectGood(again->programs(2));
}

TEST_P(TimeTaskTest, AnEndlessKernelIsATimeoutOfThatProgramAlone) {
  task_.mutable_method()->set_run_deadline_seconds(1);
  v1::ProgramMeasurement bad = MeasureBetweenGoodOnes("while (*(volatile float*)&x[i] < 100) {}");
  EXPECT_EQ(bad.outcome(), v1::TIMEOUT);
  EXPECT_NE(bad.message().find("longer than 1 s"), std::string::npos) << bad.message();
}

TEST_P(TimeTaskTest, AMissingKernelOrArgumentIsALaunchError) {
  AddProgram("nameless", kAdd);
  AddProgram("bufferless", kAdd);
  AddProgram("broken", kAdd);
  task_.mutable_programs(0)->mutable_launches(0)->set_kernel("no_such_kernel");
  task_.mutable_programs(1)->mutable_launches(0)->mutable_arguments(0)->set_buffer(99);
  const std::string broken = "not device code", digest = "sha256:" + Sha256Hex(broken);
  task_.mutable_programs(2)->mutable_launches(0)->set_binary(digest);
  binaries_[digest] = broken;
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  for (const v1::ProgramMeasurement& measurement : result->programs()) {
    EXPECT_EQ(measurement.outcome(), v1::LAUNCH_ERROR) << measurement.name();
    EXPECT_NE(measurement.message(), "");
  }
  ExpectGood(result->unfused());
}

TEST_P(TimeTaskTest, ABadUnfusedProgramIsAnOutcomeToo) {
  AddProgram("good", kAdd);
  *task_.mutable_session()->mutable_unfused() = Kernel("unfused", "float", "*(volatile float*)64 = x[i];");
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->unfused().outcome(), v1::FAULT);
  ExpectGood(result->programs(0));
  EXPECT_EQ(result->programs(0).paired_speedup().samples(), 0);
}

TEST_P(TimeTaskTest, AFaultOfTheReferenceFailsTheSession) {
  AddProgram("good", kAdd);
  *task_.mutable_session()->mutable_reference() =
      Kernel("reference", "double", "*(volatile double*)64 = x[i];");
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(result->failure().find("the reference"), std::string::npos) << result->failure();
  EXPECT_EQ(result->programs(0).outcome(), v1::FAULT);
}

TEST_P(TimeTaskTest, DataTooLargeForTheDeviceAreRefused) {
  AddProgram("good", kAdd);
  AddProgram("large_temporaries", kAdd);
  SetBuffer(4, "huge", task_.mutable_programs(1)->add_temporaries());
  task_.mutable_programs(1)->mutable_temporaries(0)->set_count(int64_t{1} << 42);
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectGood(result->programs(0));
  EXPECT_EQ(result->programs(1).outcome(), v1::EXCEEDS_DEVICE);

  task_.mutable_session()->mutable_inputs(0)->set_count(int64_t{1} << 42);
  result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(result->failure(), "");
  EXPECT_EQ(result->unfused().outcome(), v1::EXCEEDS_DEVICE);
  EXPECT_EQ(result->programs(0).outcome(), v1::EXCEEDS_DEVICE);
}

// Returns true when a runner of this process says that it runs the program of this number.
inline bool ARunnerRuns(int32_t program) {
  std::error_code closed;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    if (!absl::StrContains(std::filesystem::read_symlink(file, closed).string(), "fusion-activity")) continue;
    const auto page = ActivityPage::Open(dup(std::stoi(file.path().filename())));
    if (!page.ok()) continue;
    const ActivityState state = (*page)->Get();
    if (state.activity == Activity::kRun && state.program == program) return true;
  }
  return false;
}

TEST_P(TimeTaskTest, AStopEndsARunningProgram) {
  AddProgram("endless", "while (*(volatile float*)&x[i] < 100) {}");
  task_.mutable_method()->set_run_deadline_seconds(1000);
  std::stop_source stop;
  std::jthread stopper([&] {
    EXPECT_TRUE(Eventually([] { return ARunnerRuns(0); }));
    stop.request_stop();
  });
  TimeTaskOptions options;
  options.stop = stop.get_token();
  EXPECT_EQ(Execute(options).status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(runner_.running());
}

TEST_P(TimeTaskTest, ScalarsWorkspaceAndF64) {
  // z = a * x + y in f64, x staged through the workspace.
  v1::Session* session = task_.mutable_session();
  SetBuffer(5, "a", session->add_inputs());
  session->mutable_inputs(2)->set_count(1);
  session->mutable_inputs(2)->set_by_value(true);
  for (v1::Buffer& buffer : *session->mutable_inputs()) buffer.set_data_type(v1::F64);
  session->mutable_outputs(0)->set_data_type(v1::F64);
  session->set_tolerances(0, 1e-14);
  session->clear_unfused();
  const bool host = GetParam() == v1::HOST;
  const std::string scalar = host ? "*(double*)a[4]" : "a";
  auto with_scalar = [&](const std::string& name, const std::string& body) {
    v1::BuildTask build;
    build.set_target(GetParam());
    build.set_arch(device_.arch());
    build.set_source(
        host ? absl::StrCat("extern \"C\" void ", name,
                            "(long long, void* const* a) { double *x = *(double**)a[0]",
                            ", *y = *(double**)a[1], *z = *(double**)a[2]; long long n = *(long long*)a[3];",
                            "for (long long i = 0; i < n; ++i) { ", body, " } }")
             : absl::StrCat(
                   "extern \"C\" __global__ void ", name,
                   "(double* x, double* y, double* z, long long n, double a) {",
                   "for (long long i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) { ", body,
                   " } }"));
    BuildOutput output = builder_->Build(build);
    EXPECT_EQ(output.result.outcome(), v1::OK) << output.result.log();
    binaries_[output.result.binary()] = output.binary;
    v1::Program program = Kernel("unused", "double", "z[i] = x[i];");
    program.set_name(name);
    program.mutable_launches(0)->set_binary(output.result.binary());
    program.mutable_launches(0)->set_kernel(name);
    program.mutable_launches(0)->add_arguments()->set_scalar_buffer(5);
    return program;
  };
  const std::string axpy = absl::StrCat("z[i] = ", scalar, " * x[i] + y[i];");
  *session->mutable_reference() = with_scalar("reference_axpy", axpy);
  v1::Program staged = with_scalar("axpy", axpy);
  *staged.add_launches() = staged.launches(0);
  *staged.mutable_launches(0) = Kernel("stage", "double", "z[i] = x[i];").launches(0);
  staged.mutable_launches(0)->mutable_arguments(2)->set_workspace_offset(64);
  staged.mutable_launches(1)->mutable_arguments(0)->set_workspace_offset(64);
  staged.set_workspace_bytes(64 + kEntries * 8);
  *task_.add_programs() = staged;
  // A workspace that is too small by one entry is found.
  staged.set_name("cramped");
  staged.set_workspace_bytes(64 + kEntries * 8 - 8);
  *task_.add_programs() = staged;
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectGood(result->programs(0));
  EXPECT_EQ(result->programs(1).outcome(), v1::WRONG_RESULT);
  EXPECT_NE(result->programs(1).message().find("the workspace"), std::string::npos)
      << result->programs(1).message();
}

TEST_P(TimeTaskTest, EmptyDataAreFine) {
  for (v1::Buffer& buffer : *task_.mutable_session()->mutable_inputs()) buffer.set_count(0);
  task_.mutable_session()->mutable_outputs(0)->set_count(0);
  AddProgram("good", kAdd);
  auto shrink = [](v1::Program* program) {
    for (v1::Launch& launch : *program->mutable_launches())
      launch.mutable_arguments(3)->set_integer(0), launch.set_grid(0);
  };
  shrink(task_.mutable_session()->mutable_reference());
  shrink(task_.mutable_session()->mutable_unfused());
  shrink(task_.mutable_programs(0));
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->programs(0).outcome(), v1::OK) << result->programs(0).message();
}

}  // namespace fusion
