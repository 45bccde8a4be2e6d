#include "server/optimize/loop_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "server/optimize/case_finder.h"

namespace fusion {
namespace {

constexpr size_t kMostVariants = 5, kMostContenders = 12, kMostCells = 1000, kMostAxes = 3;
constexpr int kSmallest = 4, kLargest = 28;  // powers of two
// A variant that makes the others' times this much shorter, on the average over all sizes, is worth its code.
constexpr double kWorthwhile = 0.01;

// Sizes that say how many entries arrays have.
std::vector<std::string> SizesOfArrays(const LoopInterface& interface) {
  std::set<std::string> names;
  for (const LoopArray& array : interface.arrays)
    for (const CExpressionPtr& extent : array.variable.extents) AddNames(*extent, &names);
  for (size_t before = 0; before != names.size();) {
    before = names.size();
    for (const CVariable& constant : interface.constants)
      if (names.count(constant.name) > 0) AddNames(constant, &names);
  }
  std::vector<std::string> sizes;
  for (const std::string& integer : interface.integers)
    if (names.count(integer) > 0) sizes.push_back(integer);
  return sizes;
}

VariantTable GridOf(const LoopSubmission& submission) {
  VariantTable grid;
  std::vector<std::string> names = SizesOfArrays(submission.interface);
  if (names.size() > kMostAxes) names.resize(kMostAxes);
  if (names.empty()) return grid;
  const int most = names.size() == 1
                       ? kLargest - kSmallest + 1
                       : static_cast<int>(std::pow(kMostCells, 1.0 / static_cast<double>(names.size())));
  for (const std::string& name : names) {
    const int own = NearestPower(submission.sizes.at(name));
    const int count = std::min(most, kLargest - kSmallest + 1);
    // The grid reaches a few times beyond the size that was asked for.
    const int first = std::clamp(own + count / 4 - count + 1, 0, std::max(0, std::min(kSmallest, own)));
    grid.axes.push_back({name, first, std::max(count, own - first + 1)});
  }
  return grid;
}

IntegerValues SizesOfCell(const VariantTable& grid, size_t cell, IntegerValues sizes) {
  for (auto axis = grid.axes.rbegin(); axis != grid.axes.rend(); ++axis) {
    sizes[axis->size] = int64_t{1} << (axis->first + static_cast<int>(cell % axis->count));
    cell /= axis->count;
  }
  return sizes;
}

}  // namespace

absl::StatusOr<LoopChooser> LoopChooser::Make(const LoopSubmission& submission, const CostModel& model,
                                              const LoopCandidates& candidates,
                                              const std::vector<v1::Candidate>& ranked) {
  LoopChooser chooser;
  chooser.grid_ = GridOf(submission);
  size_t cells = 1;
  for (const SizeAxis& axis : chooser.grid_.axes) {
    const int own = std::clamp(NearestPower(submission.sizes.at(axis.size)) - axis.first, 0, axis.count - 1);
    chooser.own_ = chooser.own_ * axis.count + own;
    cells *= axis.count;
  }
  CaseFinder finder(submission, submission.mapped, submission.parameters, model.device());
  std::vector<double> factors;  // measured over predicted
  FUSION_RETURN_IF_ERROR(finder.Sample(submission.sizes, candidates.least));
  for (const v1::Candidate& candidate : ranked) {
    if (candidate.outcome() != v1::OK) continue;
    const int position = candidate.predicted_rank() - 1;
    const LoopCase& one = candidates.cases[position];
    const std::optional<LoopCase> predicted = finder.Predict(one.parameters, one.cached, model);
    const double measured = candidate.measured().median();  // 0: nothing was
    factors.push_back(predicted && predicted->predicted_seconds > 0 && measured > 0
                          ? measured / predicted->predicted_seconds
                          : 1);
    chooser.contenders_.push_back(
        {{one.parameters, one.cached, CaseText(one, candidates.codes[position])}, position, {}});
  }
  // The case that any sizes permit may not have been timed.
  double mean = 0;
  for (double factor : factors)
    mean += std::log(std::max(factor, 1e-9)) / static_cast<double>(factors.size());
  factors.push_back(std::exp(mean));
  chooser.contenders_.push_back({{candidates.least, false, "all parameters as small as may be"}, -1, {}});
  for (size_t cell = 0; cell < cells; ++cell) {
    const bool known =
        finder.Sample(SizesOfCell(chooser.grid_, cell, submission.sizes), candidates.least).ok();
    for (size_t i = 0; i < chooser.contenders_.size(); ++i) {
      Contender& one = chooser.contenders_[i];
      const std::optional<LoopCase> predicted =
          known && i < kMostContenders + 1 ? finder.Predict(one.variant.parameters, one.variant.cached, model)
                                           : std::nullopt;
      // The order of the times at the submitted sizes holds where nothing can be predicted.
      one.seconds.push_back(predicted ? predicted->predicted_seconds * factors[i]
                                      : std::numeric_limits<double>::max() / 2 *
                                            (1 + static_cast<double>(i) * 1e-6));
    }
  }
  return chooser;
}

LoopChooser::Chosen LoopChooser::Choose(int position) const {
  std::vector<size_t> chosen;
  const auto add = [&](size_t contender) {
    const LoopVariant& variant = contenders_[contender].variant;
    for (size_t known : chosen)
      if (contenders_[known].variant.parameters == variant.parameters &&
          contenders_[known].variant.cached == variant.cached)
        return;
    chosen.push_back(contender);
  };
  for (size_t i = 0; i < contenders_.size(); ++i)
    if (contenders_[i].position == position) add(i);
  const size_t cells = contenders_[0].seconds.size();
  std::vector<double> best(cells, std::numeric_limits<double>::max());
  while (chosen.size() + 1 < kMostVariants) {
    for (size_t known : chosen)
      for (size_t cell = 0; cell < cells; ++cell)
        best[cell] = std::min(best[cell], contenders_[known].seconds[cell]);
    double most = kWorthwhile;
    std::optional<size_t> next;
    for (size_t i = 0; i + 1 < contenders_.size(); ++i) {
      double gain = 0;
      for (size_t cell = 0; cell < cells; ++cell)
        gain += std::log(best[cell] / std::min(best[cell], contenders_[i].seconds[cell]));
      gain /= static_cast<double>(cells);
      if (gain > most) most = gain, next = i;
    }
    if (!next) break;
    add(*next);
  }
  add(contenders_.size() - 1);
  Chosen result{.variants = {}, .table = grid_};
  for (size_t contender : chosen) result.variants.push_back(contenders_[contender].variant);
  for (size_t cell = 0; cell < cells; ++cell) {
    std::vector<int> order(chosen.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      if (cell == own_ && (a == 0 || b == 0)) return a == 0 && b != 0;
      return contenders_[chosen[a]].seconds[cell] < contenders_[chosen[b]].seconds[cell];
    });
    result.table.orders.push_back(std::move(order));
  }
  return result;
}

}  // namespace fusion
