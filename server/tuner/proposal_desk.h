// The desk hands out the proposals of one search: it knows which programs are connected, what each wants and
// has, and what lies ready. It never waits for the search.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "server/tuner/program_outbox.h"
#include "server/tuner/search.h"
#include "server/tuner/tuner_metrics.h"

namespace fusion {

// A section of one connected program.
struct TuningMember {
  uint64_t program = 0;  // of the connection
  uint32_t section = 0;  // as the program calls it
  friend auto operator<=>(const TuningMember&, const TuningMember&) = default;
};

// Exploring cost `excess` beyond runs of the choice; all runs together gave `total`.
struct ExplorationCost {
  double excess = 0, total = 0;
};

// Thread safe. Programs are told in the order of the calls.
class ProposalDesk {
 public:
  struct Parts {
    double exploration_share = 0;
    std::string provenance_tuning;    // of NEAR and OTHER_DEVICE
    TunerMetrics* metrics = nullptr;  // null: none
  };
  ProposalDesk(Parts parts, const TuningState& state, const ExplorationCost& cost = {});

  // The program is told what is best, and then of every change.
  void Join(const TuningMember& member, std::shared_ptr<ProgramOutbox> outbox);
  // Returns the proposals that the program had, and that nobody will run.
  std::vector<uint64_t> Leave(const TuningMember& member);
  // Sets how many proposals the program wants to have at hand.
  void SetDemand(const TuningMember& member, uint32_t wanted);
  // The program has these candidates no more; others that lie ready take their place at once. Returns those
  // of them that it had.
  std::vector<uint64_t> Done(const TuningMember& member, std::span<const uint64_t> candidates);

  // Programs are told the sum with what is best: a program that joins makes up for what was spent beyond the
  // share.
  void AddCost(const ExplorationCost& cost);
  void ForgetCost();

  // Tells the programs what has changed and returns the proposals that nobody will run: in a new generation
  // those that were handed out or lay ready, and those that lay ready when nothing better is expected.
  std::vector<uint64_t> Follow(const TuningState& state);
  // Gives the proposal to the program that waits longest without one; else the proposal lies ready.
  void Add(TuningCandidate candidate);

  struct Need {
    size_t waiting = 0;   // proposals that programs want and do not have
    size_t ready = 0;     // proposals that lie ready
    size_t programs = 0;  // programs that want any
  };
  Need need() const;

 private:
  struct Member {
    std::shared_ptr<ProgramOutbox> outbox;
    uint32_t wanted = 0;
    std::set<uint64_t> outstanding;
    uint64_t last_given = 0;  // turn
    TuningState told;
  };
  // These functions are called with mutex_ held.
  bool Wants(const Member& member) const { return member.outstanding.size() < member.wanted; }
  void GiveReady(const TuningMember& key, Member& member);
  void Tell(const TuningMember& key, Member& member, const std::vector<TuningCandidate>& proposals);

  const Parts parts_;
  mutable std::mutex mutex_;
  // mutex_ guards these fields.
  TuningState state_;
  ExplorationCost cost_;
  std::map<TuningMember, Member> members_;
  std::deque<TuningCandidate> ready_;
  uint64_t turn_ = 0;
};

}  // namespace fusion
