// A section of a program: its parameters, what is chosen for it, and what its runs do.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/tuner/choice.h"
#include "client/tuner/exploration_budget.h"
#include "client/tuner/proposal_queue.h"
#include "client/tuner/thread_state.h"
#include "fusion/v1/tuner.pb.h"
#include "server/tuner/parameter_space.h"

namespace fusion::tuning {

class Section;
class Tuner;

// The thing behind fusion_tuner_parameter.
struct Parameter {
  Tuner* tuner = nullptr;
  v1::TuningParameter declaration;  // guarded by the tuner's mutex
  Section* section = nullptr;       // guarded by the tuner's mutex
};

// The thing behind fusion_tuner_run: a run that may end in another thread.
struct RunRecord {
  Assignment assignment;
  uint64_t start_nanoseconds = 0;
  uint64_t serial = 0;  // counts ends: tells a run from one that had the record before
};

class Section {
 public:
  Section(Tuner* tuner, uint64_t serial, size_t slot, uint32_t id);

  // These fields are constant after construction.
  Tuner* const tuner;
  const uint64_t serial;  // unique in the process
  const size_t slot;      // in ThreadState::sections
  const uint32_t id;      // on the wire

  // The tuner's mutex guards these fields until declared(), they are constant then.
  v1::SectionDeclaration declaration;
  Section* base = nullptr;                            // the same section with the first sizes; null: none
  std::map<std::vector<int64_t>, Section*> by_sizes;  // of a base: guarded by the tuner's mutex at all times
  std::string name() const { return declaration.section(); }

  // The space is that of the declaration. The tuner's mutex is held.
  void Declare(std::shared_ptr<const ParameterSpace> space, double default_share);
  // The functions below may be called only of a declared section.
  bool declared() const { return declared_.load(std::memory_order_acquire); }
  const ParameterSpace& space() const { return *space_; }
  bool maximize() const { return maximize_; }
  bool of_time() const { return of_time_; }

  // ---- Runs. Without a lock, and without allocations after the first call of a thread.

  // Returns the runner of this thread.
  Runner& ThisThread() {
    ThreadState& thread = ThreadState::Current();
    if (slot < thread.sections.size() && thread.sections[slot].serial == serial)
      return *thread.sections[slot].runner;
    return Attach(thread);
  }
  // Assigns the values of the next run.
  void Assign(Runner& runner, Assignment& assignment);
  // The run has ended. `value` is what it took; for a run that failed, what it took until then.
  void End(Runner& runner, Assignment& assignment, Sample::Kind kind, double value);
  RunRecord* TakeRecord(Runner& runner);
  void GiveRecord(Runner& runner, RunRecord* record);
  // Takes back what a thread had that is gone. The tuner's mutex is held.
  void TakeBack(Runner& runner);

  // ---- What the server says. The tuner's mutex is held.

  absl::Status status() const { return status_; }
  void SetStatus(const absl::Status& status) { status_ = status; }
  const Choice& choice() const { return choice_; }
  void SetChoice(const Choice& choice);
  // The one configuration with these values, which the parameters may have.
  const Configuration* Intern(const std::vector<double>& point);

  // ---- For the background thread, and for runs.
  ProposalQueue& proposals() { return *proposals_; }
  ExplorationBudget& budget() { return budget_; }
  void ValuesOf(const std::vector<double>& point, fusion_tuner_value* values) const;

 private:
  Runner& Attach(ThreadState& thread);
  bool AssignProposal(Runner& runner, Assignment& assignment);
  void PayIn(Runner& runner, const Assignment& assignment, Sample::Kind kind, double value);

  // These fields are constant once the section is declared.
  std::shared_ptr<const ParameterSpace> space_;
  bool maximize_ = false;
  bool of_time_ = true;
  std::atomic<bool> declared_{false};

  PublishedChoice published_;
  std::unique_ptr<ProposalQueue> proposals_;
  ExplorationBudget budget_;

  // The tuner's mutex guards these fields.
  absl::Status status_;
  Choice choice_;
  std::map<std::vector<double>, std::unique_ptr<Configuration>> configurations_;
  std::vector<std::unique_ptr<RunRecord>> records_;
  std::vector<RunRecord*> spare_records_;
};

}  // namespace fusion::tuning
