// A split that the online tuner chooses, through its C API (seed 002, section 4.5).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/tuner/fusion_tuner.h"
#include "client/tuner/partitioned_loop.h"

namespace fusion {

// Two parameters: "device_steps", how many of `steps` equal parts of the iterations go to the device, 0 and `steps` included, so that
// both ends are exact; and "chunks", in how many pieces, a power of two, which means something only where the device has a part.
// The objective is the time of the whole run. The number of iterations is a size of the section: another number is searched
// for by itself, and begins where this one has come to.
class TunedPartition : public PartitionChooser {
 public:
  // The tuner outlives this. section: a name that no other loop of the program has. sizes: what else the time depends on.
  TunedPartition(fusion_tuner* tuner, std::string section, std::vector<std::pair<std::string, int64_t>> sizes = {},
                 int64_t steps = 1000)
      : tuner_(tuner), name_(std::move(section)), sizes_(std::move(sizes)), steps_(steps) {}

  // While the section cannot be declared the host does everything; message() says why it cannot.
  Partition Next(int64_t n) override {
    current_ = SectionFor(n);
    if (current_ == nullptr) return {};
    const fusion_tuner_value* values = fusion_tuner_next(current_);
    return Of(values, n);
  }
  void Done(double seconds) override {
    if (current_ != nullptr) fusion_tuner_report(current_, seconds);
  }
  void Failed() override {
    if (current_ != nullptr) fusion_tuner_fail(current_);
  }

  // "" or why the section could not be declared.
  const std::string& message() const { return message_; }
  // For a number of iterations that has run: the best known split, and whether the search expects nothing better.
  Partition Best(int64_t n) {
    fusion_tuner_value values[2] = {};
    fusion_tuner_section* const section = SectionFor(n);
    if (section == nullptr || fusion_tuner_best(section, values, 2) != FUSION_TUNER_OK) return {};
    return Of(values, n);
  }
  bool Converged(int64_t n) {
    fusion_tuner_section* const section = SectionFor(n);
    return section != nullptr && fusion_tuner_converged(section) == 1;
  }

 private:
  Partition Of(const fusion_tuner_value* values, int64_t n) const {
    const int64_t device_steps = values[0].integer;
    // n / steps first: the product of n and steps may not fit.
    return {n / steps_ * device_steps + n % steps_ * device_steps / steps_, static_cast<int>(values[1].integer)};
  }

  fusion_tuner_section* SectionFor(int64_t n) {
    const auto found = sections_.find(n);
    if (found != sections_.end()) return found->second;
    if (!message_.empty()) return nullptr;
    fusion_tuner_section* section = nullptr;
    const int code = sections_.empty() ? Declare(n, &section) : WithIterations(n, &section);
    if (code != FUSION_TUNER_OK) {
      message_ = name_ + ": " + fusion_tuner_message();
      return nullptr;
    }
    return sections_[n] = section;
  }

  int Declare(int64_t n, fusion_tuner_section** section) {
    fusion_tuner_parameter *device_steps = nullptr, *chunks = nullptr;
    int code = fusion_tuner_integer_range(tuner_, "device_steps", 0, steps_, 1, &device_steps);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_power_of_two(tuner_, "chunks", 1, kMaxPartitionChunks, &chunks);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_parameter_default(chunks, 4);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_section_create(tuner_, name_.c_str(), section);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_section_parameter(*section, device_steps);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_parameter_condition(chunks, "device_steps > 0");
    if (code == FUSION_TUNER_OK) code = fusion_tuner_section_parameter(*section, chunks);
    if (code == FUSION_TUNER_OK) code = fusion_tuner_section_size(*section, "iterations", n);
    for (const auto& [name, value] : sizes_) {
      if (code == FUSION_TUNER_OK) code = fusion_tuner_section_size(*section, name.c_str(), value);
    }
    return code == FUSION_TUNER_OK ? fusion_tuner_section_declare(*section) : code;
  }

  int WithIterations(int64_t n, fusion_tuner_section** section) {
    std::vector<int64_t> values = {n};
    for (const auto& [name, value] : sizes_) values.push_back(value);
    return fusion_tuner_section_with_sizes(sections_.begin()->second, values.data(), values.size(), section);
  }

  fusion_tuner* const tuner_;
  const std::string name_;
  const std::vector<std::pair<std::string, int64_t>> sizes_;
  const int64_t steps_;
  std::map<int64_t, fusion_tuner_section*> sections_;  // by the number of iterations
  fusion_tuner_section* current_ = nullptr;
  std::string message_;
};

}  // namespace fusion
