// Plans of loops that the online tuner chooses, through its C API.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/partition/loop_tuner.h"
#include "client/partition/tuner/plan_space.h"
#include "client/tuner/ends_check.h"
#include "client/tuner/exploration_budget.h"
#include "client/tuner/fusion_tuner.h"

namespace fusion {

// Each loop and size class has a section, and a plan in force: what is known without the tuner, until another
// plan was seen faster. Whatever else runs is explored: it may take kShare of the loop's time beyond what the
// plan in force takes (ExplorationBudget), from the first run on. What is explored are the tuner's proposals;
// the best plan that it has found, in turn with the one in force; and, once the search expects nothing better
// or has tried kTries plans in this process, in turn with both: one thread, all threads and the device alone.
// A plan that wins such a check is in force from then on.
class PlanTuner : public LoopTuner {
 public:
  static constexpr double kShare = 0.02;
  static constexpr int kTries = 300;
  // The server takes 1,000 of a program. Loops that come later run by what is known.
  static constexpr size_t kMostSections = 900;

  // Owns the tuner, whose exploration_share is kShare.
  explicit PlanTuner(fusion_tuner* tuner);
  ~PlanTuner() override;

  LoopPlan Next(const LoopKey& key, int64_t iterations, double work, const LoopPlan& known,
                const LoopSpace& space) override;
  bool IsTrial() const override { return run_.is_explored; }
  void Done(double seconds) override { End(&seconds); }
  void Failed() override { End(nullptr); }
  void Finish() override;

  // Returns "partition/FILE:FUNCTION:LINE:COLUMN", where the file is without its folder and odd characters
  // are
  // "_". A long name is shortened, and ends in a hash of the whole.
  static std::string SectionName(const LoopKey& key);

 private:
  struct Section;
  struct LoopId {
    LoopKey key;
    LoopSpace space;
    auto operator<=>(const LoopId&) const = default;
  };
  struct Loop {
    fusion_tuner_section* base = nullptr;  // null: it cannot be declared
    bool is_declared = false;
    std::map<std::pair<int, int64_t>, std::unique_ptr<Section>> sections;  // by class and steps
  };

  // mutex_ is held. Returns null for a loop that is not tuned.
  Section* SectionOf(const LoopKey& key, const LoopSpace& space, const PlanSpace& plans, int size_class);
  LoopPlan Choose(Section& section);
  // seconds: null for a run that failed.
  void End(const double* seconds);

  std::mutex mutex_;
  // mutex_ guards these fields.
  fusion_tuner* tuner_;  // null: finished
  std::map<LoopId, Loop> loops_;
  size_t sections_ = 0;
  // These are of the run between Next and its end.
  struct Run {
    Section* section = nullptr;  // null: the run is not the tuner's
    LoopPlan plan;
    LoopPlan known;
    double scale = 1;          // the time of a call that begins the class, over that of this one
    bool is_explored = false;  // the budget pays for it
    bool is_checked = false;   // section->check is told
    size_t checked = 0;        // which of its plans
    bool is_asked = false;     // the tuner has given values
    bool is_proposed = false;  // and they are the plan
  } run_;
};

}  // namespace fusion
