#include "server/skeletons/element/allocate.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace fusion {
namespace {

bool Collide(const ActiveInterval& a, const ActiveInterval& b) {
  return a.first <= b.last && b.first <= a.last && a.size > 0 && b.size > 0;
}

std::vector<int> OrderOfFirstUse(const std::vector<ActiveInterval>& variables) {
  std::vector<int> order(variables.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return variables[a].first < variables[b].first; });
  return order;
}

// Builds allocations from the bottom up: (offset, rank) of the variables placed one after another increases.
// A variable comes to rest on what is placed below it, so its offset is the height over its positions.
class AllocationSearch {
 public:
  AllocationSearch(const std::vector<ActiveInterval>& variables, int64_t max_steps)
      : variables_(variables),
        bound_(AllocationLowerBound(variables)),
        steps_left_(max_steps),
        best_(AllocateGreedy(variables)),
        offsets_(variables.size(), 0) {
    int positions = 0;
    for (size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].size > 0) unplaced_.push_back(static_cast<int>(i));
      positions = std::max(positions, variables[i].last + 1);
    }
    // Ranks: large areas first.
    std::stable_sort(unplaced_.begin(), unplaced_.end(), [&](int a, int b) { return Area(a) > Area(b); });
    height_.assign(positions, 0);
    to_come_.assign(positions, 0);
    for (const ActiveInterval& variable : variables)
      for (int at = variable.first; at <= variable.last; ++at) to_come_[at] += variable.size;
  }

  Allocation Run() {
    if (best_.size > bound_) Extend(0, -1);
    best_.proved_optimal = best_.size == bound_ || steps_left_ >= 0;
    return best_;
  }

 private:
  struct Candidate {
    int64_t offset;
    int rank;
    bool operator<(const Candidate& other) const {
      return std::tie(offset, rank) < std::tie(other.offset, other.rank);
    }
  };

  int64_t Area(int variable) const {
    return variables_[variable].size * (variables_[variable].last - variables_[variable].first + 1);
  }
  bool done() const { return best_.size == bound_ || steps_left_ < 0; }

  void Extend(int64_t last_offset, int last_rank) {
    if (placed_ == static_cast<int>(unplaced_.size())) {
      best_.offsets = offsets_;
      best_.size = *std::max_element(height_.begin(), height_.end());
      return;
    }
    std::vector<Candidate> candidates;
    const ActiveInterval* before = nullptr;
    for (size_t rank = 0; rank < unplaced_.size(); ++rank) {
      if (unplaced_[rank] < 0) continue;
      const ActiveInterval& variable = variables_[unplaced_[rank]];
      if (before && *before == variable) continue;  // of equal variables the first one
      before = &variable;
      const int64_t offset =
          *std::max_element(height_.begin() + variable.first, height_.begin() + variable.last + 1);
      const Candidate candidate{offset, static_cast<int>(rank)};
      if (Candidate{last_offset, last_rank} < candidate) candidates.push_back(candidate);
    }
    std::sort(candidates.begin(), candidates.end());
    for (const Candidate& candidate : candidates) {
      if (--steps_left_ < 0) return;
      const int index = unplaced_[candidate.rank];
      const ActiveInterval& variable = variables_[index];
      const std::vector<int64_t> heights(height_.begin() + variable.first,
                                         height_.begin() + variable.last + 1);
      for (int at = variable.first; at <= variable.last; ++at) {
        height_[at] = candidate.offset + variable.size;
        to_come_[at] -= variable.size;
      }
      offsets_[index] = candidate.offset;
      unplaced_[candidate.rank] = -1;
      ++placed_;
      if (LeastSize(candidate.offset) < best_.size) Extend(candidate.offset, candidate.rank);
      --placed_;
      unplaced_[candidate.rank] = index;
      std::copy(heights.begin(), heights.end(), height_.begin() + variable.first);
      for (int at = variable.first; at <= variable.last; ++at) to_come_[at] += variable.size;
      if (done()) return;
    }
  }

  // Returns the least size of every allocation that goes on from here. What is still to come lies above
  // `offset`, so a gap below is lost.
  int64_t LeastSize(int64_t offset) const {
    int64_t least = 0;
    for (size_t at = 0; at < height_.size(); ++at) {
      const int64_t from = to_come_[at] > 0 ? std::max(height_[at], offset) : height_[at];
      least = std::max(least, from + to_come_[at]);
    }
    return least;
  }

  const std::vector<ActiveInterval>& variables_;
  const int64_t bound_;
  int64_t steps_left_;
  Allocation best_;
  std::vector<int64_t> offsets_;
  std::vector<int> unplaced_;  // by rank: the variable, or -1 once placed
  int placed_ = 0;
  std::vector<int64_t> height_;   // by position: top of what is placed
  std::vector<int64_t> to_come_;  // by position: sizes of the variables not placed
};

}  // namespace

int64_t AllocationLowerBound(const std::vector<ActiveInterval>& variables) {
  int64_t bound = 0;
  // The sum changes upwards only where a variable begins.
  for (const ActiveInterval& at : variables) {
    int64_t active = 0;
    for (const ActiveInterval& variable : variables)
      if (variable.first <= at.first && at.first <= variable.last) active += variable.size;
    bound = std::max(bound, active);
  }
  return bound;
}

Allocation AllocateGreedy(const std::vector<ActiveInterval>& variables) {
  Allocation result;
  result.offsets.assign(variables.size(), 0);
  std::vector<int> placed;
  for (int index : OrderOfFirstUse(variables)) {
    std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end)
    for (int other : placed)
      if (Collide(variables[other], variables[index]))
        taken.emplace_back(result.offsets[other], result.offsets[other] + variables[other].size);
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + variables[index].size <= begin) break;
      offset = std::max(offset, end);
    }
    result.offsets[index] = offset;
    result.size = std::max(result.size, offset + variables[index].size);
    placed.push_back(index);
  }
  result.proved_optimal = result.size == AllocationLowerBound(variables);
  return result;
}

Allocation AllocateExact(const std::vector<ActiveInterval>& variables, const AllocateOptions& options) {
  return AllocationSearch(variables, options.max_steps).Run();
}

}  // namespace fusion
