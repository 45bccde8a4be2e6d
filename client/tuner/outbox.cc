#include "client/tuner/outbox.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fusion::tuning {
namespace {

constexpr double kGreatest = std::numeric_limits<double>::max();

uint64_t Runs(const v1::TuningReport& report) { return report.count() + report.failures(); }

}  // namespace

void AddValue(v1::TuningReport& report, double value) {
  report.set_count(report.count() + 1);
  const double deviation = value - report.mean();
  report.set_mean(report.mean() + deviation / static_cast<double>(report.count()));
  report.set_squared_deviations(
      std::min(report.squared_deviations() + deviation * (value - report.mean()), kGreatest));
  report.set_minimum(report.count() == 1 ? value : std::min(report.minimum(), value));
}

v1::TuningReport& Outbox::Collect(uint32_t section) {
  if (collected_.size() == kMostReports) {
    const v1::TuningReport& oldest = collected_.front();
    dropped_runs_ += Runs(oldest);
    if (oldest.proposal() != 0) --proposals_;
    std::erase_if(of_choices_, [&](const auto& entry) { return entry.second == first_collected_; });
    collected_.pop_front();
    ++first_collected_;
  }
  collected_.emplace_back().set_section(section);
  return collected_.back();
}

void Outbox::AddChoice(uint32_t section, const Configuration* configuration, bool failed, double value) {
  const auto key = std::make_pair(section, configuration);
  auto found = of_choices_.find(key);
  if (found == of_choices_.end()) {
    v1::TuningReport& report = Collect(section);
    report.mutable_configuration()->mutable_values()->Assign(configuration->point.begin(),
                                                             configuration->point.end());
    found = of_choices_.emplace(key, first_collected_ + collected_.size() - 1).first;
  }
  v1::TuningReport& report = collected_[found->second - first_collected_];
  if (failed)
    report.set_failures(report.failures() + 1);
  else
    AddValue(report, value);
}

void Outbox::AddProposal(uint32_t section, uint64_t proposal, const std::vector<double>& point, bool failed,
                         double value, double excess) {
  v1::TuningReport& report = Collect(section);
  report.set_proposal(proposal);
  if (!std::isnan(excess)) report.set_excess(std::clamp(excess, -kGreatest, kGreatest));
  report.mutable_configuration()->mutable_values()->Assign(point.begin(), point.end());
  if (failed)
    report.set_failures(1);
  else
    AddValue(report, value);
  ++proposals_;
}

uint64_t Outbox::Discard(uint32_t section) {
  uint64_t runs = 0;
  std::deque<v1::TuningReport> kept;
  of_choices_.clear();
  proposals_ = 0;
  for (v1::TuningReport& report : collected_) {
    if (report.section() == section) {
      runs += Runs(report);
      continue;
    }
    if (report.proposal() != 0) ++proposals_;
    kept.push_back(std::move(report));
  }
  // New numbers: those in of_choices_ are gone, and what stays is not joined with anything any more.
  first_collected_ += collected_.size();
  collected_ = std::move(kept);
  demands_.erase(section);
  return runs;
}

bool Outbox::Seal() {
  if (collected_.empty() && demands_.empty()) return true;
  if (batches_.size() >= kMostBatches) return false;
  Batch batch;
  batch.message.set_sequence(++last_sequence_);
  for (v1::TuningReport& report : collected_) {
    batch.runs += Runs(report);
    *batch.message.add_reports() = std::move(report);
  }
  for (const auto& [section, wanted] : demands_) {
    v1::ProposalDemand& demand = *batch.message.add_demands();
    demand.set_section(section);
    demand.set_wanted(wanted);
  }
  batches_.push_back(std::move(batch));
  first_collected_ += collected_.size();
  collected_.clear();
  of_choices_.clear();
  proposals_ = 0;
  demands_.clear();
  return true;
}

uint64_t Outbox::Acknowledge(uint64_t sequence) {
  uint64_t runs = 0;
  while (!batches_.empty() && batches_.front().message.sequence() <= sequence) {
    runs += batches_.front().runs;
    batches_.pop_front();
    if (sent_ > 0) --sent_;
  }
  return runs;
}

}  // namespace fusion::tuning
