#include "server/optimize/measurement_remarks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/optimize/device_figures.h"
#include "server/rank/rank.h"

namespace fusion {
namespace {

// Figures up to these are not worth a word.
constexpr double kUsualSpread = 1, kUsualLoad = 0.75, kUsualStolen = 0.02;

// Returns the candidate whose samples differ most; null: none was measured.
const v1::Candidate* WidestSpread(const v1::JobResult& result) {
  const v1::Candidate* widest = nullptr;
  for (const v1::Candidate& candidate : result.candidates())
    if (candidate.outcome() == v1::OK &&
        (widest == nullptr || candidate.measured().spread() > widest->measured().spread()))
      widest = &candidate;
  return widest;
}

// "300-fold", of samples from 1 to 300 times the least.
std::string Fold(double spread) { return absl::StrFormat("%.3g-fold", 1 + spread); }

std::string SpreadText(const v1::JobResult& result) {
  const v1::Candidate* widest = WidestSpread(result);
  if (widest == nullptr || widest->measured().spread() <= kUsualSpread) return "";
  return absl::StrFormat(
      "samples of one program spread up to %s (rank %d): times are medians of those that nothing disturbed",
      Fold(widest->measured().spread()), widest->rank());
}

std::string LoadText(const v1::MeasurementConditions& conditions) {
  std::string text;
  if (conditions.load() > kUsualLoad)
    text =
        absl::StrFormat("%.1f threads wanted to run for each processor beside the timing", conditions.load());
  if (conditions.stolen_share() > kUsualStolen)
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    absl::StrFormat("%.0f %% of the processors' time was stolen by the hypervisor",
                                    100 * conditions.stolen_share()));
  return text.empty() ? "" : absl::StrCat("the machine was busy: ", text);
}

}  // namespace

void DescribeReliability(v1::JobResult* result) {
  const std::vector<v1::Candidate> candidates(result->candidates().begin(), result->candidates().end());
  const auto unsteady = std::count_if(
      candidates.begin(), candidates.end(),
      [](const v1::Candidate& candidate) { return candidate.outcome() == v1::OK && !candidate.steady(); });
  result->set_unreliable(!IsReliable(candidates));
  if (result->unreliable())
    result->add_remarks(absl::StrCat(
        "unreliable: too few runs went undisturbed to tell which candidate is the fastest, also when "
        "the race was repeated; the times of ",
        unsteady, unsteady == 1 ? " candidate" : " candidates",
        " are not steady, and nothing was learned from them"));
  else if (unsteady > 0)
    result->add_remarks(
        absl::StrCat("the times of ", unsteady, unsteady == 1 ? " candidate" : " candidates",
                     ", none of which may be the fastest, are not steady; nothing was learned "
                     "from them"));
  for (const std::string& text : {SpreadText(*result), LoadText(result->conditions())})
    if (!text.empty()) result->add_remarks(text);
  if (!HasSteadyBandwidth(result->device()))
    result->add_remarks(
        absl::StrFormat("the floor is a rough one: copies of this device spread %s when it was described",
                        Fold(result->device().copy_spread())));
}

}  // namespace fusion
