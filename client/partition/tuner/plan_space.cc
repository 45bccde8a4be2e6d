#include "client/partition/tuner/plan_space.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace fusion {
namespace {

constexpr int kLeastBlockX = 32;

int PowerOfTwo(int64_t number, int least, int most) {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(number, least, most))));
}

}  // namespace

PlanSpace::PlanSpace(const LoopSpace& space, int64_t iterations) : space_(space) {
  space_.most_threads = std::max(space.most_threads, 1);
  for (const int threads : {1, space_.most_threads / 2, space_.most_threads})
    if (threads > (threads_.empty() ? 0 : threads_.back())) threads_.push_back(threads);
  if (space.has_device)
    steps_ =
        iterations >= kMostSteps
            ? kMostSteps
            : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(iterations, 1))));
}

std::vector<int64_t> PlanSpace::Sizes(int64_t work) const {
  return space_.has_device ? std::vector<int64_t>{work, steps_} : std::vector<int64_t>{work};
}

int PlanSpace::Declare(fusion_tuner* tuner, const std::string& name, int64_t work,
                       fusion_tuner_section** section) const {
  int code = fusion_tuner_section_create(tuner, name.c_str(), section);
  // Calls the function unless something has failed.
  const auto then = [&code](const std::function<int()>& call) {
    if (code == FUSION_TUNER_OK) code = call();
  };
  const auto add = [&](fusion_tuner_parameter*& parameter, double value, const char* condition) {
    then([&] { return fusion_tuner_parameter_default(parameter, value); });
    if (condition != nullptr) then([&] { return fusion_tuner_parameter_condition(parameter, condition); });
    then([&] { return fusion_tuner_section_parameter(*section, parameter); });
  };
  const std::vector<int64_t> sizes = Sizes(work);
  then([&] { return fusion_tuner_section_size(*section, "work", sizes[0]); });
  fusion_tuner_parameter* parameter = nullptr;
  if (space_.has_device) {
    then([&] { return fusion_tuner_section_size(*section, "steps", sizes[1]); });
    then([&] { return fusion_tuner_integer_range(tuner, "device_steps", 0, kMostSteps, 1, &parameter); });
    add(parameter, 0, nullptr);
    then([&] { return fusion_tuner_section_constraint(*section, "device_steps <= steps"); });
  }
  if (threads_.size() > 1) {
    std::vector<std::string> texts;
    std::vector<const char*> names;
    for (const int threads : threads_) texts.push_back(std::to_string(threads));
    for (const std::string& text : texts) names.push_back(text.c_str());
    then([&] {
      return fusion_tuner_enumeration(tuner, "host_threads", names.data(), names.size(), &parameter);
    });
    add(parameter, static_cast<double>(names.size() - 1),
        space_.has_device ? "device_steps < steps" : nullptr);
  }
  if (space_.has_device) {
    constexpr char kDevice[] = "device_steps > 0";
    then([&] { return fusion_tuner_power_of_two(tuner, "chunks", 1, LoopPlan::kMostChunks, &parameter); });
    add(parameter, 4, kDevice);
    then([&] {
      return fusion_tuner_power_of_two(tuner, "block_x", kLeastBlockX, LoopPlan::kMostBlockX, &parameter);
    });
    add(parameter, 256, kDevice);
    if (space_.has_columns) {
      then([&] { return fusion_tuner_power_of_two(tuner, "block_y", 1, LoopPlan::kMostBlockY, &parameter); });
      add(parameter, 1, kDevice);
      then([&] { return fusion_tuner_section_constraint(*section, "block_x * block_y <= 1024"); });
    }
  }
  then([&] { return fusion_tuner_section_declare(*section); });
  return code;
}

LoopPlan PlanSpace::PlanOf(const fusion_tuner_value* values) const {
  LoopPlan plan = Default();
  if (space_.has_device) {
    const int64_t device_steps = std::clamp<int64_t>((values++)->integer, 0, steps_);
    plan.device_share = static_cast<double>(device_steps) / static_cast<double>(steps_);
  }
  if (threads_.size() > 1)
    plan.threads = threads_[static_cast<size_t>(
        std::clamp<int64_t>((values++)->integer, 0, static_cast<int64_t>(threads_.size()) - 1))];
  if (space_.has_device) {
    plan.chunks = PowerOfTwo((values++)->integer, 1, LoopPlan::kMostChunks);
    plan.block_x = PowerOfTwo((values++)->integer, kLeastBlockX, LoopPlan::kMostBlockX);
    if (space_.has_columns) plan.block_y = PowerOfTwo((values++)->integer, 1, LoopPlan::kMostBlockY);
  }
  return Valid(plan);
}

LoopPlan PlanSpace::Valid(LoopPlan plan) const {
  // A share that is no number is none of the iterations.
  if (!space_.has_device || !(plan.device_share > 0)) return Host(plan.threads);
  plan.device_share = std::min(plan.device_share, 1.0);
  plan.threads = plan.device_share < 1 ? Host(plan.threads).threads : space_.most_threads;
  plan.chunks = std::clamp(plan.chunks, 1, LoopPlan::kMostChunks);
  plan.block_x = std::clamp(plan.block_x, 0, LoopPlan::kMostBlockX);
  const int most_y = std::min(LoopPlan::kMostBlockY, LoopPlan::kMostBlockThreads / std::max(plan.block_x, 1));
  plan.block_y = space_.has_columns ? std::clamp(plan.block_y, 0, most_y) : 0;
  return plan;
}

std::vector<LoopPlan> PlanSpace::Ends(const LoopPlan& like) const {
  std::vector<LoopPlan> ends = {Host(1), Default()};
  for (int chunks = 1; space_.has_device && chunks <= LoopPlan::kMostChunks; chunks *= 2)
    ends.push_back(Valid({1, chunks, space_.most_threads, like.block_x, like.block_y}));
  return ends;
}

LoopPlan PlanSpace::Host(int threads) const {
  LoopPlan plan;
  plan.threads = std::clamp(threads, 1, space_.most_threads);
  return plan;
}

}  // namespace fusion
