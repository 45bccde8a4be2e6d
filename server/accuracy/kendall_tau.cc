#include "server/accuracy/kendall_tau.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <utility>

namespace fusion {
namespace {

// Pairs of equal values in a sorted list.
template <typename Value>
int64_t TiedPairs(const std::vector<Value>& sorted) {
  int64_t pairs = 0, run = 0;
  for (size_t i = 1; i < sorted.size(); ++i) {
    run = sorted[i] == sorted[i - 1] ? run + 1 : 0;
    pairs += run;
  }
  return pairs;
}

// Sorts the list by merging ever longer runs; returns how many pairs of it stood in descending order.
int64_t SortAndCountInversions(std::vector<double>* values) {
  const size_t n = values->size();
  std::vector<double> merged(n);
  int64_t inversions = 0;
  for (size_t run = 1; run < n; run *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * run) {
      const size_t middle = std::min(begin + run, n), end = std::min(begin + 2 * run, n);
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        if (left < middle && (right == end || (*values)[left] <= (*values)[right])) {
          merged[out] = (*values)[left++];
        } else {
          inversions += static_cast<int64_t>(middle - left);  // it passes all that are left of the left run
          merged[out] = (*values)[right++];
        }
      }
    }
    values->swap(merged);
  }
  return inversions;
}

}  // namespace

std::optional<double> KendallTauB(const std::vector<double>& x, const std::vector<double>& y) {
  assert(x.size() == y.size());
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<std::pair<double, double>> points;
  points.reserve(x.size());
  for (size_t i = 0; i < x.size(); ++i) points.emplace_back(x[i], y[i]);
  // Points tied in x ascend in y: they are no inversions.
  std::sort(points.begin(), points.end());
  std::vector<double> xs, ys;
  for (const auto& [first, second] : points) {
    xs.push_back(first);
    ys.push_back(second);
  }
  const int64_t discordant = SortAndCountInversions(&ys);
  const int64_t all = n * (n - 1) / 2, tied_x = TiedPairs(xs), tied_y = TiedPairs(ys),
                tied_both = TiedPairs(points);
  if (tied_x == all || tied_y == all) return std::nullopt;
  const int64_t concordant = all - tied_x - tied_y + tied_both - discordant;
  // The root of the product, not the product of roots: equal factors then give exactly 1 or -1.
  return static_cast<double>(concordant - discordant) /
         std::sqrt(static_cast<double>(all - tied_x) * static_cast<double>(all - tied_y));
}

}  // namespace fusion
