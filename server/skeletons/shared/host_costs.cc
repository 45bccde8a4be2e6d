#include "server/skeletons/shared/host_costs.h"

#include <algorithm>
#include <map>
#include <string>

namespace fusion {
namespace {

// An operation of a lane, between loads and stores of its arrays.
constexpr double kOperation = 3.4;

}  // namespace

double HostEntryOperations(const std::string& function, double flops) {
  static const std::map<std::string, double> kOperations = {
      {"exp", 210},  {"log", 250}, {"tanh", 800}, {"erf", 1500},    {"div", 15},  {"coldiv", 15},
      {"rowdiv", 5}, {"vdiv", 15}, {"recip", 15}, {"sigmoid", 230}, {"sqrt", 15}, {"rsqrt", 30}};
  const auto known = kOperations.find(function);
  return known == kOperations.end() ? kOperation * flops : std::max(kOperation * flops, known->second);
}

double HostFactorOfLanes(int lanes) {
  constexpr int kManyLanes = 512;
  constexpr double kOfManyLanes = 1.5;
  return lanes > kManyLanes ? kOfManyLanes : 1;
}

}  // namespace fusion
