#include "server/skeletons/shared/host_costs.h"

#include <algorithm>

namespace fusion {

double HostEntryOperations(const v1::TargetProfile& profile, const ElementaryFunction& function,
                           double flops) {
  return std::max(profile.lane_operation().value() * flops, function.host_operations);
}

double HostFactorOfLanes(const v1::TargetProfile& profile, int lanes) {
  constexpr int kManyLanes = 512;
  return lanes > kManyLanes ? profile.many_lanes_factor().value() : 1;
}

}  // namespace fusion
