#include "client/partition/tuner/plan_tuner.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "client/partition/size_class.h"
#include "client/partition/stable_hash.h"

namespace fusion {
namespace {

// Where the tuner's best is not in force, one run in so many is its best all the same: it sees when times
// change.
constexpr int kRunsForTheTuner = 32;
constexpr double kFailedSeconds = 1e30;  // slower than any other

}  // namespace

struct PlanTuner::Section {
  Section(fusion_tuner_section* the_section, const PlanSpace& the_plans, double the_work)
      : section(the_section), plans(the_plans), work(the_work), compared(the_plans.Default()) {}

  LoopPlan Best() const {
    fusion_tuner_value values[PlanSpace::kMostParameters] = {};
    return fusion_tuner_best(section, values, PlanSpace::kMostParameters) == FUSION_TUNER_OK
               ? plans.PlanOf(values)
               : plans.Default();
  }
  // Begins to run the first of `rivals`, which the tuner has found, in turn with the others.
  void Compare(const std::vector<LoopPlan>& plans_to_compare) {
    rivals.clear();
    for (const LoopPlan& plan : plans_to_compare)
      if (std::find(rivals.begin(), rivals.end(), plan) == rivals.end()) rivals.push_back(plan);
    check =
        rivals.size() < 2 ? nullptr : std::make_unique<EndsCheck>(std::vector<bool>(rivals.size() - 1, true));
  }

  fusion_tuner_section* const section;
  const PlanSpace plans;
  const double work;  // that the class begins with
  LoopPlan in_force;
  bool follows_known = true;  // in_force is what is known without the tuner, whatever that is
  LoopPlan compared;          // the tuner's best that was compared last; the default need not be
  double usual = 0;           // seconds of the plan in force; 0: not known
  tuning::ExplorationBudget budget;
  std::unique_ptr<EndsCheck> check;  // null: nothing is compared
  std::vector<LoopPlan> rivals;      // as the check numbers them
  bool was_converged = false;
  bool are_ends_compared = false;
  int tries = 0;
  int64_t runs = 0;
};

PlanTuner::PlanTuner(fusion_tuner* tuner) : tuner_(tuner) {}

PlanTuner::~PlanTuner() { Finish(); }

std::string PlanTuner::SectionName(const LoopKey& key) {
  const size_t column = key.place.rfind(':');
  const size_t line =
      column == key.place.npos || column == 0 ? key.place.npos : key.place.rfind(':', column - 1);
  const std::string file = key.place.substr(0, line);
  std::string name = "partition/" + file.substr(file.rfind('/') + 1) + ":" + key.function +
                     (line == key.place.npos ? "" : key.place.substr(line));
  constexpr size_t kLongest = 190;  // the tuner takes 200 bytes
  if (name.size() > kLongest) {
    StableHash hash;
    hash.Add(name.data(), name.size());
    char digits[18];
    std::snprintf(digits, sizeof(digits), "~%016llx", static_cast<unsigned long long>(hash.hash()));
    name = name.substr(0, kLongest - 17) + digits;
  }
  for (char& each : name)
    if (each < ' ' || each > '~') each = '_';
  return name;
}

PlanTuner::Section* PlanTuner::SectionOf(const LoopKey& key, const LoopSpace& space, const PlanSpace& plans,
                                         int size_class) {
  if (!plans.HasChoice()) return nullptr;
  Loop& loop = loops_[{key, space}];
  const auto found = loop.sections.find({size_class, plans.steps()});
  if (found != loop.sections.end()) return found->second.get();
  if (sections_ >= kMostSections) return nullptr;
  const double work = WorkOfSizeClass(size_class);
  const auto work_size = static_cast<int64_t>(work);
  fusion_tuner_section* section = nullptr;
  if (!loop.is_declared) {
    loop.is_declared = true;
    // A loop that meets the device later has other parameters then.
    const std::string name = SectionName(key) + (space.has_device ? "" : ":host");
    if (plans.Declare(tuner_, name, work_size, &section) == FUSION_TUNER_OK) loop.base = section;
  } else if (loop.base != nullptr) {
    const std::vector<int64_t> sizes = plans.Sizes(work_size);
    fusion_tuner_section_with_sizes(loop.base, sizes.data(), sizes.size(), &section);
  }
  if (loop.base == nullptr || section == nullptr) return nullptr;
  ++sections_;
  std::unique_ptr<Section>& added = loop.sections[{size_class, plans.steps()}];
  added = std::make_unique<Section>(section, plans, work);
  return added.get();
}

LoopPlan PlanTuner::Next(const LoopKey& key, int64_t iterations, double work, const LoopPlan& known,
                         const LoopSpace& space) {
  std::lock_guard<std::mutex> lock(mutex_);
  run_ = Run{};
  try {
    const PlanSpace plans(space, iterations);
    run_.known = plans.Valid(known);
    run_.section = tuner_ == nullptr ? nullptr : SectionOf(key, space, plans, SizeClassOf(work));
    if (run_.section == nullptr) return run_.known;
    run_.scale = run_.section->work / std::max(work, 1.0);
    return run_.plan = Choose(*run_.section);
  } catch (const std::exception&) {  // there is no memory
    run_ = Run{};
    return known;
  }
}

LoopPlan PlanTuner::Choose(Section& section) {
  if (section.follows_known) section.in_force = run_.known;
  const LoopPlan best = section.Best();
  const bool is_converged = fusion_tuner_converged(section.section) == 1;
  if (section.was_converged && !is_converged) {  // times have changed
    section.tries = 0;
    section.are_ends_compared = false;
  }
  section.was_converged = is_converged;

  if (section.check == nullptr) {
    if (!section.are_ends_compared && (is_converged || section.tries >= kTries)) {
      std::vector<LoopPlan> plans = {best, section.in_force, run_.known};
      const std::vector<LoopPlan> ends = section.plans.Ends(best.device_share > 0 ? best : run_.known);
      plans.insert(plans.end(), ends.begin(), ends.end());
      section.Compare(plans);
      section.are_ends_compared = true;
      section.compared = best;
    } else if (best != section.compared) {
      section.Compare({best, section.in_force});
      section.compared = best;
    }
  }

  // The first runs show what the plan in force takes.
  run_.is_explored = section.usual > 0 && section.budget.TryBegin(section.usual);
  LoopPlan plan = section.in_force;
  if (section.check != nullptr) {
    run_.checked = section.check->Next();
    const LoopPlan& rival = section.rivals[run_.checked];
    run_.is_checked = run_.is_explored || rival == section.in_force;
    if (run_.is_checked) plan = rival;
  } else if (run_.is_explored || best == section.in_force) {
    const LoopPlan proposed = section.plans.PlanOf(fusion_tuner_next(section.section));
    run_.is_asked = true;
    const bool is_other = proposed != best;
    // The default is its best also where no server has said anything.
    const bool is_due = best != section.plans.Default() && ++section.runs % kRunsForTheTuner == 0;
    if (run_.is_explored && (is_other || is_due)) plan = proposed;
    section.tries += is_other && plan == proposed;
    run_.is_proposed = plan == proposed;
  }
  if (run_.is_explored && plan == section.in_force) {
    section.budget.Cancelled();
    run_.is_explored = false;
  }
  return plan;
}

void PlanTuner::End(const double* seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section* const section = std::exchange(run_.section, nullptr);
  if (tuner_ == nullptr || section == nullptr) return;
  const double scaled = seconds == nullptr ? 0 : *seconds * run_.scale;
  const bool is_good = scaled > 0 && scaled < kFailedSeconds;
  if (is_good) section->budget.PayIn(kShare * scaled, section->usual);
  // A failed run gave nothing for about what a run takes.
  if (run_.is_explored) section->budget.Ended(is_good ? scaled - section->usual : section->usual);
  if (run_.is_asked &&
      !(run_.is_proposed && (is_good ? fusion_tuner_report(section->section, scaled)
                                     : fusion_tuner_fail(section->section)) == FUSION_TUNER_OK))
    fusion_tuner_cancel(section->section);
  if (run_.plan == section->in_force) {
    if (is_good) {
      section->usual += (scaled - section->usual) / (section->usual > 0 ? 8 : 1);
    } else {
      section->follows_known = true;
    }
  }
  if (!run_.is_checked) return;
  try {
    section->check->Add(run_.checked, is_good ? scaled : kFailedSeconds);
    // Where what was found cannot be done there is nothing to compare with.
    if (!is_good && run_.checked == EndsCheck::kFound) section->check = nullptr;
  } catch (const std::exception&) {  // there is no memory
    section->check = nullptr;
  }
  if (section->check == nullptr || !section->check->decided()) return;
  const LoopPlan& winner = section->rivals[section->check->winner()];
  if (winner != section->in_force) section->usual = 0;
  section->in_force = winner;
  section->follows_known = winner == run_.known;
  section->check = nullptr;
}

void PlanTuner::Finish() {
  fusion_tuner* tuner = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    tuner = std::exchange(tuner_, nullptr);
  }
  fusion_tuner_destroy(tuner);
}

}  // namespace fusion
