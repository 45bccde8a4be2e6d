// Hands out the proposals of one search: who is connected, what each wants and has, what lies ready. Never
// waits for the search.
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

// What exploring cost beyond runs of the choice, of all that runs gave.
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
  // The proposals that it had, and nobody will run.
  std::vector<uint64_t> Leave(const TuningMember& member);
  // How many proposals it wants to have at hand.
  void SetDemand(const TuningMember& member, uint32_t wanted);
  // It has them no more; others that lie ready take their place at once. Those of them that it had.
  std::vector<uint64_t> Done(const TuningMember& member, std::span<const uint64_t> candidates);

  // Programs are told the sum with what is best: who joins makes up for what was spent beyond the share.
  void AddCost(const ExplorationCost& cost);
  void ForgetCost();

  // The programs are told what has changed. What was handed out and lay ready is void in a new generation,
  // what lay ready when nothing better is expected: the proposals that nobody will run.
  std::vector<uint64_t> Follow(const TuningState& state);
  // For whoever waits longest without; else it lies ready.
  void Add(TuningCandidate candidate);

  struct Need {
    size_t waiting = 0;   // proposals that programs want and do not have
    size_t ready = 0;     // that lie ready
    size_t programs = 0;  // that want any
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
  // All with mutex_ held.
  bool Wants(const Member& member) const { return member.outstanding.size() < member.wanted; }
  void GiveReady(const TuningMember& key, Member& member);
  void Tell(const TuningMember& key, Member& member, const std::vector<TuningCandidate>& proposals);

  const Parts parts_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  TuningState state_;
  ExplorationCost cost_;
  std::map<TuningMember, Member> members_;
  std::deque<TuningCandidate> ready_;
  uint64_t turn_ = 0;
};

}  // namespace fusion
