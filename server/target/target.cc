#include "server/target/target.h"

#include "server/target/cuda/cuda_target.h"
#include "server/target/host/host_target.h"

namespace fusion {

const std::vector<const Target*>& Targets() {
  static const auto* const all = new std::vector<const Target*>{&CudaTarget(), &HostTarget()};
  return *all;
}

const Target& TargetOf(v1::Target id) {
  for (const Target* target : Targets())
    if (target->id() == id) return *target;
  return HostTarget();
}

}  // namespace fusion
