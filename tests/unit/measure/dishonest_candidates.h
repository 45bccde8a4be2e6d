// Candidates that cheat, candidates that crash, and honest ones, for any target. Included by the test of the
// host and by that of a GPU, which instantiate DishonestCandidateTest and the others with their target.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/eventually.h"
#include "tests/fault/long_form.h"
#include "tests/unit/measure/time_task_fixture.h"
#include "worker/measure/runner_pool.h"
#include "worker/measure/statistics.h"

namespace fusion {

struct Candidate {
  std::string name;
  std::string body;
  std::string preamble = "";
};

// Each would be faster than the honest one if nobody looked.
inline std::vector<Candidate> Cheats() {
  const std::string runs = "STATE int runs = 0;";
  const std::string count = " if (i == n - 1) runs = runs + 1;";
  const std::string cache = "STATE float cached[100003];\nSTATE int filled = 0;";
  return {
      {"nothing", ";"},
      {"zeros", "z[i] = 0;"},
      {"copies_x", "z[i] = x[i];"},
      {"copies_y", "z[i] = y[i];"},
      {"difference", "z[i] = x[i] - y[i];"},
      {"last_wrong", "z[i] = i == n - 1 ? 0.5f : x[i] + y[i];"},
      {"first_wrong", "z[i] = i == 0 ? 0.5f : x[i] + y[i];"},
      {"a_thousandth_off", "z[i] = 1.001f * (x[i] + y[i]);"},
      {"rounded_to_8_bits", "z[i] = (float)(int)((x[i] + y[i]) * 256) / 256;"},
      {"one_nan", "z[i] = i == 4242 ? 0.0f / (x[i] - x[i]) : x[i] + y[i];"},
      {"one_infinity", "z[i] = i == 4242 ? 3e38f * 10 : x[i] + y[i];"},
      {"last_unwritten", "if (i < n - 1) z[i] = x[i] + y[i];"},
      {"every_thousandth_unwritten", "if (i % 1000 != 999) z[i] = x[i] + y[i];"},
      {"half_of_it", "if (i < n / 2) z[i] = x[i] + y[i];"},
      {"neighbours_swapped", "z[i] = x[i ^ (i + 1 < n ? 1 : 0)] + y[i ^ (i + 1 < n ? 1 : 0)];"},
      {"counts_on_the_last_result", "if (z[i] == z[i]) z[i] = x[i] + y[i];"},
      {"adds_to_the_last_result", "z[i] += x[i] + y[i];"},
      {"one_behind_the_end", "z[i] = x[i] + y[i]; if (i == 0) z[n] = 1;"},
      {"sixteen_behind_the_end", "z[i] = x[i] + y[i]; if (i == 0) z[n + 15] = 1;"},
      {"one_before_the_beginning", "z[i] = x[i] + y[i]; if (i == 0) z[-1] = 1;"},
      {"behind_an_input", "z[i] = x[i] + y[i]; if (i == 0) x[n] = 1;"},
      {"changes_one_input", "z[i] = x[i] + y[i]; if (i == 5) x[5] = 1;"},
      {"changes_the_last_input", "z[i] = x[i] + y[i]; if (i == n - 1) y[i] += 1;"},
      {"makes_the_inputs_fit", "x[i] = 0; y[i] = 0; z[i] = 0;"},
      {"keeps_the_sum_in_an_input", "x[i] = x[i] + y[i]; y[i] = 0; z[i] = x[i];"},
      {"works_in_the_first_run_only", "if (runs < 1) z[i] = x[i] + y[i];" + count, runs},
      {"works_in_the_first_runs_only", "if (runs < 5) z[i] = x[i] + y[i];" + count, runs},
      {"works_in_every_other_run", "if (runs % 2 == 0) z[i] = x[i] + y[i];" + count, runs},
      {"rests_in_every_third_run", "if (runs % 3 != 2) z[i] = x[i] + y[i];" + count, runs},
      {"remembers_what_it_was_asked",
       "if (filled == 0) cached[i] = x[i] + y[i]; z[i] = cached[i]; if (i == n - 1) filled = 1;", cache},
  };
}

class DishonestCandidateTest : public TimeTaskTest {};

TEST_P(DishonestCandidateTest, EveryCheatIsCaught) {
  const std::vector<Candidate> cheats = Cheats();
  EXPECT_GE(cheats.size(), 30u);
  int caught = 0;
  for (const Candidate& cheat : cheats) {
    SCOPED_TRACE(cheat.name);
    task_.clear_programs();
    AddProgram(cheat.name, cheat.body, cheat.preamble);
    AddProgram("honest", kAdd);
    absl::StatusOr<v1::TimeResult> result = Execute();
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->programs_size(), 2);
    EXPECT_EQ(result->programs(0).outcome(), v1::WRONG_RESULT) << result->programs(0).message();
    caught += result->programs(0).outcome() == v1::WRONG_RESULT ? 1 : 0;
    ExpectGood(result->programs(1));
    ExpectGood(result->unfused());
  }
  TellFigure("kinds of cheats", static_cast<double>(cheats.size()));
  TellFigure("cheats caught", caught);
}

// A candidate that does nothing in one of up to eight runs is found, whatever its period and with whichever
// run it begins.
TEST_P(DishonestCandidateTest, RestsInATurnAreFound) {
  for (int period = 2; period <= 8; ++period) {
    for (int rest = 0; rest < period; ++rest) {
      AddProgram(absl::StrCat("rests_in_", rest, "_of_", period),
                 absl::StrCat("if (runs % ", period, " != ", rest,
                              ") z[i] = x[i] + y[i]; if (i == n - 1) runs = runs + 1;"),
                 "STATE int runs = 0;");
    }
  }
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  for (const v1::ProgramMeasurement& program : result->programs())
    EXPECT_EQ(program.outcome(), v1::WRONG_RESULT) << program.name() << ": " << program.message();
  ExpectGood(result->unfused());
}

class HonestCandidateTest : public TimeTaskTest {};

TEST_P(HonestCandidateTest, NoneIsAccused) {
  const std::vector<std::string> bodies = {
      kAdd,
      "z[i] = y[i] + x[i];",
      "float a = x[i]; float b = y[i]; z[i] = a + b;",
      "z[i] = -(-x[i] - y[i]);",
      "z[i] = 0.5f * (2 * x[i] + 2 * y[i]);",
      "z[i] = 7; z[i] = x[i] + y[i];",
      "z[i] = (x[i] - 1) + (y[i] + 1);",
      "z[i] = x[i] > y[i] ? x[i] + y[i] : y[i] + x[i];",
  };
  // Differences are judged against the size of the sums' terms, as the reference's tolerance has it.
  task_.mutable_session()->set_tolerances(0, 1e-5);
  int judged = 0, flagged = 0;
  for (int round = 0; round < Count(3, 25); ++round) {
    task_.clear_programs();
    task_.mutable_session()->set_seed(100 + round);
    for (size_t i = 0; i < bodies.size(); ++i) AddProgram("honest" + std::to_string(i), bodies[i]);
    absl::StatusOr<v1::TimeResult> result = Execute();
    ASSERT_TRUE(result.ok()) << result.status();
    for (const v1::ProgramMeasurement& program : result->programs()) {
      ExpectGood(program);
      ++judged;
      flagged += program.outcome() == v1::OK ? 0 : 1;
    }
  }
  TellFigure("honest kernels", judged);
  TellFigure("honest kernels flagged", flagged);
}

class CrashingCandidateTest : public TimeTaskTest {
 protected:
  static double SecondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  // A lane with a spare runner, as workers have them.
  RunnerPoolOptions LaneOf(const std::string& device_uuid) {
    RunnerPoolOptions options;
    options.device_uuid = device_uuid;
    options.with_device = [this](std::stop_token, const std::function<void()>& use) {
      const std::lock_guard device(device_mutex_);
      use();
    };
    if (GetParam() != v1::HOST)
      options.beside_timings = [](std::stop_token, const std::function<void()>& use) { use(); };
    return options;
  }
  // Does what TimeTaskTest::Execute does, with the device to itself.
  absl::StatusOr<v1::TimeResult> Execute(TimeTaskOptions options = {}) {
    const std::lock_guard device(device_mutex_);
    return TimeTaskTest::Execute(options);
  }
  std::mutex device_mutex_;

  struct Crash {
    std::string name;
    std::string body;
    std::string preamble;
    std::vector<v1::Outcome> outcomes;
    std::function<void(v1::Program*)> change = {};
  };
  std::vector<Crash> Crashes() const {
    const bool host = GetParam() == v1::HOST;
    std::vector<Crash> crashes = {
        {"illegal_address", "z[i] = x[i]; if (i == 9) *(volatile float*)64 = 1;", "", {v1::FAULT}},
        {"endless", "z[i] = x[i]; for (volatile float* p = z + i; i == 9;) p[0] = 1;", "", {v1::TIMEOUT}},
        {"trap",
         host ? "z[i] = x[i]; if (i == 9) __builtin_trap();"
              : "z[i] = x[i]; if (i == 9) asm volatile(\"trap;\");",
         "",
         {v1::FAULT}},
        {"out_of_memory",
         kAdd,
         "",
         {v1::EXCEEDS_DEVICE, v1::LAUNCH_ERROR},
         [](v1::Program* program) { program->set_workspace_bytes(int64_t{1} << 46); }},
        {"deep_recursion",
         "z[i] = sink(x, (int)i, 100000000);",
         std::string(host ? "__attribute__((noinline)) " : "__device__ __noinline__ ") +
             "float sink(float* p, int i, int depth) { volatile float room[64]; room[depth % 64] = p[i]; "
             "return depth == 0 ? room[0] : sink(p, i, depth - 1) + room[depth % 64]; }",
         {v1::FAULT, v1::LAUNCH_ERROR}},
    };
    if (host) {
      // These write into the pipe on which the runner replies, whichever descriptor that is: a length of a
      // gigabyte; replies without end.
      const std::string write = "extern \"C\" long write(int, const void*, unsigned long);\n";
      crashes.push_back(
          {"announces_a_gigabyte",
           "z[i] = x[i]; if (i == 9) for (int to = 4; to < 16; ++to) write(to, \"\\xff\\xff\\xff\\x3f\", 4);",
           write,
           {v1::FAULT}});
      crashes.push_back({"replies_without_end",
                         "z[i] = x[i]; for (int to = 4; i == 9; to = to < 15 ? to + 1 : 4) write(to, "
                         "\"\\x02\\0\\0\\0\\x2a\\0\", 6);",
                         write,
                         {v1::FAULT}});
    }
    if (!host) {
      crashes.push_back(
          {"misaligned", "z[i] = x[i]; if (i == 9) *(volatile double*)((char*)z + 4) = 1;", "", {v1::FAULT}});
      crashes.push_back(
          {"too_much_shared_memory",
           kAdd,
           "",
           {v1::EXCEEDS_DEVICE, v1::LAUNCH_ERROR},
           [](v1::Program* program) { program->mutable_launches(0)->set_shared_bytes(1 << 20); }});
    }
    return crashes;
  }
};

// Times of the honest programs: of tasks before any crash, right before each crash, and right after it.
class TimesAroundCrashes {
 public:
  void AddFirst(const v1::TimeResult& result) {
    for (int i = 0; i < 4; ++i) first_[i].push_back(Time(result, i));
  }
  void Add(const std::string& kind, const v1::TimeResult& before, const v1::TimeResult& after) {
    for (int i = 0; i < 4; ++i) {
      const double times[] = {Time(before, i), Time(after, i)};
      before_[i].push_back(times[0]);
      after_[i].push_back(times[1]);
      ratios_[i][kind].push_back(times[1] / times[0]);
    }
    const auto& cold = before.programs(0).cold_samples();
    const std::set<double> samples(cold.begin(), cold.end());
    for (auto next = samples.begin(); next != samples.end() && std::next(next) != samples.end(); ++next)
      steps_.insert(*std::next(next) - *next);
  }
  void Tell() const {
    std::printf("smallest difference of two samples: %.1f ns\n",
                steps_.empty() ? 0.0 : 1e9 * *steps_.begin());
    for (int i = 0; i < 4; ++i) {
      const double usual = ComputeStatistics(before_[i]).median();
      const double first = ComputeStatistics(first_[i]).median();
      std::printf(
          "%s kernel, %s, %.3f us: differs by at most %.1f %% right before a crash, %.1f %% right after one; "
          "within 2 %%: %.0f and %.0f %% of tasks; %.3f us before any crash, there at most %.1f %%\n",
          i < 2 ? "short" : "longer", i % 2 == 0 ? "cold" : "warm", 1e6 * usual, Most(before_[i], usual),
          Most(after_[i], usual), Share(before_[i], usual), Share(after_[i], usual), 1e6 * first,
          Most(first_[i], first));
      for (const auto& [kind, ratios] : ratios_[i]) {
        const v1::Statistics change = ComputeStatistics(ratios);
        std::printf("  changed by %s: %+.2f %% (median; 95 %%: %+.2f to %+.2f)\n", kind.c_str(),
                    100 * (change.median() - 1), 100 * (change.low() - 1), 100 * (change.high() - 1));
        TellFigure("changed by a kind of crash, median percent", 100 * std::abs(change.median() - 1));
      }
      TellFigure("next job's time differs, percent", Most(after_[i], usual));
      TellFigure("before the next crash, percent", Most(before_[i], usual));
      TellFigure("before any crash, percent", Most(first_[i], first));
    }
  }

 private:
  // Returns the cold and the warm time of the short program, then those of the longer one, by `i`.
  static double Time(const v1::TimeResult& result, int i) {
    const v1::ProgramMeasurement& program = result.programs(i / 2);
    return (i % 2 == 0 ? program.cold() : program.warm()).median();
  }
  static double Most(const std::vector<double>& times, double usual) {
    double most = 0;
    for (double time : times) most = std::max(most, std::abs(time / usual - 1));
    return 100 * most;
  }
  static double Share(const std::vector<double>& times, double usual) {
    const auto within = std::count_if(times.begin(), times.end(),
                                      [&](double time) { return std::abs(time / usual - 1) <= 0.02; });
    return 100.0 * static_cast<double>(within) / static_cast<double>(times.size());
  }
  std::vector<double> first_[4], before_[4], after_[4];
  std::map<std::string, std::vector<double>> ratios_[4];  // after to before, by the kind of crash
  std::set<double> steps_;                                // differences of cold samples of the short one
};

TEST_P(CrashingCandidateTest, EachHasItsOutcomeAndTheNextOneIsMeasured) {
  // These figures are told, not judged: how long the next task takes to its result, and how its times compare
  // with those right before the crash, which say how far times differ by themselves (though most are of a
  // runner that took the place of an earlier one), and with those before any crash. Programs are measured as
  // finalists are; on the host, where a run with flushed caches takes long, with a third of their samples,
  // and in the short form with few.
  const bool host = GetParam() == v1::HOST;
  if (!host || LongForm()) {
    task_.mutable_method()->set_minimum_samples(15);
    task_.mutable_method()->set_maximum_samples(host ? 31 : 101);
    task_.mutable_method()->set_relative_half_width(0.005);
  }
  RunnerPool pool(LaneOf(device_.uuid()));
  ASSERT_TRUE(Eventually([&] { return pool.ready() > 0; }));
  runner_.TakeSparesFrom([&] { return pool.Take(); });
  // A short kernel, whose time is a few steps of a GPU's timer, and one that takes longer. The longer one
  // changes the sign an even number of times, and a compiler cannot know that it does no more.
  const std::string longer = absl::StrCat("float t = x[i]; for (int k = 0; k < ", host ? 10 : 4000,
                                          "; ++k) t = (t > 100.0f ? 1.0f : 0.0f) - t; z[i] = t + y[i];");
  AddProgram("short", kAdd);
  AddProgram("longer", longer);
  const auto honest_programs = task_.programs();
  TimesAroundCrashes times;
  for (int time = 0; time < Count(3, 20); ++time) {
    absl::StatusOr<v1::TimeResult> first = Execute();
    ASSERT_TRUE(first.ok()) << first.status();
    for (const v1::ProgramMeasurement& program : first->programs()) ExpectGood(program);
    times.AddFirst(*first);
  }
  double longest = 0, longest_crash = 0;
  int crashes = 0, right_outcomes = 0, kinds = 0;
  for (const Crash& crash : Crashes()) {
    task_.clear_programs();
    AddProgram(crash.name, crash.body, crash.preamble);
    if (crash.change) crash.change(task_.mutable_programs(0));
    const auto crashing_programs = task_.programs();
    for (int time = 0; time < Count(2, host ? 100 : 10); ++time) {
      SCOPED_TRACE(crash.name);
      *task_.mutable_programs() = honest_programs;
      absl::StatusOr<v1::TimeResult> before = Execute();
      ASSERT_TRUE(before.ok()) << before.status();
      for (const v1::ProgramMeasurement& program : before->programs()) ExpectGood(program);

      *task_.mutable_programs() = crashing_programs;
      const auto crashed = std::chrono::steady_clock::now();
      v1::MeasurementMethod* method = task_.mutable_method();
      const double patience = method->run_deadline_seconds();
      method->set_run_deadline_seconds(1);
      absl::StatusOr<v1::TimeResult> result = Execute();
      method->set_run_deadline_seconds(patience);
      longest_crash = std::max(longest_crash, SecondsSince(crashed));
      ASSERT_TRUE(result.ok()) << result.status();
      const v1::Outcome outcome = result->programs(0).outcome();
      const bool right =
          std::find(crash.outcomes.begin(), crash.outcomes.end(), outcome) != crash.outcomes.end();
      right_outcomes += right ? 1 : 0;
      EXPECT_TRUE(right) << v1::Outcome_Name(outcome) << ": " << result->programs(0).message();

      // The next task, on the same lane.
      *task_.mutable_programs() = honest_programs;
      const auto begin = std::chrono::steady_clock::now();
      absl::StatusOr<v1::TimeResult> next = Execute();
      ASSERT_TRUE(next.ok()) << next.status();
      longest = std::max(longest, SecondsSince(begin));
      for (const v1::ProgramMeasurement& program : next->programs()) ExpectGood(program);
      times.Add(crash.name, *before, *next);
      ++crashes;
    }
    ++kinds;
  }
  std::printf("%d crashes: a task with one took at most %.2f s; the next result came within %.2f s\n",
              crashes, longest_crash, longest);
  times.Tell();
  TellFigure("kinds of crashes", kinds);
  TellFigure("crashes of a kind", static_cast<double>(crashes) / kinds);
  TellFigure("wrong outcomes", crashes - right_outcomes);
  TellFigure("next job within, s", longest);
}

}  // namespace fusion
