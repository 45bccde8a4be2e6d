#include "server/optimize/measure_stage.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/device_figures.h"
#include "server/optimize/reported_times.h"
#include "server/optimize/submission.h"
#include "server/rank/rank.h"

namespace fusion {
namespace {

// Candidates that are measured again, interleaved with each other; and how often more where their times do
// not tell which is the fastest, since a busy machine is not always equally so.
constexpr int kFinalists = 5, kMostRepeats = 2;
// The race is not repeated any more when it has taken so long: of large data a repetition takes a minute.
constexpr std::chrono::seconds kMostRepeatedTime{30};

// Candidates of one timing before that: they share the runs of the unfused cover, the other inputs of the
// end, and the way to the worker and back. One that crashes is taken out there, and the others are measured
// again.
constexpr int kTogether = 4;

constexpr double kRunSeconds = 20;

// A steady time that is so many times an earlier one of the same program comes from a busy machine.
constexpr double kBusyAgain = 1.25;

// Candidates of a round that are all wrong, where none was right before: the job ends.
constexpr int kFailingAlike = 4;

// A fault of the candidate's, unless it was the device's or the machine's.
bool IsFault(v1::Outcome outcome) { return outcome == v1::FAULT || outcome == v1::TIMEOUT; }

v1::MeasurementMethod Method(const v1::TargetProfile::Measuring& measuring, bool warm, bool quick,
                             bool final_round, const v1::JobLimits& limits) {
  // The samples of a first answer.
  constexpr int kLeastQuick = 5, kMostQuick = 5;
  constexpr double kQuickShare = 0.2;  // of the time for samples
  v1::MeasurementMethod method;
  method.set_warm(warm);
  method.set_version(kMethodVersion);
  method.set_minimum_samples(quick ? kLeastQuick : final_round ? 15 : 7);
  method.set_maximum_samples(quick ? kMostQuick : final_round ? 101 : 31);
  method.set_relative_half_width(measuring.relative_half_width());
  method.set_seconds_limit(measuring.seconds() * (quick ? kQuickShare : final_round ? 2 : 1));
  method.set_cold_alone(quick && !warm);
  method.set_thorough(final_round);
  method.set_run_deadline_seconds(limits.run_seconds() > 0 ? limits.run_seconds() : kRunSeconds);
  return method;
}

class Timer final : public CandidateTimer {
 public:
  Timer(const DeviceDescription& device, bool quick, v1::CandidateSet* set, const v1::BuiltCode& built,
        const PipelineContext& context, v1::JobResult* result)
      : device_(device),
        quick_(quick),
        set_(set),
        built_(built),
        context_(context),
        result_(result),
        warm_(result->cache() == v1::WARM) {}

  absl::Status TimeRound(const std::vector<int>& round) override {
    if (session_.key().empty()) {
      session_ = SessionWith(set_->unfused(0));
      FUSION_RETURN_IF_ERROR(ChooseUnfused());
    }
    std::vector<int> positions;
    for (int position : round)
      if (Description(position).outcome() == v1::OUTCOME_UNSPECIFIED) positions.push_back(position);
    if (positions.empty()) return absl::OkStatus();
    // Evenly, so that no candidate is measured alone where others are five.
    const size_t count = quick_ ? 1 : (positions.size() + kTogether - 1) / kTogether;
    std::vector<std::vector<int>> together(count);
    for (size_t i = 0; i < positions.size(); ++i)
      together[i * count / positions.size()].push_back(positions[i]);
    std::vector<v1::TimeTask> tasks;
    for (const std::vector<int>& some : together) tasks.push_back(MakeTask(some, false));
    total_ += static_cast<int>(positions.size());
    absl::Status timed = TimeAll(tasks, device_, [&](int index, const v1::TimeResult& result, bool) {
      if (!result.failure().empty()) failure_ = result.failure();
      TakeResult(result, together[index]);
      for (int position : together[index]) EmitProgress(Description(position));
    });
    if (timed.ok()) timed = TimeAlone(HarmedByOthers(together));
    if (timed.ok()) timed = CheckRound(positions);
    if (!timed.ok()) return timed;
    std::erase_if(positions, [&](int position) { return !IsFault(Description(position).outcome()); });
    return Confirm(positions);
  }

  absl::Status Finish() override {
    // A first answer is what all of its candidates gave together.
    if (quick_) return End();
    // Until all of the fastest are verified on every kind of data, and it is known which is first or cannot
    // be known.
    const auto start = std::chrono::steady_clock::now();
    for (int repeat = 0;; ++repeat) {
      const std::vector<v1::Candidate> before = Candidates();
      const std::vector<int> finalists = ChooseFinalists(before, kFinalists);
      std::vector<int> unverified;
      std::copy_if(finalists.begin(), finalists.end(), std::back_inserter(unverified),
                   [&](int position) { return !verified_.contains(position); });
      const bool is_open = !finalists.empty() && !IsReliable(before) && repeat <= kMostRepeats &&
                           std::chrono::steady_clock::now() - start < kMostRepeatedTime;
      if (unverified.empty() && !is_open) break;
      // Verified candidates are timed again only where it is not known which is first.
      const std::vector<int> members = repeat == 0 || is_open ? finalists : unverified;
      v1::TimeTask task = MakeTask(members, true, repeat == 0 ? "" : absl::StrCat(", repeat ", repeat));
      task.mutable_method()->set_thorough(!unverified.empty());
      auto status = TimeAll({task}, device_, [&](int, const v1::TimeResult& result, bool) {
        if (!result.failure().empty()) failure_ = result.failure();
        TakeResult(result, members);
      });
      if (!status.ok()) return status;
      verified_.insert(members.begin(), members.end());
    }
    return End();
  }

 private:
  // Everything is timed.
  absl::Status End() {
    if (!have_unfused_ && unfused_outcome_ == v1::WRONG_RESULT) return NothingVerified(unfused_message_);
    if (!have_unfused_)
      return absl::FailedPreconditionError(absl::StrCat("nothing could be measured on ", device_.name(), ": ",
                                                        !failure_.empty() ? failure_
                                                        : unfused_message_.empty()
                                                            ? "the unfused cover gave no result"
                                                            : unfused_message_));
    return StoreMeasurements();
  }

  v1::Program NamedProgram(const std::string& name, const v1::Program& planned) const {
    v1::Program program = BuiltProgram(planned, built_);
    program.set_name(name);
    return program;
  }

  const v1::Candidate& Description(int position) const { return set_->candidates(position).description(); }
  v1::Candidate& MutableDescription(int position) {
    return *set_->mutable_candidates(position)->mutable_description();
  }

  std::vector<v1::Candidate> Candidates() const {
    std::vector<v1::Candidate> candidates;
    for (const v1::PlannedCandidate& planned : set_->candidates())
      candidates.push_back(planned.description());
    return candidates;
  }

  absl::Status NothingVerified(const std::string& reason) const {
    return absl::FailedPreconditionError(
        absl::StrCat("no code for this graph gives its f64 results on these inputs: ", reason,
                     "; give inputs as you have them (input x in (LOWER, UPPER); or --input x=FILE.npy), or "
                     "allow larger errors (--tolerance OUTPUT=ERROR)"));
  }

  // An error where nothing of the job's has been right so far and there is no reason to expect that of what
  // is left: the unfused kernels are wrong, or so many candidates that they have little in common.
  absl::Status CheckRound(const std::vector<int>& round) const {
    if (!have_unfused_ && unfused_outcome_ == v1::WRONG_RESULT) return NothingVerified(unfused_message_);
    for (const v1::PlannedCandidate& planned : set_->candidates())
      if (planned.description().outcome() == v1::OK) return absl::OkStatus();
    const auto is_wrong = [&](int position) { return Description(position).outcome() == v1::WRONG_RESULT; };
    if (static_cast<int>(round.size()) < kFailingAlike || !std::all_of(round.begin(), round.end(), is_wrong))
      return absl::OkStatus();
    return NothingVerified(Description(round[0]).message());
  }

  // A candidate has been timed.
  void EmitProgress(const v1::Candidate& candidate) {
    if (candidate.outcome() == v1::OK &&
        (best_seconds_ == 0 || candidate.measured().median() < best_seconds_)) {
      best_seconds_ = candidate.measured().median();
      best_speedup_ = candidate.speedup();
    }
    v1::JobEvent event;
    v1::TimeProgress* progress = event.mutable_timing();
    progress->set_done(++done_);
    progress->set_total(total_);
    progress->set_best_seconds(best_seconds_);
    progress->set_best_speedup(best_speedup_);
    progress->set_last(candidate.outcome() == v1::OK
                           ? absl::StrFormat("%.4g us", candidate.measured().median() * 1e6)
                           : v1::Outcome_Name(candidate.outcome()));
    if (context_.emit) context_.emit(std::move(event));
  }

  // Speed-ups are relative to the fastest unfused cover that is at hand, or bad predictions would flatter the
  // fusions.
  absl::Status ChooseUnfused() {
    if (set_->unfused_size() < 2) return absl::OkStatus();
    v1::TimeTask task;
    *task.mutable_session() = session_;
    for (int i = 1; i < set_->unfused_size(); ++i)
      *task.add_programs() = NamedProgram(absl::StrCat("unfused ", i + 1), set_->unfused(i));
    *task.mutable_method() = MethodOf(false);
    task.set_device_uuid(device_.uuid());
    return TimeAll({task}, device_, [&](int, const v1::TimeResult& result, bool) {
      double best = result.unfused().outcome() == v1::OK ? Ranking(result.unfused()).median() : 0;
      for (int i = 0; i < result.programs_size(); ++i) {
        const v1::ProgramMeasurement& measurement = result.programs(i);
        measurements_.push_back(Record("unfused", measurement, result.conditions()));
        if (measurement.outcome() != v1::OK || (best > 0 && Ranking(measurement).median() >= best)) continue;
        best = Ranking(measurement).median();
        session_ = SessionWith(set_->unfused(i + 1));
      }
    });
  }

  v1::MeasurementMethod MethodOf(bool final_round) const {
    return Method(TargetOf(device_.target()).profile().measuring(), warm_, quick_, final_round,
                  context_.limits);
  }

  v1::Session SessionWith(const v1::Program& unfused) const {
    return SessionOf(set_->session(), BuiltProgram(set_->reference(), built_), BuiltProgram(unfused, built_),
                     context_.job);
  }

  // Returns the candidates that may be bad only for the company that they were in: of several bad ones one
  // may have spoilt what is another's, and if the worker was lost, any may have done it.
  std::vector<int> HarmedByOthers(const std::vector<std::vector<int>>& together) const {
    std::vector<int> harmed;
    for (const std::vector<int>& some : together) {
      std::vector<int> bad;
      for (int position : some)
        if (Description(position).outcome() != v1::OK) bad.push_back(position);
      for (int position : bad) {
        const v1::Outcome outcome = Description(position).outcome();
        if ((outcome == v1::WRONG_RESULT && bad.size() > 1) ||
            (outcome == v1::WORKER_LOST && some.size() > 1))
          harmed.push_back(position);
      }
    }
    return harmed;
  }

  absl::Status TimeAlone(const std::vector<int>& positions) {
    if (positions.empty()) return absl::OkStatus();
    std::vector<v1::TimeTask> tasks;
    for (int position : positions) tasks.push_back(MakeTask({position}, false, ", alone"));
    return TimeAll(tasks, device_, [&](int index, const v1::TimeResult& result, bool) {
      if (!result.failure().empty()) failure_ = result.failure();
      TakeResult(result, {positions[index]});
    });
  }

  // Finds out whose fault it was. Each runs once more, on another device of the kind if there is one, and of
  // another worker if one has it: devices of one worker share the machine, which may be what failed. A
  // candidate that fails there too is at fault; one that does not gets another chance on the device of the
  // job, whose word is the last.
  absl::Status Confirm(const std::vector<int>& positions) {
    if (positions.empty()) return absl::OkStatus();
    const std::optional<DeviceDescription> other = context_.dispatcher.AnotherDevice(device_);
    std::vector<int> unconfirmed = positions;
    if (other.has_value()) {
      std::vector<v1::TimeTask> tasks;
      for (int position : positions) tasks.push_back(MakeTask({position}, false, ", elsewhere"));
      absl::Status timed = TimeAll(tasks, *other, [&](int index, const v1::TimeResult& result, bool) {
        if (result.programs_size() != 1 || !IsFault(result.programs(0).outcome())) return;
        v1::Candidate& candidate = MutableDescription(positions[index]);
        candidate.set_message(absl::StrCat(candidate.message(), "; again on another ", other->name(), ": ",
                                           result.programs(0).message()));
        std::erase(unconfirmed, positions[index]);
      });
      if (!timed.ok()) return timed;
    }
    std::vector<v1::TimeTask> tasks;
    for (int position : unconfirmed) tasks.push_back(MakeTask({position}, false, ", again"));
    return TimeAll(tasks, device_, [&](int index, const v1::TimeResult& result, bool) {
      v1::Candidate& candidate = MutableDescription(unconfirmed[index]);
      const std::string before = candidate.message();
      if (!result.failure().empty()) return;  // the first word stands
      TakeResult(result, {unconfirmed[index]});
      candidate.set_message(IsFault(candidate.outcome())
                                ? absl::StrCat(candidate.message(), "; the second time")
                                : absl::StrCat(candidate.message(), candidate.message().empty() ? "" : "; ",
                                               "failed before, not the second time: ", before));
    });
  }

  // Does what Dispatcher::Time does. A task that failed for want of a binary that the store has lost is timed
  // again when that is built again: nobody else can tell that it must be.
  absl::Status TimeAll(const std::vector<v1::TimeTask>& tasks, const DeviceDescription& device,
                       const Dispatcher::TimeResultCallback& on_result) {
    std::map<int, v1::TimeResult> failed;
    const auto tell = [&](int index, const v1::TimeResult& result, bool reused) {
      on_result(index, ReportedTimes(result, tasks[index], context_.metrics), reused);
    };
    absl::Status timed = context_.dispatcher.Time(context_.job, tasks, device, context_.cancellation,
                                                  [&](int index, const v1::TimeResult& result, bool reused) {
                                                    if (result.failure().empty()) {
                                                      tell(index, result, reused);
                                                    } else {
                                                      failed[index] = result;
                                                    }
                                                  });
    if (!timed.ok() || failed.empty()) return timed;
    FUSION_ASSIGN_OR_RETURN(bool rebuilt, RebuildWhatIsLost(*set_, built_, context_));
    std::vector<v1::TimeTask> again;
    std::vector<int> index_of;
    for (const auto& [index, result] : failed) {
      if (!rebuilt) {
        tell(index, result, false);
        continue;
      }
      index_of.push_back(index);
      again.push_back(tasks[index]);
      // Or it would be the task that has failed.
      for (v1::Program& program : *again.back().mutable_programs())
        program.set_name(absl::StrCat(program.name(), ", rebuilt"));
    }
    return context_.dispatcher.Time(
        context_.job, again, device, context_.cancellation,
        [&](int index, const v1::TimeResult& result, bool reused) { tell(index_of[index], result, reused); });
  }

  // remark: tells tasks of the same candidate from each other.
  v1::TimeTask MakeTask(const std::vector<int>& positions, bool final_round,
                        const std::string& remark = "") const {
    v1::TimeTask task;
    *task.mutable_session() = session_;
    for (int position : positions)
      *task.add_programs() = NamedProgram(absl::StrCat("candidate ", position + 1, remark),
                                          set_->candidates(position).program());
    *task.mutable_method() = MethodOf(final_round);
    task.set_device_uuid(device_.uuid());
    return task;
  }

  // Returns whether a measurement may take the place of a steady time. The machine may have been busy since:
  // then it is not steady, or all of its runs were disturbed alike, which looks steady but takes longer.
  bool IsAsGood(const v1::Statistics& steady, const v1::ProgramMeasurement& measurement) const {
    return measurement.steady() && Ranking(measurement).median() <= kBusyAgain * steady.median();
  }

  // The times that rank.
  const v1::Statistics& Ranking(const v1::ProgramMeasurement& measurement) const {
    return warm_ ? measurement.warm() : measurement.cold();
  }

  void TakeResult(const v1::TimeResult& result, const std::vector<int>& positions) {
    if (result.unfused().outcome() == v1::OK) {
      have_unfused_ = true;
      *result_->mutable_conditions() = result.conditions();
      if (!steady_unfused_ || IsAsGood(result_->unfused(), result.unfused())) {
        *result_->mutable_unfused() = Ranking(result.unfused());
        *result_->mutable_unfused_cold() = result.unfused().cold();
        *result_->mutable_unfused_warm() = result.unfused().warm();
        steady_unfused_ = result.unfused().steady();
      }
    } else if (!result.unfused().message().empty()) {
      unfused_message_ = result.unfused().message();
      unfused_outcome_ = result.unfused().outcome();
    }
    for (const std::string& remark : result.unfused().remarks())
      if (std::find(result_->remarks().begin(), result_->remarks().end(), remark) == result_->remarks().end())
        result_->add_remarks(remark);
    measurements_.push_back(Record("unfused", result.unfused(), result.conditions()));
    for (size_t i = 0; i < positions.size(); ++i) {
      v1::Candidate& candidate = MutableDescription(positions[i]);
      if (static_cast<int>(i) >= result.programs_size()) {
        if (candidate.outcome() != v1::OK) {
          candidate.set_outcome(v1::WORKER_LOST);
          candidate.set_message(result.failure());
        }
        continue;
      }
      const v1::ProgramMeasurement& measurement = result.programs(static_cast<int>(i));
      measurements_.push_back(Record(candidate.key(), measurement, result.conditions()));
      candidate.set_outcome(measurement.outcome() == v1::OUTCOME_UNSPECIFIED ? v1::WORKER_LOST
                                                                             : measurement.outcome());
      candidate.set_message(measurement.message());
      candidate.set_max_relative_error(measurement.max_relative_error());
      candidate.set_tolerance(measurement.tolerance());
      if (measurement.outcome() != v1::OK) continue;
      if (candidate.steady() && !IsAsGood(candidate.measured(), measurement)) continue;
      candidate.set_steady(measurement.steady());
      *candidate.mutable_measured() = Ranking(measurement);
      *candidate.mutable_cold() = measurement.cold();
      *candidate.mutable_warm() = measurement.warm();
      candidate.set_speedup(
          (warm_ ? measurement.paired_warm_speedup() : measurement.paired_speedup()).median());
      candidate.set_below_floor(measurement.below_floor() &&
                                IsBelowFloor(device_, session_.floor_bytes(), measurement.cold()));
      // Both in the order of the launches; kernels of different fusions may have the same name.
      int next = 0;
      for (v1::KernelSummary& kernel : *candidate.mutable_kernels()) {
        if (next == measurement.kernels_size() || measurement.kernels(next).kernel() != kernel.name())
          continue;
        kernel.set_registers(measurement.kernels(next).registers());
        kernel.set_spill_bytes(measurement.kernels(next).spill_bytes());
        ++next;
      }
    }
  }

  MeasurementRecord Record(const std::string& key, const v1::ProgramMeasurement& measurement,
                           const v1::MeasurementConditions& conditions) const {
    MeasurementRecord record;
    record.job = context_.job;
    record.candidate_key = key;
    record.graph_hash = set_->hash();
    record.sizes = SizesText({set_->sizes().begin(), set_->sizes().end()});
    record.device_class = device_.name();
    record.device_uuid = device_.uuid();
    record.arch = device_.arch();
    record.driver =
        conditions.driver_version().empty() ? device_.driver_version() : conditions.driver_version();
    record.toolkit = device_.toolkit_version();
    record.library_hash = set_->library_hash();
    record.method_version = kMethodVersion;
    record.outcome = v1::Outcome_Name(measurement.outcome());
    record.cache = warm_ ? "WARM" : "COLD";
    record.median_seconds = Ranking(measurement).median();
    record.low_seconds = Ranking(measurement).low();
    record.high_seconds = Ranking(measurement).high();
    record.raw = measurement.SerializeAsString();
    record.conditions = conditions.SerializeAsString();
    record.created = TimeOfDay();
    return record;
  }

  absl::Status StoreMeasurements() {
    FUSION_RETURN_IF_ERROR(context_.store.AddMeasurements(measurements_));
    return RememberDevice(device_, context_.store, TimeOfDay());
  }

  const DeviceDescription& device_;
  const bool quick_;
  v1::CandidateSet* const set_;
  const v1::BuiltCode& built_;
  const PipelineContext& context_;
  v1::JobResult* const result_;
  const bool warm_;
  v1::Session session_;
  std::set<int> verified_;  // candidates that were finalists
  bool have_unfused_ = false, steady_unfused_ = false;
  std::string unfused_message_, failure_;
  v1::Outcome unfused_outcome_ = v1::OUTCOME_UNSPECIFIED;  // of the newest timing that gave none
  int done_ = 0, total_ = 0;
  double best_seconds_ = 0, best_speedup_ = 0;
  std::vector<MeasurementRecord> measurements_;
};

}  // namespace

v1::Session SessionOf(v1::Session session, v1::Program reference, v1::Program unfused,
                      const std::string& job) {
  *session.mutable_reference() = std::move(reference);
  *session.mutable_unfused() = std::move(unfused);
  const std::string digest = Sha256Hex(session.SerializeAsString());
  // With the same data for a graph every time a wrong kernel would pass every time; the same data within a
  // job lets its candidates share the reference.
  session.set_seed(std::stoull(Sha256Hex(digest + job).substr(0, 15), nullptr, 16));
  session.set_key(digest + job);
  return session;
}

std::unique_ptr<CandidateTimer> MakeCandidateTimer(const DeviceDescription& device, bool quick,
                                                   const v1::BuiltCode& built, const PipelineContext& context,
                                                   v1::CandidateSet* set, v1::JobResult* result) {
  return std::make_unique<Timer>(device, quick, set, built, context, result);
}

}  // namespace fusion
