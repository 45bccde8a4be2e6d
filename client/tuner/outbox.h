// Reports on their way to the server: collected, sealed in numbered batches, kept until the server has stored
// them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "client/tuner/choice.h"
#include "fusion/v1/tuner.pb.h"

namespace fusion::tuning {

// Not thread safe: the background thread alone uses it.
class Outbox {
 public:
  // Batches that wait for the server's answer; more are not sealed, but collected.
  static constexpr size_t kMostBatches = 8;
  // Reports that are collected while no server answers; then the oldest are dropped. About a megabyte.
  static constexpr size_t kMostReports = 4096;

  // Adds a run with the choice in force: it is joined with others of the same configuration.
  void AddChoice(uint32_t section, const Configuration* configuration, bool failed, double value);
  // Adds a run with a proposal. `excess` is that of Sample.
  void AddProposal(uint32_t section, uint64_t proposal, const std::vector<double>& point, bool failed,
                   double value, double excess);
  void SetDemand(uint32_t section, uint32_t wanted) { demands_[section] = wanted; }
  // Drops the reports of a section that the server refused. Returns how many runs they hold.
  uint64_t Discard(uint32_t section);

  bool has_reports() const { return !collected_.empty(); }
  bool has_demands() const { return !demands_.empty(); }
  // One of the reports is of a proposal: the search waits for it.
  bool has_proposals() const { return proposals_ > 0; }
  uint64_t dropped_runs() const { return dropped_runs_; }

  // Makes a batch of everything collected; false when too many wait for an answer.
  bool Seal();
  uint64_t last_sequence() const { return last_sequence_; }

  // The server has stored batches up to this one; returns how many runs they hold.
  uint64_t Acknowledge(uint64_t sequence);
  // A new stream: all that is not acknowledged is sent again.
  void Restart() { sent_ = 0; }
  // The next batch to send on this stream, or null.
  const v1::ReportBatch* Next() const { return sent_ < batches_.size() ? &batches_[sent_].message : nullptr; }
  void MarkSent() { ++sent_; }
  bool Stored(uint64_t sequence) const {
    return batches_.empty() || batches_.front().message.sequence() > sequence;
  }
  size_t waiting() const { return batches_.size(); }

 private:
  struct Batch {
    v1::ReportBatch message;
    uint64_t runs = 0;
  };
  v1::TuningReport& Collect(uint32_t section);

  std::deque<v1::TuningReport> collected_;
  uint64_t first_collected_ = 0;  // number of collected_[0]: numbers go on when it is dropped
  std::map<std::pair<uint32_t, const Configuration*>, uint64_t> of_choices_;  // number in collected_
  size_t proposals_ = 0;                                                      // in collected_
  std::map<uint32_t, uint32_t> demands_;
  std::deque<Batch> batches_;
  size_t sent_ = 0;  // of batches_, on this stream
  uint64_t last_sequence_ = 0;
  uint64_t dropped_runs_ = 0;
};

// Joins one more value by Welford's update. A result that would be greater than the greatest number stays
// that.
void AddValue(v1::TuningReport& report, double value);

}  // namespace fusion::tuning
