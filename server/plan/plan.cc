#include "server/plan/plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fusion {

std::string RunTimeEstimate::ToString() const {
  return absl::StrFormat(
      "%.3g us = %smax(memory %.3g us for %.4g bytes, compute %.3g us for %.4g flops%s) + waits %.3g us + "
      "barriers %.3g us + launch %.3g us%s; "
      "occupancy %.2f, %.3g waves, %d registers, %d bytes shared",
      total_seconds * 1e6, correction == 1 ? "" : "(", memory_seconds * 1e6, bytes, compute_seconds * 1e6,
      flops,
      measured_routines         ? absl::StrFormat(", both in turn %.3g us; of measured routines%s",
                                                  alone_seconds * 1e6, extended_routines ? ", extended" : "")
      : missing_routine.empty() ? ""
                                : absl::StrCat(", no measured time of ", missing_routine),
      waiting_seconds * 1e6, barrier_seconds * 1e6, launch_seconds * 1e6,
      correction == 1 ? "" : absl::StrFormat(") x %.2f %s", correction, measured ? "measured" : "learned"),
      occupancy, waves, registers, shared_bytes);
}

bool AddsInPlace(const Graph& graph, const Node& reduction, const NodeSet& kernel) {
  const Overload& overload = *reduction.overload;
  if (overload.monoid != v1::SUM || graph.value(reduction.result).type.data_type != v1::F64) return false;
  if (overload.finish_routine.empty()) return true;
  if (overload.part_routine.empty()) return false;
  return std::none_of(overload.finish_operands.begin(), overload.finish_operands.end(), [&](int k) {
    const auto& producer = graph.value(reduction.operands[k]).producer;
    return producer.has_value() && kernel.Contains(producer->value);
  });
}

}  // namespace fusion
