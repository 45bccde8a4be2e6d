#include "server/optimize/loop_trial.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr int64_t kLeastLimit = 128;
constexpr int64_t kMostTrialEntries = int64_t{1} << 22;  // of all arrays

int64_t EntriesAt(const LoopSubmission& submission, const IntegerValues& sizes) {
  const IntegerValues values = ScopeValues(submission.interface.constants, sizes);
  int64_t entries = 0;
  for (const LoopArray& array : submission.interface.arrays)
    entries += EntriesOf(array.variable, values).value_or(kMostTrialEntries);
  return entries;
}

}  // namespace

IntegerValues SmallSizes(const IntegerValues& sizes, int64_t limit) {
  std::map<int64_t, int64_t> small;  // by size, in their order
  int64_t last = limit - 1;
  for (const auto& [name, size] : sizes) small[size] = size;
  for (auto& [size, at] : small) {
    if (size > limit) at = last + 1 + (size - last - 1) % limit;
    last = std::max(last, at);
  }
  IntegerValues result;
  for (const auto& [name, size] : sizes) result[name] = small[size];
  return result;
}

absl::StatusOr<v1::CandidateSet> MakeLoopTrial(const LoopSubmission& submission,
                                               const std::vector<LoopCase>& cases,
                                               const DeviceDescription& device, const DeviceDescription& host,
                                               std::vector<int>* positions) {
  LoopSubmission trial = submission;
  trial.files.clear();  // they have other sizes
  std::vector<int> possible;
  for (int64_t limit = kLeastLimit; possible.size() < positions->size(); limit *= 2) {
    const IntegerValues sizes = SmallSizes(submission.sizes, limit);
    if (limit > kLeastLimit && (sizes == trial.sizes || EntriesAt(submission, sizes) > kMostTrialEntries))
      break;
    trial.sizes = sizes;
    const CaseFinder finder(trial, trial.mapped, trial.parameters, device);
    possible.clear();
    for (int position : *positions)
      if (finder.IsPossible(cases[position].parameters)) possible.push_back(position);
  }
  if (possible.empty())
    return absl::UnavailableError("the values of their parameters divide no sizes that are small enough");
  *positions = possible;
  std::vector<LoopCase> tried;
  for (int position : possible) tried.push_back(cases[position]);
  FUSION_ASSIGN_OR_RETURN(LoopCandidates candidates, GenerateLoopCode(trial, std::move(tried), host));
  candidates.set.clear_unfused();
  return std::move(candidates.set);
}

}  // namespace fusion
