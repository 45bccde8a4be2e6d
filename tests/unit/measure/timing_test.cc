// The protocol with times that the test makes up: which runs there are, when sampling ends, what is paired.
#include "worker/measure/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "worker/build/host_builder.h"
#include "worker/measure/host_backend.h"

namespace fusion {
namespace {

constexpr int64_t kEntries = 1000;

// Runs kernels on the host, but says that runs of a kernel took what `seconds` gives, and notes how each was
// run.
class ScriptedBackend : public ExecutionBackend {
 public:
  struct NotedRun {
    std::string kernel;
    bool flush_cache = false;
    int repeat = 0;
    int lead = 0;
  };
  // `round`: 0 for the first run and those that warm up, then that of the sample.
  using Seconds = std::function<double(const std::string& kernel, bool flush_cache, int round)>;
  ScriptedBackend(std::unique_ptr<ExecutionBackend> host, Seconds seconds)
      : host_(std::move(host)), seconds_(std::move(seconds)) {}

  absl::StatusOr<double> Run(const std::vector<PreparedLaunch>& launches,
                             const RunOptions& options) override {
    if (absl::StatusOr<double> run = host_->Run(launches, options); !run.ok()) return run.status();
    const std::string& kernel = launches[0].name;
    runs_.push_back({kernel, options.flush_cache, options.repeat, options.lead});
    // In a round, the run with flushed caches comes first.
    int& flushed = flushed_[kernel];
    flushed += options.flush_cache;
    if (never_idle_) HasWorked();
    return seconds_(kernel, options.flush_cache, flushed - 1);
  }
  const std::vector<NotedRun>& runs() const { return runs_; }
  // From now on the device has just worked whenever something has run, however busy this machine is.
  void StayAtWork() { never_idle_ = true; }
  // From now on all runs, or every third one, wait for a processor for so much of their time.
  void Wait(double share, bool every_third) {
    waits_ = share;
    every_third_ = every_third;
  }
  double waited_share() const override { return every_third_ && runs_.size() % 3 != 0 ? 0 : waits_; }

  v1::Target target() const override { return host_->target(); }
  absl::StatusOr<v1::DeviceDescription> Describe() override { return host_->Describe(); }
  v1::MeasurementConditions Conditions() override { return host_->Conditions(); }
  absl::StatusOr<MemoryInfo> Memory() override { return host_->Memory(); }
  absl::StatusOr<DeviceAddress> Allocate(int64_t bytes) override { return host_->Allocate(bytes); }
  void Free(DeviceAddress address) override { host_->Free(address); }
  absl::Status CopyIn(DeviceAddress to, const void* from, int64_t bytes) override {
    return host_->CopyIn(to, from, bytes);
  }
  absl::Status CopyOut(void* to, DeviceAddress from, int64_t bytes) override {
    return host_->CopyOut(to, from, bytes);
  }
  absl::StatusOr<std::unique_ptr<LoadedBinary>> Load(const std::string& content) override {
    return host_->Load(content);
  }
  absl::StatusOr<v1::KernelAttributes> Prepare(const PreparedLaunch& launch) override {
    return host_->Prepare(launch);
  }
  absl::Status Probe() override { return host_->Probe(); }
  absl::Status Fill(DeviceAddress to, v1::DataType type, int64_t count, const InputRule& rule,
                    uint64_t key) override {
    return host_->Fill(to, type, count, rule, key);
  }
  absl::Status Widen(DeviceAddress to_f64, DeviceAddress from, v1::DataType type, int64_t count) override {
    return host_->Widen(to_f64, from, type, count);
  }
  absl::StatusOr<uint64_t> Hash(DeviceAddress from, int64_t bytes) override {
    return host_->Hash(from, bytes);
  }
  absl::StatusOr<ReferenceFigures> Figures(DeviceAddress reference_f64, v1::DataType type,
                                           int64_t count) override {
    return host_->Figures(reference_f64, type, count);
  }
  absl::StatusOr<Comparison> Compare(DeviceAddress output, v1::DataType type, DeviceAddress reference_f64,
                                     int64_t count, double scale, DeviceAddress excused) override {
    return host_->Compare(output, type, reference_f64, count, scale, excused);
  }
  absl::Status Perturb(DeviceAddress entries, int64_t count, double most, uint64_t key) override {
    return host_->Perturb(entries, count, most, key);
  }
  absl::Status Excuse(DeviceAddress excused, DeviceAddress reference, DeviceAddress other, v1::DataType type,
                      int64_t count, double factor, bool is_first) override {
    return host_->Excuse(excused, reference, other, type, count, factor, is_first);
  }

 private:
  const std::unique_ptr<ExecutionBackend> host_;
  const Seconds seconds_;
  std::vector<NotedRun> runs_;
  bool never_idle_ = false, every_third_ = false;
  double waits_ = 0;
  std::map<std::string, int> flushed_;  // runs with flushed caches, by kernel
};

// y = x by the unfused program "plain" and the candidate "fast".
class TimingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto builder = HostBuilder::Create();
    ASSERT_TRUE(builder.ok()) << builder.status();
    builder_ = *std::move(builder);
    v1::Session* session = task_.mutable_session();
    SetBuffer(0, session->add_inputs());
    SetBuffer(1, session->add_outputs());
    session->add_tolerances(1e-6);
    *session->mutable_reference() = Copy("reference", "double");
    *session->mutable_unfused() = Copy("plain", "float");
    *task_.add_programs() = Copy("fast", "float");
    v1::MeasurementMethod* method = task_.mutable_method();
    method->set_minimum_samples(7);
    method->set_maximum_samples(31);
    method->set_relative_half_width(0.01);
    method->set_seconds_limit(1000);
  }
  static void SetBuffer(int id, v1::Buffer* buffer) {
    buffer->set_id(id);
    buffer->set_name(id == 0 ? "x" : "y");
    buffer->set_count(kEntries);
    buffer->set_data_type(v1::F32);
  }
  v1::Program Copy(const std::string& name, const std::string& type) {
    v1::BuildTask build;
    build.set_target(v1::HOST);
    build.set_arch(HostArch());
    build.set_source("extern \"C\" void " + name + "(long long, void* const* a) { const " + type +
                     "* x = *(" + type + "**)a[0]; " + type + "* y = *(" + type +
                     "**)a[1]; for (int i = 0; i < " + std::to_string(kEntries) + "; ++i) y[i] = x[i]; }");
    BuildOutput output = builder_->Build(build);
    EXPECT_EQ(output.result.outcome(), v1::OK) << output.result.log();
    binaries_[output.result.binary()] = output.binary;
    v1::Program program;
    program.set_name(name);
    v1::Launch* launch = program.add_launches();
    launch->set_binary(output.result.binary());
    launch->set_kernel(name);
    launch->set_grid(1);
    launch->set_threads(1);
    for (int id : {0, 1}) launch->add_arguments()->set_buffer(id);
    return program;
  }
  v1::TimeResult Measure(ScriptedBackend::Seconds seconds) {
    auto host = HostBackend::Open();
    EXPECT_TRUE(host.ok());
    backend_ = std::make_unique<ScriptedBackend>(*std::move(host), std::move(seconds));
    return MeasureOn(backend_.get());
  }
  v1::TimeResult MeasureOn(ExecutionBackend* backend) {
    auto activity = ActivityPage::Create();
    EXPECT_TRUE(activity.ok());
    auto session = SessionData::Create(backend, task_.session(), binaries_, activity->get());
    EXPECT_TRUE(session.ok()) << session.status();
    auto result = MeasurePrograms(backend, session->get(), task_, binaries_, 0, activity->get(),
                                  [](int, const v1::ProgramMeasurement&) {});
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->programs(0).outcome(), v1::OK) << result->programs(0).message();
    return *std::move(result);
  }
  // Another task on the same device.
  v1::TimeResult MeasureAgain() {
    for (const ScriptedBackend::NotedRun& run : backend_->runs())
      warm_runs_before_ += run.kernel == "plain" && !run.flush_cache;
    backend_->StayAtWork();
    return MeasureOn(backend_.get());
  }
  int warm_runs_before_ = 0;  // of "plain"
  // How often the kernel ran with warm caches beyond its warm samples.
  int WarmUps(const std::string& kernel, int samples) const {
    int runs = 0;
    for (const ScriptedBackend::NotedRun& run : backend_->runs())
      runs += run.kernel == kernel && !run.flush_cache;
    return runs - samples;
  }
  // The most runs that any warm sample of the kernel was made of.
  int LongestSeries(const std::string& kernel) const {
    int most = 0;
    for (const ScriptedBackend::NotedRun& run : backend_->runs())
      if (run.kernel == kernel && !run.flush_cache) most = std::max(most, run.repeat);
    return most;
  }

  std::unique_ptr<Builder> builder_;
  std::unique_ptr<ScriptedBackend> backend_;
  v1::TimeTask task_;
  BinaryMap binaries_;
};

// One of them never settles: half of its samples are a fifth longer than the others.
double Restless(int round) { return round % 2 == 0 ? 1e-3 : 1.2e-3; }

TEST_F(TimingTest, WarmIntervalEndsSamplingWhereWarmTimesRank) {
  for (bool warm : {false, true}) {
    for (bool warm_settles : {false, true}) {
      task_.mutable_method()->set_warm(warm);
      const v1::TimeResult result = Measure([&](const std::string&, bool flush_cache, int round) {
        return flush_cache == warm_settles ? Restless(round) : 1e-3;
      });
      const v1::ProgramMeasurement& program = result.programs(0);
      // The run that is judged at the end is one more cold sample.
      EXPECT_EQ(program.cold_samples_size(), program.warm_samples_size() + 1);
      EXPECT_EQ(program.warm_samples_size(), warm == warm_settles ? 7 : 30) << warm << warm_settles;
    }
  }
}

TEST_F(TimingTest, AWarmSampleIsASeriesAsLongAsTheRunIsShort) {
  const std::map<double, int> series_of_cold = {{1e-7, 20}, {9e-6, 20},  {18e-6, 11},
                                                {90e-6, 2}, {150e-6, 1}, {1.0, 1}};
  for (const auto& [cold, series] : series_of_cold) {
    const v1::TimeResult result = Measure([&](const std::string& kernel, bool flush_cache, int) {
      return flush_cache && kernel == "fast" ? cold : 1e-3;
    });
    EXPECT_LE(LongestSeries("fast"), series) << cold;
    EXPECT_GE(LongestSeries("fast"), std::max(1, series - 3)) << cold;
    EXPECT_EQ(LongestSeries("plain"), 1) << cold;
    for (const ScriptedBackend::NotedRun& run : backend_->runs()) {
      if (run.flush_cache) {
        EXPECT_EQ(run.repeat, 1) << run.kernel;
      }
    }
  }
}

TEST_F(TimingTest, WhereWarmTimesRankRunsThatAreNotTimedLeadEachSample) {
  for (bool warm : {false, true}) {
    for (double seconds : {1e-5, 0.1}) {  // long ones stay as they are: deadlines are for one run
      task_.mutable_method()->set_warm(warm);
      const v1::TimeResult result = Measure([&](const std::string&, bool, int) { return seconds; });
      int led = 0;
      for (const ScriptedBackend::NotedRun& run : backend_->runs()) {
        EXPECT_TRUE(run.lead == 0 || (run.lead == 2 && !run.flush_cache)) << run.lead;
        led += run.kernel == "fast" && run.lead > 0;
      }
      EXPECT_EQ(led, warm && seconds < 1e-3 ? result.programs(0).warm_samples_size() : 0) << seconds;
    }
  }
}

TEST_F(TimingTest, NobodyCanCountOnTheLengthOfAWarmSeries) {
  std::set<int> lengths;
  for (int i = 0; i < 10; ++i) {
    Measure([&](const std::string& kernel, bool flush_cache, int) {
      return flush_cache && kernel == "fast" ? 1e-7 : 1e-3;
    });
    for (const ScriptedBackend::NotedRun& run : backend_->runs())
      if (run.kernel == "fast" && run.repeat > 1) lengths.insert(run.repeat);
  }
  EXPECT_GT(lengths.size(), 1u);
  EXPECT_GE(*lengths.begin(), 17);
  EXPECT_LE(*lengths.rbegin(), 20);
}

TEST_F(TimingTest, SpeedupsArePairedByRoundColdWithColdAndWarmWithWarm) {
  // The clocks drift by half; the quotients of one round do not.
  const v1::TimeResult result = Measure([&](const std::string& kernel, bool flush_cache, int round) {
    const double drifting = 1e-3 * (1 + 0.5 * round / 31);
    return kernel == "plain" ? drifting : flush_cache ? drifting / 2 : drifting / 5;
  });
  const v1::ProgramMeasurement &plain = result.unfused(), &fast = result.programs(0);
  for (const auto& [speedup, expected, samples] :
       {std::tuple(fast.paired_speedup(), 2.0, fast.cold_samples_size()),
        std::tuple(fast.paired_warm_speedup(), 5.0, fast.warm_samples_size()),
        std::tuple(plain.paired_speedup(), 1.0, plain.cold_samples_size()),
        std::tuple(plain.paired_warm_speedup(), 1.0, plain.warm_samples_size())}) {
    EXPECT_GT(samples, 7);
    EXPECT_EQ(speedup.samples(), samples);
    EXPECT_DOUBLE_EQ(speedup.low(), expected);
    EXPECT_DOUBLE_EQ(speedup.median(), expected);
    EXPECT_DOUBLE_EQ(speedup.high(), expected);
  }
}

// The clocks of an idle device rise while it works: its first program runs until two series in turn take the
// same. Times change with each run and not by the clock, so that the test does not depend on what else the
// machine does.
TEST_F(TimingTest, AnIdleDeviceIsWarmedUpUntilItsTimesAreSteady) {
  double last = 0;
  int runs = 0;
  const v1::TimeResult result = Measure([&](const std::string& kernel, bool flush_cache, int) {
    if (kernel != "plain" || flush_cache) return 1e-3;
    return last = std::max(1e-3, 2e-3 - 5e-5 * runs++);
  });
  EXPECT_EQ(last, 1e-3);
  for (double seconds : result.unfused().warm_samples()) EXPECT_EQ(seconds, 1e-3);
  EXPECT_EQ(WarmUps("fast", result.programs(0).warm_samples_size()), 2);
}

TEST_F(TimingTest, ADeviceWhoseTimesNeverSettleIsWarmedUpForHalfASecond) {
  const auto start = std::chrono::steady_clock::now();
  // At least 2.5 % more in each series, which has 25 runs or more.
  int runs = 0;
  Measure([&](const std::string& kernel, bool flush_cache, int) {
    if (kernel != "plain" || flush_cache) return 1e-3;
    for (const auto begun = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - begun < std::chrono::microseconds(200);) {
    }
    return 1e-3 * std::pow(1.001, runs++);
  });
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

TEST_F(TimingTest, ADeviceThatHasJustWorkedIsNotWarmedUpAgain) {
  Measure([](const std::string&, bool, int) { return 1e-3; });
  EXPECT_GE(backend_->idle_seconds(), 0);
  EXPECT_LT(backend_->idle_seconds(), 60);
  const size_t before = backend_->runs().size();
  EXPECT_GT(before, 0u);
  const v1::TimeResult result = MeasureAgain();
  EXPECT_EQ(WarmUps("plain", result.unfused().warm_samples_size()) - warm_runs_before_, 2);
}

// Each run that shares its processors with others takes the same few turns of the scheduler.
TEST_F(TimingTest, RunsThatAllWaitedForAProcessorAreAlikeAndNotSteady) {
  task_.mutable_session()->clear_unfused();
  const auto steady = [&](double share, bool every_third) {
    Measure([](const std::string&, bool, int) { return 20e-3; });
    backend_->Wait(share, every_third);
    return MeasureAgain().programs(0).steady();
  };
  EXPECT_TRUE(steady(0, false));
  EXPECT_TRUE(steady(0.05, false));
  EXPECT_FALSE(steady(0.5, false));
  task_.mutable_method()->set_cold_alone(true);
  EXPECT_TRUE(steady(0.5, true)) << "the others did not wait";
}

TEST_F(TimingTest, WithoutAnUnfusedProgramNothingIsPaired) {
  task_.mutable_session()->clear_unfused();
  const v1::TimeResult result = Measure([](const std::string&, bool, int) { return 1e-3; });
  EXPECT_EQ(result.programs(0).paired_speedup().samples(), 0);
  EXPECT_EQ(result.programs(0).paired_warm_speedup().samples(), 0);
  EXPECT_GT(result.programs(0).warm().samples(), 0);
}

// Of three runs other processes have two, each for some time slices.
double Busy(double seconds, int round) { return round % 3 == 1 ? seconds : seconds + 5e-3 * (1 + round % 7); }

TEST_F(TimingTest, OnABusyMachineTheUndisturbedRunsAreTheTime) {
  const v1::TimeResult result = Measure([&](const std::string& kernel, bool flush_cache, int round) {
    return flush_cache ? Busy(kernel == "plain" ? 4e-4 : 1e-4, round) : 1e-4;
  });
  const v1::ProgramMeasurement& fast = result.programs(0);
  EXPECT_DOUBLE_EQ(fast.cold().median(), 1e-4);
  EXPECT_DOUBLE_EQ(fast.cold().high(), 1e-4);
  EXPECT_DOUBLE_EQ(fast.paired_speedup().median(), 4);
  EXPECT_GT(fast.cold().spread(), 50);
  EXPECT_LT(fast.cold().samples(), fast.cold_samples_size() / 2);
  EXPECT_TRUE(fast.steady());
  // Sampling ends when as many as a quiet machine needs went undisturbed.
  EXPECT_GE(fast.cold().samples(), 7);
  EXPECT_LT(fast.cold_samples_size(), 31);
}

TEST_F(TimingTest, SamplesThatScatterAreNotSteadyAndTakenToTheLast) {
  for (bool warm : {false, true}) {
    task_.mutable_method()->set_warm(warm);
    const v1::TimeResult result = Measure([&](const std::string& kernel, bool flush_cache, int round) {
      return kernel == "fast" && flush_cache != warm ? 1e-4 * std::pow(1.2, round) : 1e-4;
    });
    EXPECT_FALSE(result.programs(0).steady()) << warm;
    EXPECT_EQ(result.programs(0).cold_samples_size(), 31) << warm;
    EXPECT_TRUE(result.unfused().steady()) << warm;
  }
}

}  // namespace
}  // namespace fusion
