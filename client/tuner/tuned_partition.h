// A split that the online tuner chooses, through its C API (Baier 2016, section 4.5).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/tuner/ends_check.h"
#include "client/tuner/fusion_tuner.h"
#include "client/tuner/partitioned_loop.h"

namespace fusion {

// The tuner has two parameters: "device_steps", how many of `steps` equal parts of the iterations (of fewer
// where there are fewer iterations) go to the device, none and all included, so that both ends are exact; and
// "chunks", in how many pieces, a power of two, which means something only where the device has a part. The
// objective is the time of the whole run. When the search expects nothing better, or after `settle_after`
// runs with what it wanted to try (times that vary much can keep it going), the loop settles: the host alone
// and the device alone, in all numbers of chunks, run some times in turn with the best known split, and take
// its place if they are faster. From then on one run in 32 is the tuner's, so that it notices when times
// change; if it does, the search goes on. The number of iterations is a size of the section: another number
// is searched for by itself, and begins where this one has come to.
class TunedPartition : public PartitionChooser {
 public:
  // The tuner outlives this. section: a name that no other loop of the program has. sizes: what else the time
  // depends on.
  TunedPartition(fusion_tuner* tuner, std::string section,
                 std::vector<std::pair<std::string, int64_t>> sizes = {}, int64_t steps = 1000,
                 int settle_after = 300)
      : tuner_(tuner),
        name_(std::move(section)),
        sizes_(std::move(sizes)),
        steps_(steps),
        settle_after_(settle_after) {}

  // While the section cannot be declared the host does everything; message() says why it cannot.
  Partition Next(int64_t n) override {
    current_ = SectionFor(n);
    if (current_ == nullptr) return {};
    Section& section = *current_;
    const Partition proposed = Of(fusion_tuner_next(section.section), n);
    const bool converged = fusion_tuner_converged(section.section) == 1;
    if (section.converged && !converged) section.explored = 0;  // times have changed
    section.converged = converged;
    const Partition best = Searched(section, n);
    if (!converged && section.explored < settle_after_) {
      section.explored += !Same(proposed, best);
      section.ends.reset();
      return Chosen(EndsCheck::kFound, proposed, proposed);
    }
    if (section.ends == nullptr) {
      section.ends = std::make_unique<EndsCheck>(Rivals(best, n));
    }
    if (!section.ends->decided())
      return Chosen(section.ends->Next(), Split(section.ends->Next(), best, n), proposed);
    if (++section.runs % kRunsForTheTuner == 0) return Chosen(EndsCheck::kFound, proposed, proposed);
    return Chosen(section.ends->winner(), Split(section.ends->winner(), best, n), proposed);
  }
  void Done(double seconds) override {
    if (current_ == nullptr) return;
    if (current_->ends != nullptr && !current_->ends->decided()) current_->ends->Add(kind_, seconds);
    if (is_proposed_) fusion_tuner_report(current_->section, seconds);
    if (!is_proposed_) fusion_tuner_cancel(current_->section);
  }
  void Failed() override {
    if (current_ == nullptr) return;
    if (is_proposed_) fusion_tuner_fail(current_->section);
    if (!is_proposed_) fusion_tuner_cancel(current_->section);
  }

  // Returns "" or why the section could not be declared.
  const std::string& message() const { return message_; }
  // Returns the split in force for a number of iterations that has run.
  Partition Best(int64_t n) {
    Section* const section = SectionFor(n);
    if (section == nullptr) return {};
    return Split(section->ends != nullptr ? section->ends->winner() : EndsCheck::kFound,
                 Searched(*section, n), n);
  }
  // Returns whether the ends have been compared with what was found.
  bool Settled(int64_t n) {
    Section* const section = SectionFor(n);
    return section != nullptr && section->ends != nullptr && section->ends->decided();
  }
  // Returns whether the search expects nothing better.
  bool Converged(int64_t n) {
    Section* const section = SectionFor(n);
    return section != nullptr && fusion_tuner_converged(section->section) == 1;
  }

 private:
  Partition Of(const fusion_tuner_value* values, int64_t n) const {
    // There are not more steps than iterations, or several values would mean the same split and the search
    // would compare them.
    const int64_t steps = std::min(steps_, n), device_steps = values[0].integer;
    // n / steps comes first: the product of n and steps may not fit.
    return {n / steps * device_steps + n % steps * device_steps / steps, static_cast<int>(values[1].integer)};
  }

  struct Section {
    fusion_tuner_section* section = nullptr;
    std::unique_ptr<EndsCheck> ends;  // null: the search goes on
    bool converged = false;
    int explored = 0;
    int64_t runs = 0;  // since the ends were compared
  };
  static constexpr int64_t kRunsForTheTuner = 32;

  static bool Same(const Partition& a, const Partition& b) {
    return a.device_iterations == b.device_iterations && (a.chunks == b.chunks || a.device_iterations == 0);
  }
  Partition Chosen(size_t kind, const Partition& split, const Partition& proposed) {
    kind_ = kind;
    // The tuner is told what came of the values that it gave, and of no others.
    is_proposed_ = Same(split, proposed);
    return split;
  }
  Partition Searched(const Section& section, int64_t n) const {
    fusion_tuner_value values[2] = {};
    return fusion_tuner_best(section.section, values, 2) == FUSION_TUNER_OK ? Of(values, n) : Partition{};
  }
  // Rival 1 is the host alone, the others the device alone in 1, 2, 4 ... chunks: the best number of chunks
  // for a part of the iterations need not be the best for all.
  static Partition Split(size_t kind, const Partition& best, int64_t n) {
    if (kind == EndsCheck::kFound) return best;
    return kind == 1 ? Partition{0, 1} : Partition{n, 1 << (kind - 2)};
  }
  static std::vector<bool> Rivals(const Partition& best, int64_t n) {
    std::vector<bool> rivals;
    for (size_t kind = 1; kind == 1 || 1 << (kind - 2) <= kMaxPartitionChunks; ++kind)
      rivals.push_back(!Same(Split(kind, best, n), best));
    return rivals;
  }

  Section* SectionFor(int64_t n) {
    const auto found = sections_.find(n);
    if (found != sections_.end()) return &found->second;
    if (!message_.empty()) return nullptr;
    fusion_tuner_section* section = nullptr;
    const int code = sections_.empty() ? Declare(n, &section) : WithIterations(n, &section);
    if (code != FUSION_TUNER_OK) {
      message_ = name_ + ": " + fusion_tuner_message();
      return nullptr;
    }
    sections_[n].section = section;
    return &sections_[n];
  }

  int Declare(int64_t n, fusion_tuner_section** section) {
    fusion_tuner_parameter *device_steps = nullptr, *chunks = nullptr;
    int code = fusion_tuner_integer_range(tuner_, "device_steps", 0, steps_, 1, &device_steps);
    if (code == FUSION_TUNER_OK)
      code = fusion_tuner_power_of_two(tuner_, "chunks", 1, kMaxPartitionChunks, &chunks);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_parameter_default(chunks, 4);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_section_create(tuner_, name_.c_str(), section);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_section_parameter(*section, device_steps);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_parameter_condition(chunks, "device_steps > 0");
    if (code == FUSION_TUNER_OK) code = fusion_tuner_section_parameter(*section, chunks);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_section_size(*section, "iterations", n);
    for (const auto& [name, value] : sizes_) {
      if (code == FUSION_TUNER_OK) code = fusion_tuner_section_size(*section, name.c_str(), value);
    }
    if (code == FUSION_TUNER_OK)
      code = fusion_tuner_section_constraint(*section, "device_steps <= iterations");
    return code == FUSION_TUNER_OK ? fusion_tuner_section_declare(*section) : code;
  }

  int WithIterations(int64_t n, fusion_tuner_section** section) {
    std::vector<int64_t> values = {n};
    for (const auto& [name, value] : sizes_) values.push_back(value);
    return fusion_tuner_section_with_sizes(sections_.begin()->second.section, values.data(), values.size(),
                                           section);
  }

  fusion_tuner* const tuner_;
  const std::string name_;
  const std::vector<std::pair<std::string, int64_t>> sizes_;
  const int64_t steps_;
  const int settle_after_;
  std::map<int64_t, Section> sections_;  // by the number of iterations
  // These fields are of the run between Next and Done.
  Section* current_ = nullptr;
  size_t kind_ = EndsCheck::kFound;
  bool is_proposed_ = true;
  std::string message_;
};

}  // namespace fusion
