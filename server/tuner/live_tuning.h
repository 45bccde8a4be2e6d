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

// This is the state of a search as others see it. Immutable.
struct PublishedTuning {
  TuningState state;
  std::string provenance_tuning;
  size_t configurations = 0;
  // Candidates from the first number of an entry on were proposed in the generation that follows it; entries
  // ascend. Candidates below the first entry count as of its generation.
  std::vector<std::pair<uint64_t, uint64_t>> generations;
  uint64_t GenerationOf(uint64_t candidate) const;
};

struct LiveTuningOptions {
  double exploration_share = 0.02;   // told to programs
  size_t configurations = 100'000;   // that are searched; further ones are not proposed
  size_t convergence_points = 1000;  // of one generation; then the last one moves
};

// Thread safe. A caller gets what lies ready at the desk, at once. What the caller brings is put into an
// inbox; a task on the pool takes it from there, one at a time, and is the only one that touches the search:
// no caller waits for it.
class LiveTuning : public std::enable_shared_from_this<LiveTuning> {
 public:
  struct Parts {
    int64_t number = 0;  // TuningRecord.number
    std::string id;
    std::unique_ptr<TuningSearch> search;
    std::string provenance_tuning;  // of NEAR and OTHER_DEVICE
    uint64_t first_candidate = 1;
    // Earlier searches of this generation add these to the counts of this one.
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
  // The number of configurations that the search may know when it has seen all that was reported: each run
  // that was not proposed may be of another one.
  size_t most_configurations() const;

  // The program is told what is best, and then of every change.
  void Join(const TuningMember& member, std::shared_ptr<ProgramOutbox> outbox);
  // The proposals of the program are forgotten.
  void Leave(const TuningMember& member);
  // Sets how many proposals the program wants to have at hand.
  void SetDemand(const TuningMember& member, uint32_t wanted);
  // `measured` is in the order of the reports; the caller leaves out proposals that were made in an older
  // generation, and names them in `done`. Proposals of which the program gave nothing that can be believed
  // are in `refused`: they may be proposed again. `cost` is that of the reports.
  void Report(const TuningMember& member, std::vector<TuningMeasurement> measured, std::vector<uint64_t> done,
              std::vector<uint64_t> refused, const ExplorationCost& cost);
  // Forgets what was measured. The future has the new generation once the search has begun anew and that is
  // on its way to the store.
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
  // Publishes and stores what a change of the search's state changes, and tells the programs.
  void Follow();
  void FollowIfChanged();
  // Makes a proposal, where one is needed or will be. False: none is needed, or the search has none.
  bool MakeProposal();
  void Publish();

  // These fields are constant after construction, but for the search, which the task alone uses.
  const LiveTuningOptions options_;
  Parts parts_;
  const ParameterSpace* space_;

  ProposalDesk desk_;

  // The task alone uses these fields.
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
