#include "server/service/spilled_registers.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/plan/plan.h"

namespace fusion {
namespace {

// That a thread stores and loads: of some values at the edge of 255 registers, which cost next to nothing.
// The fastest products of small lists of 16x16 and 32x32 that were measured on an H100 keep 32 and 48 bytes
// in local memory.
constexpr int64_t kFewSpilledBytes = 128;

}  // namespace

int64_t SpilledBytes(absl::string_view log) {
  // "ptxas warning : Registers are spilled to local memory in function 'fused_C', 44 bytes spill stores, 48
  // bytes spill loads", a line for each kernel that spills.
  int64_t bytes = 0;
  for (absl::string_view part : absl::StrSplit(log, absl::ByAnyChar(",\n"))) {
    part = absl::StripPrefix(part, " ");
    int32_t some = 0;
    if ((absl::ConsumeSuffix(&part, " bytes spill stores") ||
         absl::ConsumeSuffix(&part, " bytes spill loads")) &&
        absl::SimpleAtoi(part, &some) && some > 0)
      bytes += some;
  }
  return bytes;
}

std::string SpillsOf(const PlannedCandidate& planned, const BuiltCode& built) {
  int kernel = 0;  // the first one of the unit
  for (const CodeUnit* unit : planned.units) {
    const v1::KernelSummary& first = planned.candidate.kernels(kernel);
    kernel += static_cast<int>(unit->code.launches.size());
    const auto spilled = built.spilled.find(unit);
    if (spilled != built.spilled.end() && spilled->second > kFewSpilledBytes &&
        first.skeleton() == SkeletonName(Skeleton::kElement))
      return absl::StrCat(first.name(), " spills registers: each thread stores and loads ", spilled->second,
                          " bytes for want of them");
  }
  return "";
}

std::vector<int> RejectSpilled(const std::vector<int>& positions, const BuiltCode& built,
                               GeneratedCode* code) {
  std::vector<int> rejected;
  for (int position : positions) {
    PlannedCandidate& planned = code->candidates[position];
    if (planned.candidate.outcome() != v1::OUTCOME_UNSPECIFIED) continue;
    const std::string spills = SpillsOf(planned, built);
    if (spills.empty()) continue;
    planned.candidate.set_outcome(v1::EXCEEDS_DEVICE);
    planned.candidate.set_message(absl::StrCat(spills, "; not timed, as there are candidates that do not"));
    rejected.push_back(position);
  }
  return rejected;
}

bool TakeBackSpilled(const std::vector<int>& rejected, GeneratedCode* code) {
  if (rejected.empty() ||
      std::any_of(code->candidates.begin(), code->candidates.end(),
                  [](const PlannedCandidate& planned) { return planned.candidate.outcome() == v1::OK; }))
    return false;
  for (int position : rejected) {
    code->candidates[position].candidate.clear_outcome();
    code->candidates[position].candidate.clear_message();
  }
  return true;
}

}  // namespace fusion
