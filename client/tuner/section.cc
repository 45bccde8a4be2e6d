#include "client/tuner/section.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "client/tuner/process.h"
#include "client/tuner/tuner.h"

namespace fusion::tuning {
namespace {

// The budget is shared by threads; a run costs less when not every one pays at once.
constexpr int kRunsBetweenPayments = 8;
// However little exploring seems to cost, a thread runs the choice so often in between: it is what costs are
// judged by.
constexpr uint64_t kRunsBetweenExplored = 4;
// Records that a thread keeps for its next runs.
constexpr size_t kSpareRecords = 64;

}  // namespace

Section::Section(Tuner* tuner, uint64_t serial, size_t slot, uint32_t id)
    : tuner(tuner), serial(serial), slot(slot), id(id) {}

void Section::Declare(std::shared_ptr<const ParameterSpace> space, double default_share) {
  space_ = std::move(space);
  maximize_ = declaration.objective().maximize();
  of_time_ = declaration.objective().name().empty() || declaration.objective().name() == "time";
  proposals_ = std::make_unique<ProposalQueue>(space_->dimensions());
  Choice defaults;
  defaults.best = Intern(space_->defaults());
  defaults.share = default_share;
  SetChoice(defaults);
  declared_.store(true, std::memory_order_release);
}

void Section::SetChoice(const Choice& choice) {
  choice_ = choice;
  published_.Write(choice);
}

const Configuration* Section::Intern(const std::vector<double>& point) {
  std::unique_ptr<Configuration>& configuration = configurations_[point];
  if (!configuration) {
    configuration = std::make_unique<Configuration>();
    configuration->point = point;
    configuration->values.resize(point.size());
    ValuesOf(point, configuration->values.data());
  }
  return configuration.get();
}

void Section::ValuesOf(const std::vector<double>& point, fusion_tuner_value* values) const {
  for (size_t i = 0; i < point.size(); ++i) {
    if (space_->axis(i).kind == ParameterSpace::Kind::kReal)
      values[i].real = point[i];
    else
      values[i].integer = static_cast<int64_t>(point[i]);
  }
}

Runner& Section::Attach(ThreadState& thread) {
  auto runner = std::make_unique<Runner>();
  runner->section = this;
  // A program that gets no values still gets an address.
  runner->assignment.values.resize(std::max<size_t>(1, space_->dimensions()));
  runner->spare_records.reserve(kSpareRecords);
  if (thread.sections.size() <= slot) thread.sections.resize(slot + 1);

  Process& process = Process::Get();
  std::scoped_lock lock(process.mutex, tuner->mutex());
  auto known =
      std::find_if(thread.tuners.begin(), thread.tuners.end(),
                   [&](const ThreadState::TunerEntry& entry) { return entry.serial == tuner->serial(); });
  if (known == thread.tuners.end()) {
    // Nothing need be remembered of tuners that are gone.
    std::erase_if(thread.tuners, [&](const ThreadState::TunerEntry& entry) {
      return !process.tuner_serials.contains(entry.serial);
    });
    thread.tuners.push_back({tuner->serial(), tuner->AddChannel()});
    known = thread.tuners.end() - 1;
  }
  runner->channel = known->channel;
  // Nobody writes while the mutex is held.
  published_.ReadNewer(&runner->version, &runner->choice);
  Runner& attached = *runner;
  known->channel->runners.push_back(std::move(runner));
  thread.sections[slot] = {serial, &attached};
  return attached;
}

void Section::Assign(Runner& runner, Assignment& assignment) {
  published_.ReadNewer(&runner.version, &runner.choice);
  assignment.best = runner.choice.expected;
  assignment.limited = false;
  if (!proposals_->empty() && AssignProposal(runner, assignment)) return;
  assignment.proposal = 0;
  assignment.configuration = runner.choice.best;
  const std::vector<fusion_tuner_value>& values = runner.choice.best->values;
  std::copy(values.begin(), values.end(), assignment.values.begin());
}

bool Section::AssignProposal(Runner& runner, Assignment& assignment) {
  if (tuner->forked()) return false;
  const Choice& choice = runner.choice;
  const bool limited = choice.limited && choice.share < 1;
  // The cost of exploring can be told only where it is known what runs with the choice take.
  if (limited && (choice.share <= 0 || choice.expected <= 0 || runner.since_explored < kRunsBetweenExplored ||
                  !budget_.TryBegin(choice.expected)))
    return false;
  uint64_t generation = 0;
  while (proposals_->Pop(&assignment.proposal, &generation, assignment.values.data())) {
    if (generation >= choice.generation) {
      assignment.configuration = nullptr;
      assignment.limited = limited;
      runner.since_explored = 0;
      return true;
    }
    // The proposal is of before a reset: what it would show counts no more.
    tuner->Report(runner, {id, Sample::Kind::kReturned, assignment.proposal, nullptr, 0});
  }
  if (limited) budget_.Cancelled();
  return false;
}

void Section::End(Runner& runner, Assignment& assignment, Sample::Kind kind, double value) {
  if (kind != Sample::Kind::kReturned) PayIn(runner, assignment, kind, value);
  double excess = std::numeric_limits<double>::quiet_NaN();
  if (assignment.proposal != 0) {
    if (kind == Sample::Kind::kReturned) {
      if (assignment.limited) budget_.Cancelled();
    } else {
      Tuner::Increment(runner.channel->explored);
      const double usual = budget_.Usual(assignment.best);
      // A failed run gave nothing for what it took.
      if (kind == Sample::Kind::kFailure)
        excess = value;
      else if (usual > 0)
        excess = maximize_ ? usual - value : value - usual;
      if (assignment.limited)
        budget_.Ended(std::isnan(excess) ? 0 : excess);
      else if (!std::isnan(excess))
        budget_.Explored(excess);
    }
  }
  if (kind != Sample::Kind::kReturned || assignment.proposal != 0)
    tuner->Report(runner, {id, kind, assignment.proposal, assignment.configuration, value, excess});
  assignment.proposal = 0;
  assignment.limited = false;
}

void Section::PayIn(Runner& runner, const Assignment& assignment, Sample::Kind kind, double value) {
  const Choice& choice = runner.choice;
  runner.unpaid += choice.share * value;
  if (assignment.proposal == 0 && kind == Sample::Kind::kValue && assignment.best > 0) {
    runner.pace_sum += value / assignment.best;
    ++runner.pace_runs;
    ++runner.since_explored;
  }
  if (++runner.unpaid_runs < kRunsBetweenPayments) return;
  budget_.PayIn(runner.unpaid, choice.expected);
  if (runner.pace_runs > 0) budget_.Ran(runner.pace_sum / runner.pace_runs);
  runner.unpaid = runner.pace_sum = 0;
  runner.unpaid_runs = runner.pace_runs = 0;
}

RunRecord* Section::TakeRecord(Runner& runner) {
  if (!runner.spare_records.empty()) {
    RunRecord* record = runner.spare_records.back();
    runner.spare_records.pop_back();
    return record;
  }
  std::lock_guard lock(tuner->mutex());
  if (!spare_records_.empty()) {
    RunRecord* record = spare_records_.back();
    spare_records_.pop_back();
    return record;
  }
  records_.push_back(std::make_unique<RunRecord>());
  records_.back()->assignment.values.resize(std::max<size_t>(1, space_->dimensions()));
  return records_.back().get();
}

void Section::GiveRecord(Runner& runner, RunRecord* record) {
  ++record->serial;
  if (runner.spare_records.size() < kSpareRecords) {
    runner.spare_records.push_back(record);
    return;
  }
  std::lock_guard lock(tuner->mutex());
  spare_records_.push_back(record);
}

void Section::TakeBack(Runner& runner) {
  spare_records_.insert(spare_records_.end(), runner.spare_records.begin(), runner.spare_records.end());
}

}  // namespace fusion::tuning
