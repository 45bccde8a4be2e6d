// TuningRegistry::Report: what programs measured, to the disk and to the searches.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/tuner/declared_section.h"
#include "server/tuner/report_check.h"
#include "server/tuner/tuning_messages.h"
#include "server/tuner/tuning_registry_parts.h"

namespace fusion {
namespace {

// A batch says this of one section.
struct OfSection {
  std::shared_ptr<const PublishedTuning> published;  // as the first of its reports found it
  size_t configurations = 0;  // configurations that there may be with those of this batch
  std::vector<TuningMeasurement> measured;
  std::vector<uint64_t> outdated;  // proposals of earlier generations
  std::vector<uint64_t> refused;   // proposals of which nothing is known now
  ExplorationCost cost;
};

TuningMeasurement MeasurementOf(const v1::TuningReport& report, const ParameterSpace& space) {
  return {.proposal = report.proposal(),
          .point = space.Canonical(report.configuration().values()),
          .count = report.count(),
          .mean = report.count() > 0 ? report.mean() : 0,
          .squared_deviations = report.count() > 0 ? report.squared_deviations() : 0,
          .minimum = report.count() > 0 ? report.minimum() : 0,
          .failures = report.failures()};
}

// Returns what runs of a proposal cost, as the program judged it; else by what is expected of the best.
double ExcessOf(const v1::TuningReport& report, const LiveTuning& live, const PublishedTuning& published) {
  if (report.has_excess()) return report.excess();
  if (published.state.value <= 0 || report.count() == 0) return 0;
  const bool maximize = live.space().declaration().objective().maximize();
  return (maximize ? published.state.value - report.mean() : report.mean() - published.state.value) *
         static_cast<double>(report.count());
}

TuningReportRecord RecordOf(const v1::TuningReport& report, const TuningMeasurement& measured,
                            const LiveTuning& live, const PublishedTuning& published, Timestamp now) {
  TuningReportRecord record;
  record.tuning = live.number();
  record.generation = static_cast<int64_t>(published.state.generation);
  record.time = now;
  record.proposal = static_cast<int64_t>(measured.proposal);
  record.runs = {EncodePoint(measured.point),
                 static_cast<int64_t>(measured.count),
                 measured.mean,
                 measured.squared_deviations,
                 measured.minimum,
                 static_cast<int64_t>(measured.failures)};
  if (measured.proposal == 0) return record;
  record.generation = static_cast<int64_t>(published.GenerationOf(measured.proposal));
  record.exploration_excess = ExcessOf(report, live, published);
  return record;
}

}  // namespace

void TuningRegistry::Refuse(TuningProgram& program, uint32_t handle, const absl::Status& why) {
  auto found = program.sections_.find(handle);
  if (found == program.sections_.end()) {
    if (program.sections_.size() >= options_.sections_of_program) return;
    found = program.sections_.try_emplace(handle).first;
  }
  TuningProgram::Section& section = found->second;
  Release(program, handle, section);
  section.answer = DeclaredMessage(handle, why);
  program.outbox().AddDeclared(section.answer);
}

absl::StatusOr<LiveTuning*> TuningRegistry::Believe(TuningProgram& program, const v1::TuningReport& report) {
  auto found = program.sections_.find(report.section());
  if (found == program.sections_.end()) {
    absl::Status undeclared = absl::NotFoundError("reported, but not declared on this connection");
    Refuse(program, report.section(), undeclared);
    return undeclared;
  }
  LiveTuning* live = found->second.live.get();
  if (live == nullptr) return absl::FailedPreconditionError("the section is not tuned");
  FUSION_RETURN_IF_ERROR(CheckReport(report, live->space()));
  return live;
}

void TuningRegistry::Take(TuningProgram& program, const v1::ReportBatch& batch) {
  Process& process = *program.state_;
  TuningBatch stored{process.name, static_cast<int64_t>(batch.sequence()), {}};
  stored.reports.reserve(static_cast<size_t>(batch.reports_size()));
  std::map<uint32_t, OfSection> by_section;
  const Timestamp now = TimeOfDay();
  for (const v1::TuningReport& report : batch.reports()) {
    OfSection& of_section = by_section[report.section()];
    const auto refuse = [&](const absl::Status& why) {
      program.outbox().AddRefused(report.section(), why, report.count() + report.failures());
      if (report.proposal() != 0) of_section.refused.push_back(report.proposal());
    };
    const absl::StatusOr<LiveTuning*> believed = Believe(program, report);
    if (!believed.ok()) {
      refuse(believed.status());
      continue;
    }
    LiveTuning* const live = *believed;
    if (!of_section.published) {
      of_section.published = live->published();
      of_section.configurations = live->most_configurations();
    }
    const PublishedTuning& published = *of_section.published;
    TuningMeasurement measured = MeasurementOf(report, live->space());
    if (measured.proposal == 0) {
      // Nobody may fill the memory with configurations that were never proposed.
      if (of_section.configurations >= options_.live.configurations &&
          measured.point != published.state.best && measured.point != live->space().defaults()) {
        refuse(absl::ResourceExhaustedError(absl::StrCat("there are ", of_section.configurations,
                                                         " configurations, which is as many as may be")));
        continue;
      }
      ++of_section.configurations;
    }
    stored.reports.push_back(RecordOf(report, measured, *live, published, now));
    of_section.cost.excess += stored.reports.back().exploration_excess;
    of_section.cost.total += measured.mean * static_cast<double>(measured.count);
    // Measured of what has changed since: history.
    if (stored.reports.back().generation != static_cast<int64_t>(published.state.generation))
      of_section.outdated.push_back(measured.proposal);
    else
      of_section.measured.push_back(std::move(measured));
  }
  if (metrics_ != nullptr) {
    const size_t refused = static_cast<size_t>(batch.reports_size()) - stored.reports.size();
    metrics_->reports->Add(static_cast<double>(stored.reports.size()));
    if (refused > 0) metrics_->reports_refused->Add(static_cast<double>(refused));
  }
  {
    std::lock_guard lock(process.mutex);
    process.accepted = batch.sequence();
    committer_->Add(std::move(stored));
  }
  for (auto& [handle, of_section] : by_section)
    if (auto found = program.sections_.find(handle); found != program.sections_.end() && found->second.live)
      found->second.live->Report({program.number_, handle}, std::move(of_section.measured),
                                 std::move(of_section.outdated), std::move(of_section.refused),
                                 of_section.cost);
}

absl::Status TuningRegistry::Report(TuningProgram& program, const v1::ReportBatch& batch) {
  std::lock_guard lock(program.mutex_);
  if (program.detached_) return absl::AbortedError("the process has connected again");
  const uint64_t sequence = batch.sequence();
  if (sequence == 0 || sequence > static_cast<uint64_t>(INT64_MAX))
    return absl::InvalidArgumentError(
        "reports.sequence: 1 for the first batch of a process, then one more each");
  // The first of a connection may be any: the store may be older than the process.
  if (program.last_sequence_ != 0 && sequence > program.last_sequence_ + 1)
    return absl::InvalidArgumentError(absl::StrCat("reports.sequence: after batch ", program.last_sequence_,
                                                   " comes batch ", program.last_sequence_ + 1, ", not ",
                                                   sequence));
  if (static_cast<size_t>(batch.reports_size()) > options_.reports_of_batch)
    return absl::ResourceExhaustedError(absl::StrCat("a batch has at most ", options_.reports_of_batch,
                                                     " reports; this one ", batch.reports_size()));
  program.last_sequence_ = std::max(program.last_sequence_, sequence);

  Process& process = *program.state_;
  bool repeated = false;
  uint64_t stored = 0;
  {
    std::lock_guard process_lock(process.mutex);
    repeated = sequence <= process.accepted;
    stored = process.stored;
  }
  if (!repeated) {
    Take(program, batch);
  } else {
    if (metrics_ != nullptr) metrics_->batches_repeated->Add();
    // One that is on its way to the disk is acknowledged when it is there.
    if (sequence <= stored) program.outbox().AddAcknowledged(stored);
  }
  for (const v1::ProposalDemand& demand : batch.demands())
    if (auto found = program.sections_.find(demand.section());
        found != program.sections_.end() && found->second.live)
      found->second.live->SetDemand({program.number_, demand.section()},
                                    std::min(demand.wanted(), options_.proposals_wanted));
  return absl::OkStatus();
}

}  // namespace fusion
