// The thing behind fusion_tuner: sections, threads, and the background thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tuner/background.h"
#include "client/tuner/fusion_tuner.h"
#include "client/tuner/section.h"
#include "client/tuner/tune_link.h"

namespace fusion::tuning {

struct TunerSettings {
  std::string program;
  std::string device_class;
  std::string strategy;           // "": the server's
  double exploration_share = -1;  // < 0: the server's
  std::function<void(const std::string&)> notice;
  std::string server = "the server";  // in messages
  TuneDialer dial;
  double last_flush_seconds = 1;  // how long Finish() waits for what is left to be sent
};

// Thread safe, but for the end.
class Tuner {
 public:
  // server_in_process ends after the last stream; null: it is elsewhere.
  explicit Tuner(TunerSettings settings, std::shared_ptr<void> server_in_process = nullptr);
  // Calls Finish().
  ~Tuner();
  // Sends what is left for at most a second, and ends the thread, the stream and the server in this process.
  // Runs go on with what was chosen last, and report nothing any more. Harmless when repeated.
  void Finish();
  // Replaces the end in a child process: the tuner's threads are not there, so that nothing of it can be
  // ended.
  void Abandon();
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  // ---- Declarations. The statuses are those of fusion_tuner.h.
  absl::StatusOr<Parameter*> AddParameter(v1::TuningParameter declaration);
  absl::Status ChangeParameter(Parameter& parameter, const std::function<void(v1::TuningParameter&)>& change);
  absl::StatusOr<Section*> CreateSection(const std::string& name);
  absl::Status AddToSection(Section& section, Parameter& parameter);
  absl::Status ChangeSection(Section& section,
                             const std::function<absl::Status(v1::SectionDeclaration&)>& change);
  absl::Status Declare(Section& section);
  absl::StatusOr<Section*> WithSizes(Section& section, const std::vector<int64_t>& sizes);
  // Adds the base with other sizes, and a declaration that differs in what follows from them.
  absl::StatusOr<Section*> AddSizes(Section& base, const std::vector<int64_t>& sizes,
                                    v1::SectionDeclaration declaration);
  absl::StatusOr<Section*> Find(const std::string& name);

  // ---- Runs
  void Report(Runner& runner, const Sample& sample) {
    Channel& channel = *runner.channel;
    const bool run = sample.kind != Sample::Kind::kReturned;
    if (run) Increment(channel.reported);
    if (forked()) return DropInChild(channel, run);
    // The search waits for proposals, so there is room for them when there is none for others.
    if (!channel.ring.Push(sample, sample.proposal != 0 ? 0 : ProposalQueue::kCapacity)) {
      if (run) Increment(channel.dropped);
      return;
    }
    background_.WakeIfAsleep();
  }
  // unless_unreachable: OK at once where no server answers.
  absl::Status Flush(double seconds, bool unless_unreachable = false);
  void Counters(fusion_tuner_counters_t& counters);

  // ---- For the parts
  std::mutex& mutex() { return mutex_; }
  uint64_t serial() const { return serial_; }
  const TunerSettings& settings() const { return settings_; }
  // Returns whether this is a child process: the program's values stay what they are.
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  void Forked() { forked_.store(true, std::memory_order_relaxed); }
  Channel* AddChannel();  // mutex held
  void Notice(const std::string& line) const;

  // ---- For the background thread
  std::vector<Channel*> ChannelsNow();
  std::vector<Section*> SectionsFrom(size_t first);  // declared ones, in the order of declaration
  // Frees what an ended thread had. `each` is told of its runners first.
  void Retire(Channel* channel, const std::function<void(Runner&)>& each);
  uint64_t flush_requested();
  void Flushed(uint64_t request);

  static void Increment(std::atomic<uint64_t>& counter) {  // of one writer
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  absl::StatusOr<Section*> NewSection();  // process mutex and mutex held
  void DeclareLocked(Section& section, std::shared_ptr<const ParameterSpace> space);  // mutex held
  void DropInChild(Channel& channel, bool run);
  absl::Status CheckParameter(const v1::TuningParameter& declaration) const;

  const TunerSettings settings_;
  std::shared_ptr<void> server_in_process_;  // outlives the background thread's streams
  uint64_t serial_ = 0;
  std::atomic<bool> forked_{false};
  std::atomic<bool> told_forked_{false};
  bool finished_ = false;

  std::mutex mutex_;
  std::condition_variable flushed_condition_;
  // mutex_ guards these fields.
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<std::unique_ptr<Section>> sections_;  // by id - 1
  std::vector<Section*> declared_;
  std::map<std::string, Section*> by_name_;
  std::vector<std::unique_ptr<Channel>> channels_;
  uint64_t ended_reported_ = 0, ended_dropped_ = 0, ended_explored_ = 0;  // of threads that are gone
  uint64_t flush_requested_ = 0;
  uint64_t flushed_ = 0;

  Background background_;
};

}  // namespace fusion::tuning
