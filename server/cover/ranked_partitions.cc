#include "server/cover/ranked_partitions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace fusion {

RankedPartitions::RankedPartitions(PartitionSolver& solver) : solver_(solver) { Push({}); }

bool RankedPartitions::Later::operator()(const Part& a, const Part& b) const {
  return std::tie(a.seconds, b.solved, a.number) > std::tie(b.seconds, a.solved, b.number);
}

void RankedPartitions::Push(Part part) {
  part.number = parts_made_++;
  parts_.push(std::move(part));
}

double RankedPartitions::NextBound() const {
  const double next = parts_.empty() ? std::numeric_limits<double>::infinity() : parts_.top().seconds;
  return given_ ? std::min(next, given_->seconds) : next;
}

std::optional<Partition> RankedPartitions::Next() {
  if (given_) Split(*std::exchange(given_, std::nullopt));
  while (!parts_.empty()) {
    Part part = parts_.top();
    parts_.pop();
    if (part.solved) {
      given_ = part;
      return std::move(part.partition);
    }
    if (part.lost) {
      lost_bound_ = std::min(lost_bound_, part.seconds);
      continue;
    }
    PartitionResult result = solver_.Solve(part.branch);
    if (part.branch.forced.empty() && part.branch.forbidden.empty())
      first_is_optimal_ = result.outcome == PartitionOutcome::kOptimal;
    if (result.outcome == PartitionOutcome::kNone) continue;
    if (result.outcome != PartitionOutcome::kOptimal) lost_bound_ = std::min(lost_bound_, part.seconds);
    if (result.outcome == PartitionOutcome::kUnknown) continue;
    part.solved = true;
    part.partition = std::move(result.partition);
    part.seconds = part.partition.seconds;
    Push(std::move(part));
  }
  return std::nullopt;
}

void RankedPartitions::Split(const Part& part) {
  if (!solver_.InTime()) {
    Part lost;
    lost.seconds = part.seconds;
    lost.lost = true;
    return Push(std::move(lost));
  }
  solver_.UpdatePrices();
  Branch branch = part.branch;
  for (int set : part.partition.sets) {
    if (std::find(part.branch.forced.begin(), part.branch.forced.end(), set) != part.branch.forced.end())
      continue;
    Part child;
    child.branch = branch;
    child.branch.forbidden.push_back(set);
    child.seconds = std::max(part.seconds, solver_.LowerBound(child.branch));
    if (child.seconds < INFINITY) Push(std::move(child));
    branch.forced.push_back(set);
  }
}

}  // namespace fusion
