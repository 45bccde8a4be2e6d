// One section in one context that programs tune now: its search, which works while programs are served from
// what lies ready.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "db/store/records.h"
#include "server/tuner/parameter_space.h"
#include "server/tuner/program_outbox.h"
#include "server/tuner/proposal_desk.h"
#include "server/tuner/search.h"
#include "server/tuner/tuner_metrics.h"

namespace fusion {

// What a search has come to, as others see it. Immutable.
struct PublishedTuning {
  TuningState state;
  std::string provenance_tuning;
  size_t configurations = 0;
  // Candidates from a number on were proposed in that generation, ascending. Those below the first count as
  // of the first.
  std::vector<std::pair<uint64_t, uint64_t>> generations;
  uint64_t GenerationOf(uint64_t candidate) const;
};

struct LiveTuningOptions {
  double exploration_share = 0.02;   // told to programs
  size_t configurations = 100'000;   // that are searched; further ones are not proposed
  size_t convergence_points = 1000;  // of one generation; then the last one moves
};

// Thread safe. A caller gets what lies ready at the desk, at once. What it brings is put into an inbox; a
// task on the pool takes it from there, one at a time, and is the only one that touches the search: no caller
// waits for it.
class LiveTuning : public std::enable_shared_from_this<LiveTuning> {
 public:
  struct Parts {
    int64_t number = 0;  // TuningRecord.number
    std::string id;
    std::unique_ptr<TuningSearch> search;
    std::string provenance_tuning;  // of NEAR and OTHER_DEVICE
    uint64_t first_candidate = 1;
    // What earlier searches of this generation add to the counts of this one.
    uint64_t evaluations_before = 0, drifts_before = 0;
    ExplorationCost cost_before;
    size_t convergence_points = 0;
    boost::asio::thread_pool* pool = nullptr;
    std::function<void(TuningProgressUpdate)> store;  // must not block
    TunerMetrics* metrics = nullptr;                  // null: none
  };
  LiveTuning(Parts parts, const LiveTuningOptions& options);

  const std::string& id() const { return parts_.id; }
  int64_t number() const { return parts_.number; }
  const ParameterSpace& space() const { return *space_; }
  std::shared_ptr<const PublishedTuning> published() const;
  // How many the search may know when it has seen all that was reported: each run that was not proposed may
  // be of another.
  size_t most_configurations() const;

  // The program is told what is best, and then of every change.
  void Join(const TuningMember& member, std::shared_ptr<ProgramOutbox> outbox);
  // Its proposals are forgotten.
  void Leave(const TuningMember& member);
  // How many proposals it wants to have at hand.
  void SetDemand(const TuningMember& member, uint32_t wanted);
  // `measured` in the order of the reports; of proposals that were made in an older generation it is left out
  // by the caller, who names them in `done`. Proposals of which the program gave nothing that can be believed
  // are in `refused`: they may be proposed again. `cost` is that of the reports.
  void Report(const TuningMember& member, std::vector<TuningMeasurement> measured, std::vector<uint64_t> done,
              std::vector<uint64_t> refused, const ExplorationCost& cost);
  // Forgets what was measured. Ready when the search has begun anew, with the new generation, and that is on
  // its way to the store.
  std::future<uint64_t> Reset();

 private:
  struct Event {
    std::vector<TuningMeasurement> measured;
    std::vector<uint64_t> forgotten;
    std::shared_ptr<std::promise<uint64_t>> reset;  // null: not asked for
  };

  void Post(Event event);
  void Run();
  void Handle(const Event& event);
  // What follows from a change of the search's state.
  void Follow();
  void FollowIfChanged();
  // Makes a proposal, where one is needed or will be. False: none is, or the search has none.
  bool MakeProposal();
  void Publish();

  // Constant after construction, but for what the task alone uses: the search.
  const LiveTuningOptions options_;
  Parts parts_;
  const ParameterSpace* space_;

  ProposalDesk desk_;

  // Used by the task alone.
  bool dry_ = false;    // the search had no proposal, and nothing has come since
  bool reset_ = false;  // to be told to the store
  uint64_t last_candidate_ = 0;
  TuningState known_;  // as of the last Follow
  std::vector<std::pair<uint64_t, uint64_t>> generations_;
  std::vector<TuningConvergenceRecord> new_points_;
  size_t points_ = 0;  // of this generation

  mutable std::mutex mutex_;
  std::vector<Event> inbox_;                          // guarded by mutex_
  bool scheduled_ = false;                            // guarded by mutex_
  std::shared_ptr<const PublishedTuning> published_;  // guarded by mutex_
  size_t unproposed_ = 0;                             // reported, and not in published_; guarded by mutex_
};

}  // namespace fusion
