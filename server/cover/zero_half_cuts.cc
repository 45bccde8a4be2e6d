#include "server/cover/zero_half_cuts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>

#include "server/cover/set_problem.h"

namespace fusion {
namespace {

constexpr double kBrokenCut = 0.02;  // what is broken by less is not worth a cut
constexpr double kMostSlack = 0.3;   // of a cut that is added up
constexpr int kMostAdded = 15;       // rows of one sum: longer cuts make programs slow
constexpr int kCutsOfRow = 3;        // in one call
constexpr size_t kMostCuts = 100;
constexpr size_t kMostColumns = 2000;  // elimination would take too long
constexpr double kNoise = 0.5;         // by which orders differ, of a share

// Numbers below a limit.
class Bits {
 public:
  explicit Bits(int limit) : words_((limit + 63) / 64, 0) {}
  bool Has(int i) const { return words_[i / 64] >> (i % 64) & 1; }
  void Flip(int i) { words_[i / 64] ^= uint64_t{1} << (i % 64); }
  void FlipAll(const Bits& others) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] ^= others.words_[i];
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i < words_.size(); ++i)
      for (uint64_t left = words_[i]; left != 0; left &= left - 1)
        visit(static_cast<int>(i * 64) + std::countr_zero(left));
  }
  friend auto operator<=>(const Bits&, const Bits&) = default;

 private:
  std::vector<uint64_t> words_;
};

// A sum of rows, of which only what is odd matters.
struct Sum {
  Bits odd;          // columns that count an odd number of times
  Bits rows;         // that were added up
  bool odd_limit;    // without what sets that are taken as a whole count for
  double slack = 0;  // by which the rows stay below their limits
  double odd_shares = 0;
  int count = 1;  // of rows
  // The shares break the cut by half of what this is below 1.
  double Missing() const { return slack + odd_shares; }
};

class Elimination {
 public:
  Elimination(const SetProblem& problem, const std::vector<const Cut*>& cuts,
              const std::vector<std::vector<int>>& cuts_of, const std::vector<std::pair<int, double>>& shares)
      : problem_(problem), cuts_(cuts) {
    std::vector<int> sets;  // of the columns
    std::vector<double> taken(cuts.size(), 0), whole(cuts.size(), 0);
    for (const auto& [set, share] : shares) {
      for (int cut : cuts_of[set]) taken[cut] += share, whole[cut] += share > kWhole;
      if (share > kWhole) continue;
      sets.push_back(set);
      shares_.push_back(share);
    }
    if (shares_.size() > kMostColumns) shares_.clear();
    if (shares_.empty()) return;
    std::vector<int> node_row(problem.node_count, -1), cut_row(cuts.size(), -1);
    std::vector<double> slack;
    std::vector<char> odd_limit;
    for (int set : sets)
      for (int node : problem.sets[set].members)
        if (node_row[node] < 0) {
          node_row[node] = static_cast<int>(names_.size());
          names_.push_back(node);
          slack.push_back(0);
          odd_limit.push_back(1);
        }
    for (size_t cut = 0; cut < cuts.size(); ++cut) {
      if (cuts[cut]->limit - taken[cut] > kMostSlack) continue;
      cut_row[cut] = static_cast<int>(names_.size());
      names_.push_back(~static_cast<int>(cut));
      slack.push_back(std::max(0.0, cuts[cut]->limit - taken[cut]));
      odd_limit.push_back((cuts[cut]->limit - std::lround(whole[cut])) % 2 != 0);
    }
    const int columns = static_cast<int>(sets.size()), rows = static_cast<int>(names_.size());
    for (int row = 0; row < rows; ++row) {
      rows_.push_back(
          {.odd = Bits(columns), .rows = Bits(rows), .odd_limit = odd_limit[row] != 0, .slack = slack[row]});
      rows_.back().rows.Flip(row);
    }
    for (int column = 0; column < columns; ++column) {
      for (int node : problem.sets[sets[column]].members) rows_[node_row[node]].odd.Flip(column);
      for (int cut : cuts_of[sets[column]])
        if (cut_row[cut] >= 0) rows_[cut_row[cut]].odd.Flip(column);
    }
    for (Sum& row : rows_) row.odd_shares = SharesOf(row.odd);
  }

  bool empty() const { return shares_.empty(); }
  int columns() const { return static_cast<int>(shares_.size()); }
  double share(int column) const { return shares_[column]; }

  // Column after column is made even in all rows but one, which is left out from then on.
  void Run(const std::vector<int>& order) {
    std::vector<Sum> sums = rows_;
    std::vector<char> gone(sums.size(), 0);
    std::vector<int> odd;
    for (int column : order) {
      odd.clear();
      int pivot = -1;
      for (size_t i = 0; i < sums.size(); ++i) {
        if (gone[i] || !sums[i].odd.Has(column)) continue;
        odd.push_back(static_cast<int>(i));
        if (pivot < 0 || Weight(sums[i]) < Weight(sums[pivot])) pivot = odd.back();
      }
      if (pivot < 0) continue;
      for (int i : odd)
        if (i != pivot && !Add(sums[pivot], &sums[i])) gone[i] = 1;
      gone[pivot] = 1;
    }
  }

  // Returns the cuts of the sums found, most broken first.
  std::vector<Cut> Cuts(const std::vector<std::pair<int, double>>& shares) const {
    std::vector<std::pair<double, const Bits*>> order;
    for (const auto& [rows, missing] : found_) order.emplace_back(missing, &rows);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<double> share_of(problem_.sets.size(), 0);
    for (const auto& [set, share] : shares) share_of[set] = share;
    std::vector<int> used(rows_.size(), 0), count(problem_.sets.size(), 0);
    std::vector<Cut> cuts;
    for (const auto& [missing, rows] : order) {
      bool often = false;
      rows->ForEach([&](int row) { often |= used[row] == kCutsOfRow; });
      if (often) continue;
      rows->ForEach([&](int row) { ++used[row]; });
      Cut cut = Half(*rows, &count);
      double taken = 0;
      for (int set : cut.sets) taken += share_of[set];
      if (taken > cut.limit + kBrokenCut) cuts.push_back(std::move(cut));
      if (cuts.size() == kMostCuts) break;
    }
    return cuts;
  }

 private:
  double SharesOf(const Bits& columns) const {
    double sum = 0;
    columns.ForEach([&](int column) { sum += shares_[column]; });
    return sum;
  }
  // Rows of little weight are added to others: each adds about as much to what these miss.
  static double Weight(const Sum& sum) { return sum.Missing() + 0.02 * sum.count; }

  // False when nothing can come of the sum any more.
  bool Add(const Sum& pivot, Sum* sum) {
    sum->odd.FlipAll(pivot.odd);
    sum->rows.FlipAll(pivot.rows);
    sum->odd_limit ^= pivot.odd_limit;
    sum->odd_shares = SharesOf(sum->odd);
    sum->slack = 0;
    sum->count = 0;
    sum->rows.ForEach([&](int row) {
      sum->slack += rows_[row].slack;
      ++sum->count;
    });
    if (sum->slack > 1 - 2 * kBrokenCut || sum->count > 2 * kMostAdded) return false;
    if (sum->odd_limit && sum->count > 1 && sum->count <= kMostAdded && sum->Missing() < 1 - 2 * kBrokenCut)
      found_.emplace(sum->rows, sum->Missing());
    return true;
  }

  // `count`: zeros per set, and again afterwards.
  Cut Half(const Bits& rows, std::vector<int>* count) const {
    Cut cut;
    std::vector<int> touched;
    const auto touch = [&](const std::vector<int>& sets) {
      for (int set : sets)
        if ((*count)[set]++ == 0) touched.push_back(set);
    };
    rows.ForEach([&](int row) {
      const int name = names_[row];
      touch(name >= 0 ? problem_.sets_of[name] : cuts_[~name]->sets);
      cut.limit += name >= 0 ? 1 : cuts_[~name]->limit;
    });
    cut.limit /= 2;
    std::sort(touched.begin(), touched.end());
    for (int set : touched) cut.sets.insert(cut.sets.end(), std::exchange((*count)[set], 0) / 2, set);
    return cut;
  }

  const SetProblem& problem_;
  const std::vector<const Cut*>& cuts_;
  std::vector<double> shares_;  // of the columns: sets that are taken in part
  std::vector<int> names_;      // of the rows: nodes, or ~cut
  std::vector<Sum> rows_;
  std::map<Bits, double> found_;  // rows of broken sums, and what they miss
};

}  // namespace

std::vector<Cut> ZeroHalfCuts(const SetProblem& problem, const std::vector<const Cut*>& cuts,
                              const std::vector<std::vector<int>>& cuts_of,
                              const std::vector<std::pair<int, double>>& shares, int attempts) {
  Elimination elimination(problem, cuts, cuts_of, shares);
  if (elimination.empty()) return {};
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0, kNoise);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::vector<std::pair<double, int>> order;  // largest share first
    for (int column = 0; column < elimination.columns(); ++column)
      order.emplace_back(-elimination.share(column) - (attempt == 0 ? 0 : noise(random)), column);
    std::sort(order.begin(), order.end());
    std::vector<int> columns;
    for (const auto& [share, column] : order) columns.push_back(column);
    elimination.Run(columns);
  }
  return elimination.Cuts(shares);
}

}  // namespace fusion
