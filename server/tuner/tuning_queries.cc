// The calls of TuningRegistry for people: what is stored, and who tunes it now.
#include <future>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/tuner/tuning_messages.h"
#include "server/tuner/tuning_registry_parts.h"

namespace fusion {
namespace {

constexpr int kMostListed = 10'000;  // configurations of Details

}  // namespace

absl::StatusOr<v1::TuningDetails> TuningRegistry::Ranked(const TuningRecord& record) const {
  v1::TuningDetails details;
  *details.mutable_tuning() = TuningMessage(record);
  FUSION_ASSIGN_OR_RETURN(
      std::vector<TuningConfigurationRecord> configurations,
      store_.TuningConfigurations(record.number, record.progress.generation,
                                  details.tuning().declaration().objective().maximize(), kMostListed));
  RankConfigurations(configurations, record.defaults, details);
  details.mutable_tuning()->set_programs(ProgramsOf(record));
  return details;
}

uint32_t TuningRegistry::ProgramsOf(const TuningRecord& record) const {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    auto found = live_.find(record.id);
    if (found == live_.end()) return 0;
    if (auto of_key = slots_.find(record.key); of_key != slots_.end()) slot = of_key->second;
  }
  if (!slot) return 0;
  std::set<uint64_t> programs;
  std::lock_guard lock(slot->mutex);
  for (const TuningMember& member : slot->members) programs.insert(member.program);
  return static_cast<uint32_t>(programs.size());
}

absl::StatusOr<v1::ListTuningsResponse> TuningRegistry::List(const v1::ListTuningsRequest& request) {
  FUSION_ASSIGN_OR_RETURN(TuningPage page,
                          store_.ListTunings(request.program(), request.page_size(), request.page_token()));
  v1::ListTuningsResponse response;
  for (const TuningRecord& record : page.tunings) {
    FUSION_ASSIGN_OR_RETURN(v1::TuningDetails details, Ranked(record));
    *response.add_tunings() = std::move(*details.mutable_tuning());
  }
  response.set_next_page_token(page.next_page_token);
  return response;
}

absl::StatusOr<v1::Tuning> TuningRegistry::Get(const std::string& name) {
  FUSION_ASSIGN_OR_RETURN(TuningRecord record, store_.GetTuning(name));
  FUSION_ASSIGN_OR_RETURN(v1::TuningDetails details, Ranked(record));
  return std::move(*details.mutable_tuning());
}

absl::StatusOr<v1::TuningDetails> TuningRegistry::Details(const std::string& name) {
  FUSION_ASSIGN_OR_RETURN(TuningRecord record, store_.GetTuning(name));
  absl::StatusOr<v1::TuningDetails> details = Ranked(record);
  if (!details.ok()) return details;
  FUSION_ASSIGN_OR_RETURN(std::vector<TuningConvergenceRecord> points,
                          store_.TuningConvergence(record.number, record.progress.generation));
  for (const TuningConvergenceRecord& point : points) *details->add_convergence() = ConvergenceMessage(point);
  // Where it stands now, so that one sees since when nothing has changed.
  const TuningProgress& progress = record.progress;
  if (progress.best_value > 0 && (points.empty() || progress.evaluations > points.back().evaluations))
    *details->add_convergence() =
        ConvergenceMessage({progress.evaluations, progress.best, progress.best_value});
  return details;
}

absl::StatusOr<v1::Tuning> TuningRegistry::Reset(const std::string& name) {
  FUSION_ASSIGN_OR_RETURN(TuningRecord record, store_.GetTuning(name));
  FUSION_ASSIGN_OR_RETURN(std::shared_ptr<Slot> slot, SlotOf(record.key));
  std::shared_ptr<LiveTuning> live;
  absl::Status reset = absl::OkStatus();
  {
    // No search of it begins meanwhile.
    std::lock_guard lock(slot->mutex);
    live = slot->live;
    if (!live) {
      committer_->Flush(kFlushTime);
      reset = store_.ResetTuning(name).status();
    }
  }
  slot.reset();
  DropSlotIfUnused(record.key);
  if (!reset.ok()) return reset;
  if (live) {
    if (live->Reset().wait_for(kFlushTime) != std::future_status::ready)
      return absl::DeadlineExceededError("the search is busy; it is reset as soon as it is not");
    if (!committer_->Flush(kFlushTime))
      return absl::UnavailableError("the search has begun anew, but this is not stored yet");
  }
  if (changed_) changed_(name);
  return Get(name);
}

absl::StatusOr<v1::ListTuningReportsResponse> TuningRegistry::Reports(
    const v1::ListTuningReportsRequest& request) {
  FUSION_ASSIGN_OR_RETURN(TuningRecord record, store_.GetTuning(request.name()));
  FUSION_ASSIGN_OR_RETURN(TuningReportPage page,
                          store_.ListTuningReports(record.number, request.page_size(), request.page_token()));
  v1::ListTuningReportsResponse response;
  for (const TuningReportRecord& report : page.reports) *response.add_reports() = ReportMessage(report);
  response.set_next_page_token(page.next_page_token);
  return response;
}

}  // namespace fusion
