#include "server/skeletons/shared/host_costs.h"

#include <algorithm>

namespace fusion {
namespace {

// An operation of a lane, between loads and stores of its arrays.
constexpr double kOperation = 3.4;

}  // namespace

double HostEntryOperations(const ElementaryFunction& function, double flops) {
  return std::max(kOperation * flops, function.host_operations);
}

double HostFactorOfLanes(int lanes) {
  constexpr int kManyLanes = 512;
  constexpr double kOfManyLanes = 1.5;
  return lanes > kManyLanes ? kOfManyLanes : 1;
}

}  // namespace fusion
