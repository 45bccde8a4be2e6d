#include "worker/measure/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "library/verification/input_rules.h"
#include "worker/measure/statistics.h"

namespace fusion {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUpRuns = 2;
// A device that has been idle for so long takes a while to raise its clocks: the first program runs on it for
// at least kWarmUpSeconds, and then until two series of runs in turn have the same median, but no longer than
// kMostWarmUpSeconds.
constexpr double kIdleSeconds = 0.25;
constexpr double kWarmUpSeconds = 0.05;
constexpr double kMostWarmUpSeconds = 0.5;
constexpr int kSteadySeries = 25;  // runs at least, and seconds
constexpr double kSteadySeriesSeconds = 0.01;
constexpr double kSteady = 0.005;
// A warm sample is a series of runs about this long, or of the largest number of them: it has to outweigh
// what starts and ends it.
constexpr double kWarmSeriesSeconds = 200e-6;
constexpr int kMaximumWarmSeries = 20;
constexpr int kWarmSeriesSlack = 3;
// Where warm times rank, runs before the series: until the cache holds what such runs leave there. A series
// of five without them had GEMVER of 3072 square in f32 at 27.5 us, which takes 24.3 in a loop (H200).
constexpr int kWarmLead = 2;
constexpr double kMostLedSeconds = 0.01;  // of a run: longer ones need no lead, and have deadlines
// This share of the cold runs that are timed, besides the first and the last, has its results compared too.
constexpr double kJudgedShare = 0.25;
// All are compared where that has once taken no longer than this: a busy machine makes it slower, not dearer.
constexpr double kCheapJudgement = 3e-3;
// So many runs are judged in a row at the end, so that no program can do nothing in a turn of so many:
// between the runs that are judged before lie series of nearly equal length that are not, and one that rested
// in every third run came through in about one of ten tasks.
constexpr int kJudgedInARow = 8;
constexpr int kDearJudgedInARow = 3;
// Dear are runs of which none took less than this, judgement and all. The least and not each: a busy machine
// must not make a row short. It is also many times the turn of another process on a busy machine.
constexpr double kDearRun = 100e-3;

// A run that waited for a processor for more than this share of its time says how long the waiting took. Runs
// of which each waits so are alike, and would pass for steady: on two cores beside eight busy processes most
// took 20, 40 or 60 ms, where 0.3 to 11 ms were needed (tests/bench/busy_host.py).
constexpr double kMostWaiting = 0.1;

// Seconds that a thorough verification spends on data in which one entry after the other is the largest. The
// first few runs show most faults, and so may take longer where the device has others to serve.
constexpr double kMostClassSeconds = 1;
constexpr int kLeastClasses = 32;
constexpr double kMostFewClassSeconds = 4;
// A thorough verification runs so often on the same data, for so long at most: lanes that do not wait for
// each other give a wrong result only now and then.
constexpr int kRepeatedRuns = 16;
constexpr double kMostRepeatedSeconds = 0.5;

// A program while it is measured.
struct Subject {
  int number = kUnfusedProgram;
  const v1::Program* program = nullptr;
  v1::ProgramMeasurement* measurement = nullptr;
  std::unique_ptr<PreparedProgram> prepared;  // null: out
  bool sampling = true;
  double spent_seconds = 0;
  double least_judged_seconds = std::numeric_limits<double>::infinity();  // of the runs that were judged
  std::map<int, double> cold, warm;                                       // by round
  std::set<int> cold_waits, warm_waits;  // rounds of those that waited for a processor
};

class ProtocolRun {
 public:
  ProtocolRun(ExecutionBackend* backend, SessionData* session, const v1::TimeTask& task,
              ActivityPage* activity, const FinishedCallback& finished, const std::function<void()>& sampled)
      : backend_(backend),
        session_(session),
        task_(task),
        method_(CompleteMethod(task.method())),
        activity_(activity),
        phases_(session->phases()),
        finished_(finished),
        sampled_(sampled) {}

  absl::StatusOr<v1::TimeResult> Measure(const BinaryMap& binaries, double copy_bytes_per_second) {
    // The task before this one, on the same session, ended with other data.
    if (session_->pattern().kind != DataPattern::Kind::kAsked)
      FUSION_RETURN_IF_ERROR(session_->Renew({}, binaries, activity_).status());
    FUSION_RETURN_IF_ERROR(PrepareAll(binaries));
    for (Subject& subject : subjects_) FUSION_RETURN_IF_ERROR(JudgeFirstRun(&subject));
    FUSION_RETURN_IF_ERROR(WarmUp());
    FUSION_RETURN_IF_ERROR(SampleRounds());
    NoteConditions();  // while the device is still at work's clocks
    for (Subject& subject : subjects_) FUSION_RETURN_IF_ERROR(JudgeLastRun(&subject));
    if (sampled_) sampled_();
    for (Subject& subject : subjects_) FUSION_RETURN_IF_ERROR(JudgeRunsInARow(&subject));
    FUSION_RETURN_IF_ERROR(JudgeOnOtherData(binaries));
    backend_->HasWorked();
    for (const std::string& remark : session_->remarks()) result_.mutable_unfused()->add_remarks(remark);
    for (Subject& subject : subjects_) Summarize(&subject, copy_bytes_per_second);
    return std::move(result_);
  }

 private:
  // Takes a program out, with its outcome.
  void Drop(Subject* subject, v1::Outcome outcome, const std::string& message) {
    subject->measurement->set_outcome(outcome);
    subject->measurement->set_message(message);
    subject->prepared.reset();
    finished_(subject->number, *subject->measurement);
  }

  absl::Status PrepareAll(const BinaryMap& binaries) {
    const v1::Session& session = task_.session();
    if (session.unfused().launches_size() > 0) {
      Subject subject;
      subject.program = &session.unfused();
      subject.measurement = result_.mutable_unfused();
      subjects_.push_back(std::move(subject));
    }
    for (int i = 0; i < task_.programs_size(); ++i) {
      Subject subject;
      subject.number = i;
      subject.program = &task_.programs(i);
      subject.measurement = result_.add_programs();
      subjects_.push_back(std::move(subject));
    }
    std::vector<const v1::Program*> programs;
    for (const Subject& subject : subjects_) programs.push_back(subject.program);
    FUSION_RETURN_IF_ERROR(session_->Reserve(programs));
    for (Subject& subject : subjects_) {
      subject.measurement->set_name(subject.program->name());
      activity_->Set(Activity::kLoad, subject.number);
      absl::StatusOr<std::unique_ptr<PreparedProgram>> prepared =
          session_->Prepare(*subject.program, binaries);
      activity_->Set(Activity::kSetUp);
      if (absl::IsAborted(prepared.status()) || absl::IsDataLoss(prepared.status())) return prepared.status();
      if (!prepared.ok()) {
        Drop(&subject, absl::IsResourceExhausted(prepared.status()) ? v1::EXCEEDS_DEVICE : v1::LAUNCH_ERROR,
             std::string(prepared.status().message()));
        continue;
      }
      subject.prepared = std::move(*prepared);
      if (subject.number == kUnfusedProgram) session_->KeepLoaded(*subject.prepared);
      for (const v1::KernelAttributes& kernel : subject.prepared->kernels)
        *subject.measurement->add_kernels() = kernel;
      for (const std::string& digest : subject.prepared->digests) subject.measurement->add_binaries(digest);
    }
    return absl::OkStatus();
  }

  void NoteConditions() {
    const InPhase conditions(phases_, v1::TIMING_CONDITIONS);
    *result_.mutable_conditions() = backend_->Conditions();
  }

  // One run, or a series. False when the program is out now. A run beyond the deadline that ended by itself
  // is a TIMEOUT too.
  absl::StatusOr<bool> RunOnce(Subject* subject, bool flush_cache, double* seconds, int repeat = 1,
                               int lead = 0) {
    return Ran(subject, seconds, [&](SessionData::RunCalls calls) {
      return session_->Run(*subject->prepared, flush_cache, repeat, lead, std::move(calls));
    });
  }

  absl::StatusOr<bool> Ran(Subject* subject, double* seconds,
                           const std::function<absl::StatusOr<double>(SessionData::RunCalls)>& run_program) {
    const auto start = Clock::now();
    absl::StatusOr<double> run = run_program({[&] { activity_->Set(Activity::kRun, subject->number); },
                                              [&] { activity_->Set(Activity::kSetUp, subject->number); }});
    // After a fault the page keeps saying who ran.
    if (absl::IsAborted(run.status())) return run.status();
    activity_->Set(Activity::kSetUp);
    subject->spent_seconds += std::chrono::duration<double>(Clock::now() - start).count();
    if (!run.ok()) {
      Drop(subject, v1::LAUNCH_ERROR, std::string(run.status().message()));
      return false;
    }
    *seconds = *run;
    if (*run > method_.run_deadline_seconds()) {
      Drop(subject, v1::TIMEOUT,
           absl::StrFormat("a run took %.3g s, allowed are %.3g s", *run, method_.run_deadline_seconds()));
      return false;
    }
    return true;
  }

  // A run that is judged. False when the program is out.
  absl::StatusOr<bool> RunAndJudge(Subject* subject, const std::string& which, double* seconds,
                                   bool flush_cache = true, BlockOrder order = BlockOrder::kUsual,
                                   bool one_thread = false) {
    FUSION_ASSIGN_OR_RETURN(const bool ran, Ran(subject, seconds, [&](SessionData::RunCalls calls) {
                              calls.order = order;
                              calls.one_thread = one_thread;
                              return session_->RunInspected(*subject->prepared, flush_cache,
                                                            std::move(calls));
                            }));
    inspection_seconds_ = session_->inspection_seconds();
    subject->spent_seconds -= inspection_seconds_;
    if (phases_ != nullptr) phases_->Move(v1::TIMING_COLD, v1::TIMING_VERIFY, inspection_seconds_);
    if (!ran) return false;
    least_inspection_seconds_ = std::min(least_inspection_seconds_, inspection_seconds_);
    subject->least_judged_seconds = std::min(subject->least_judged_seconds, *seconds);
    activity_->Set(Activity::kSetUp, subject->number);  // what is found now is its doing
    const InPhase judging(phases_, v1::TIMING_VERIFY);
    FUSION_ASSIGN_OR_RETURN(const Verdict verdict,
                            session_->Judge(subject->number == kUnfusedProgram, activity_));
    activity_->Set(Activity::kSetUp);
    v1::ProgramMeasurement* measurement = subject->measurement;
    // The tolerance that goes with the largest error: on other data results may have to be exact.
    if (measurement->tolerance() == 0 || verdict.max_relative_error > measurement->max_relative_error())
      measurement->set_tolerance(verdict.tolerance);
    measurement->set_max_relative_error(
        std::max(measurement->max_relative_error(), verdict.max_relative_error));
    if (verdict.outcome == v1::OK) return true;
    Drop(subject, verdict.outcome, absl::StrFormat("%s: %s", which, verdict.message));
    return false;
  }

  absl::Status JudgeFirstRun(Subject* subject) {
    const InPhase cold(phases_, v1::TIMING_COLD);
    double seconds = 0;
    if (subject->prepared == nullptr) return absl::OkStatus();
    FUSION_ASSIGN_OR_RETURN(const bool good, RunAndJudge(subject, "first run", &seconds));
    return good ? JudgeOrders(subject, seconds) : absl::OkStatus();
  }

  // Judges runs of blocks in other orders, where nobody has proved that they are independent. On one thread
  // each dependence between blocks shows in one of them; where that takes too long each thread has its part.
  absl::Status JudgeOrders(Subject* subject, double usual_seconds) {
    const std::vector<PreparedLaunch>& launches = subject->prepared->launches;
    if (std::none_of(launches.begin(), launches.end(),
                     [](const PreparedLaunch& launch) { return launch.order != nullptr; }))
      return absl::OkStatus();
    const bool one_thread =
        usual_seconds * std::thread::hardware_concurrency() < method_.run_deadline_seconds() / 2;
    for (BlockOrder order : {BlockOrder::kForward, BlockOrder::kBackward, BlockOrder::kShuffled}) {
      double seconds = 0;
      if (subject->prepared != nullptr)
        FUSION_RETURN_IF_ERROR(
            RunAndJudge(subject, NameOf(order), &seconds, false, order, one_thread).status());
    }
    subject->least_judged_seconds = usual_seconds;
    return absl::OkStatus();
  }

  absl::Status WarmUp() {
    const InPhase warming(phases_, v1::TIMING_WARM_UP);
    const bool idle = backend_->idle_seconds() > kIdleSeconds;
    bool first = true;
    for (Subject& subject : subjects_) {
      if (subject.prepared == nullptr) continue;
      if (first && idle) FUSION_RETURN_IF_ERROR(WarmUpUntilSteady(&subject));
      first = false;
      for (int i = 0; subject.prepared != nullptr && i < kWarmUpRuns; ++i) {
        double seconds = 0;
        FUSION_RETURN_IF_ERROR(RunOnce(&subject, /*flush_cache=*/false, &seconds).status());
      }
      subject.spent_seconds = 0;
    }
    return absl::OkStatus();
  }

  absl::Status WarmUpUntilSteady(Subject* subject) {
    const auto start = Clock::now();
    double before = 0, series_began = 0;
    for (std::vector<double> series; subject->prepared != nullptr;) {
      double seconds = 0;
      FUSION_RETURN_IF_ERROR(RunOnce(subject, /*flush_cache=*/false, &seconds).status());
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      if (elapsed > kMostWarmUpSeconds) break;
      series.push_back(seconds);
      if (static_cast<int>(series.size()) < kSteadySeries || elapsed - series_began < kSteadySeriesSeconds)
        continue;
      series_began = elapsed;
      const double median = ComputeStatistics(std::move(series)).median();
      series.clear();
      if (elapsed >= kWarmUpSeconds && std::abs(median - before) <= kSteady * before) break;
      before = median;
    }
    return absl::OkStatus();
  }

  bool Finished(const Subject& subject, int rounds) const {
    if (rounds < method_.minimum_samples()) return false;
    if (rounds >= method_.maximum_samples()) return true;
    const std::map<int, double>& samples = method_.warm() ? subject.warm : subject.cold;
    const v1::Statistics times = TimeStatistics(Samples(samples));
    const bool steady =
        IsSteadyTime(times, samples, method_.warm() ? subject.warm_waits : subject.cold_waits);
    const double limit = method_.seconds_limit() * (steady ? 1 : kPatience);
    if (subject.spent_seconds >= limit) return true;
    return steady && times.samples() >= method_.minimum_samples() &&
           RelativeHalfWidth(times) <= method_.relative_half_width();
  }

  // Runs in a warm sample; not always as many, so that no run can know from those before it whether it will
  // be looked at.
  int WarmSeries(const Subject& subject) {
    double cold = std::numeric_limits<double>::infinity();  // the least: a disturbed one says nothing
    for (const auto& [round, seconds] : subject.cold) cold = std::min(cold, seconds);
    if (!std::isfinite(cold) || !(cold > 0)) return 1;
    const int longest =
        static_cast<int>(std::clamp(kWarmSeriesSeconds / cold, 1.0, double(kMaximumWarmSeries)));
    return longest - std::uniform_int_distribution<int>(0, std::min(kWarmSeriesSlack, longest - 1))(random_);
  }

  // Runs before those of a warm sample.
  int WarmLead(const Subject& subject) const {
    const auto cold = subject.cold.find(round_);
    return method_.warm() && cold != subject.cold.end() && cold->second <= kMostLedSeconds ? kWarmLead : 0;
  }

  absl::Status SampleRounds() {
    // The last sample is the run that is judged at the end.
    for (; round_ + 1 < method_.maximum_samples(); ++round_) {
      std::vector<Subject*> order;
      bool any = false;
      for (Subject& subject : subjects_) {
        if (subject.prepared == nullptr) continue;
        subject.sampling = subject.sampling && !Finished(subject, round_);
        any |= subject.sampling;
        if (subject.sampling || subject.number == kUnfusedProgram) order.push_back(&subject);
      }
      if (!any) break;
      std::rotate(order.begin(), order.begin() + round_ % order.size(), order.end());
      for (bool flush_cache : {true, false}) {
        if (!flush_cache && method_.cold_alone()) continue;
        const InPhase sampling(phases_, flush_cache ? v1::TIMING_COLD : v1::TIMING_WARM);
        for (Subject* subject : order) {
          double seconds = 0;
          if (subject->prepared == nullptr) continue;
          // Nobody knows which of the runs that are timed will be looked at.
          const bool judged = flush_cache && (least_inspection_seconds_ < kCheapJudgement ||
                                              std::bernoulli_distribution(kJudgedShare)(random_));
          FUSION_ASSIGN_OR_RETURN(const bool ran, judged ? RunAndJudge(subject, "a timed run", &seconds)
                                                         : RunOnce(subject, flush_cache, &seconds,
                                                                   flush_cache ? 1 : WarmSeries(*subject),
                                                                   flush_cache ? 0 : WarmLead(*subject)));
          if (ran && flush_cache) NoteSample(seconds, &subject->cold, &subject->cold_waits);
          if (ran && !flush_cache) NoteSample(seconds, &subject->warm, &subject->warm_waits);
        }
      }
    }
    return absl::OkStatus();
  }

  // Notes the seconds of the last run, and whether it waited too much.
  void NoteSample(double seconds, std::map<int, double>* samples, std::set<int>* waits) const {
    (*samples)[round_] = seconds;
    if (backend_->waited_share() > kMostWaiting) waits->insert(round_);
  }

  // The last sample.
  absl::Status JudgeLastRun(Subject* subject) {
    if (subject->prepared == nullptr) return absl::OkStatus();
    const InPhase cold(phases_, v1::TIMING_COLD);
    double seconds = 0;
    FUSION_ASSIGN_OR_RETURN(const bool good, RunAndJudge(subject, "last timed run", &seconds));
    if (good) NoteSample(seconds, &subject->cold, &subject->cold_waits);
    return absl::OkStatus();
  }

  // Judges runs that follow the last sample, with no run between that is not judged.
  absl::Status JudgeRunsInARow(Subject* subject) {
    const InPhase cold(phases_, v1::TIMING_COLD);
    const bool dear = subject->least_judged_seconds + least_inspection_seconds_ > kDearRun;
    // Where neither warm times nor all kinds of data are wanted it is a first answer, which is not for
    // finding out programs that rest now and then.
    const bool first_answer = method_.cold_alone() && !method_.thorough();
    const int runs = first_answer ? 1 : dear ? kDearJudgedInARow : kJudgedInARow;
    for (int i = 1; i < runs && subject->prepared != nullptr; ++i) {
      double seconds = 0;
      FUSION_RETURN_IF_ERROR(RunAndJudge(subject, "a run after the last timed one", &seconds).status());
    }
    return absl::OkStatus();
  }

  // Runs on other data than those before: for a kernel that remembers results, and for faults that random
  // data do not show. All kinds of data where the method asks for it; the whole numbers alone else.
  absl::Status JudgeOnOtherData(const BinaryMap& binaries) {
    std::vector<DataPattern> patterns = PatternsOf(session_->session());
    if (!method_.thorough()) patterns.resize(1);
    for (const DataPattern& pattern : patterns) {
      FUSION_RETURN_IF_ERROR(JudgeOnPattern(binaries, pattern));
      if (method_.thorough() && pattern.kind == DataPattern::Kind::kWhole)
        FUSION_RETURN_IF_ERROR(JudgeRepeatedRuns());
    }
    if (!method_.thorough()) return absl::OkStatus();
    int64_t lanes = 0;
    for (const Subject& subject : subjects_)
      if (subject.prepared != nullptr)
        for (const PreparedLaunch& launch : subject.prepared->launches)
          lanes = std::max<int64_t>(lanes, launch.threads);
    const auto start = Clock::now();
    int judged = 0;
    for (const DataPattern& pattern : ClassPatterns(session_->session(), lanes)) {
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (seconds > (judged < kLeastClasses ? kMostFewClassSeconds : kMostClassSeconds)) break;
      FUSION_RETURN_IF_ERROR(JudgeOnPattern(binaries, pattern));
      ++judged;
    }
    return absl::OkStatus();
  }

  // Runs on the data there are, again and again.
  absl::Status JudgeRepeatedRuns() {
    const auto start = Clock::now();
    for (int run = 0; run < kRepeatedRuns; ++run)
      for (Subject& subject : subjects_) {
        if (std::chrono::duration<double>(Clock::now() - start).count() > kMostRepeatedSeconds)
          return absl::OkStatus();
        if (subject.prepared == nullptr || subject.number == kUnfusedProgram) continue;
        const InPhase cold(phases_, v1::TIMING_COLD);
        double seconds = 0;
        FUSION_RETURN_IF_ERROR(
            RunAndJudge(&subject, "one of many runs on the same data", &seconds, false).status());
      }
    return absl::OkStatus();
  }

  absl::Status JudgeOnPattern(const BinaryMap& binaries, const DataPattern& pattern) {
    std::vector<const v1::Program*> programs;
    for (const Subject& subject : subjects_)
      if (subject.prepared != nullptr) programs.push_back(subject.program);
    if (programs.empty()) return absl::OkStatus();
    FUSION_ASSIGN_OR_RETURN(const bool are_prepared, session_->Renew(pattern, binaries, activity_));
    if (!are_prepared) FUSION_RETURN_IF_ERROR(session_->Reserve(programs));
    const std::string which = absl::StrCat("a run on ", NameOf(pattern.kind));
    for (Subject& subject : subjects_) {
      if (subject.prepared == nullptr) continue;
      if (!are_prepared) {
        activity_->Set(Activity::kLoad, subject.number);
        // Its code is still loaded, with all that it remembers, as long as the program prepared before lives.
        FUSION_ASSIGN_OR_RETURN(std::unique_ptr<PreparedProgram> prepared,
                                session_->Prepare(*subject.program, binaries));
        activity_->Set(Activity::kSetUp);
        std::swap(subject.prepared, prepared);
      }
      const InPhase cold(phases_, v1::TIMING_COLD);
      double seconds = 0;
      // Flushing takes longer than most runs, and there are many of this kind.
      const bool flush_cache = pattern.kind != DataPattern::Kind::kClass;
      FUSION_RETURN_IF_ERROR(RunAndJudge(&subject, which, &seconds, flush_cache).status());
    }
    return absl::OkStatus();
  }

  void Summarize(Subject* subject, double copy_bytes_per_second) {
    if (subject->prepared == nullptr) return;
    v1::ProgramMeasurement* measurement = subject->measurement;
    measurement->set_outcome(v1::OK);
    const Subject* unfused =
        subjects_.front().number == kUnfusedProgram && subjects_.front().prepared != nullptr
            ? &subjects_.front()
            : nullptr;
    for (const auto& [round, seconds] : subject->cold) measurement->add_cold_samples(seconds);
    for (const auto& [round, seconds] : subject->warm) measurement->add_warm_samples(seconds);
    *measurement->mutable_cold() = TimeStatistics(Samples(subject->cold));
    *measurement->mutable_warm() = TimeStatistics(Samples(subject->warm));
    measurement->set_steady(method_.warm()
                                ? IsSteadyTime(measurement->warm(), subject->warm, subject->warm_waits)
                                : IsSteadyTime(measurement->cold(), subject->cold, subject->cold_waits));
    if (unfused != nullptr) {
      *measurement->mutable_paired_speedup() = PairedRatioByRound(unfused->cold, subject->cold);
      *measurement->mutable_paired_warm_speedup() = PairedRatioByRound(unfused->warm, subject->warm);
    }
    measurement->set_below_floor(copy_bytes_per_second > 0 &&
                                 measurement->cold().median() <
                                     task_.session().floor_bytes() / copy_bytes_per_second);
  }

  ExecutionBackend* const backend_;
  SessionData* const session_;
  const v1::TimeTask& task_;
  const v1::MeasurementMethod method_;
  ActivityPage* const activity_;
  PhaseTimes* const phases_;  // may be null
  const FinishedCallback& finished_;
  const std::function<void()>& sampled_;
  v1::TimeResult result_;
  std::vector<Subject> subjects_;
  int round_ = 0;
  double inspection_seconds_ = 0;  // of the last inspected run
  double least_inspection_seconds_ = std::numeric_limits<double>::infinity();
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace

v1::MeasurementMethod CompleteMethod(const v1::MeasurementMethod& method) {
  v1::MeasurementMethod complete = method;
  if (complete.version() == 0) complete.set_version(3);
  if (complete.minimum_samples() <= 0) complete.set_minimum_samples(5);
  if (complete.maximum_samples() <= 0) complete.set_maximum_samples(50);
  complete.set_maximum_samples(std::max(complete.maximum_samples(), 2));
  complete.set_minimum_samples(std::min(complete.minimum_samples(), complete.maximum_samples()));
  if (!(complete.relative_half_width() > 0)) complete.set_relative_half_width(0.01);
  if (!(complete.seconds_limit() > 0)) complete.set_seconds_limit(2);
  if (!(complete.run_deadline_seconds() > 0)) complete.set_run_deadline_seconds(10);
  return complete;
}

absl::StatusOr<v1::TimeResult> MeasurePrograms(ExecutionBackend* backend, SessionData* session,
                                               const v1::TimeTask& task, const BinaryMap& binaries,
                                               double copy_bytes_per_second, ActivityPage* activity,
                                               const FinishedCallback& finished,
                                               const std::function<void()>& sampled) {
  return ProtocolRun(backend, session, task, activity, finished, sampled)
      .Measure(binaries, copy_bytes_per_second);
}

}  // namespace fusion
