#include "server/loops/dependence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/loops/witness.h"
#include "server/polynomial/prover.h"

namespace fusion {
namespace {

// Witnesses are searched for so many pairs of a nest: each may take some milliseconds.
constexpr int kMostTried = 100;

std::string PositionText(SourcePosition position) {
  return absl::StrCat(position.line, ":", position.column);
}

bool IsIn(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Two accesses in different iterations of a loop: `first` in iteration i, `second` in a later one, i + delta.
class Pair {
 public:
  // `in_rows`: indices stay in their dimensions; else only the place in memory counts.
  Pair(const Nest& nest, Prover* prover, int loop, const NestAccess& first, const NestAccess& second,
       bool in_rows)
      : nest_(nest), prover_(prover), first_(first), second_(second), in_rows_(in_rows) {
    depth_ = std::find(first.loops.begin(), first.loops.end(), loop) - first.loops.begin();
    for (size_t i = depth_ + 1; i < std::min(first.loops.size(), second.loops.size()); ++i) {
      if (first.loops[i] != second.loops[i]) break;
      common_.push_back(first.loops[i]);
    }
  }

  bool NeverMeets() {
    // Inner loops around both accesses stand first, then those of the first alone, then those of the second.
    const size_t of_first = first_.loops.size() - depth_ - 1, of_second = second_.loops.size() - depth_ - 1;
    const int inner = static_cast<int>(of_first + of_second - common_.size());
    if (ProveCases({}, {})) return true;
    for (int one = 0; one < inner; ++one)
      if (ProveCases({one}, {})) return true;
    for (int one = 0; one < inner; ++one)
      for (int other = one + 1; other < inner; ++other)
        if (ProveCases({one, other}, {})) return true;
    return inner > 2 && ProveCases({0, 1, 2}, {});
  }

 private:
  using Cases = std::map<int, int>;  // by the number of an inner loop

  // The loops of `split` are told apart: those around both by the sign of the difference of their counters,
  // the others by whether they are at their beginning.
  bool ProveCases(std::vector<int> split, const Cases& cases) {
    if (split.empty()) return ProveCase(cases);
    const int loop = split.back();
    split.pop_back();
    for (int one : {0, 1, -1}) {
      if (one < 0 && loop >= static_cast<int>(common_.size())) continue;
      Cases with = cases;
      with[loop] = one;
      if (!ProveCases(split, with)) return false;
    }
    return true;
  }

  bool ProveCase(const Cases& cases) {
    counters_.clear();
    conditions_.clear();
    renamed_.clear();
    for (size_t i = 0; i < depth_; ++i) AddCounter(first_.loops[i]);
    const NestLoop& carrier = nest_.loops[first_.loops[depth_]];
    AddCounter(first_.loops[depth_]);
    const Polynomial at = Polynomial::Symbol(carrier.symbol), delta = Polynomial::Symbol(kDelta);
    Counter distance{.name = kDelta, .lows = {Polynomial(1)}, .highs = {}};
    for (const Polynomial& high : carrier.highs) distance.highs.push_back(high - at);
    counters_.push_back(std::move(distance));
    renamed_.emplace_back(carrier.symbol, at + delta);
    for (const Polynomial& condition : carrier.conditions) conditions_.push_back(Renamed(condition));
    const size_t of_first = first_.loops.size() - depth_ - 1, of_second = second_.loops.size() - depth_ - 1;
    const auto case_of = [&](size_t number) {
      const auto found = cases.find(static_cast<int>(number));
      return found == cases.end() ? nullptr : &found->second;
    };
    for (size_t i = 0; i < of_first; ++i) {
      AddCounter(first_.loops[depth_ + 1 + i]);
      if (i >= common_.size() && case_of(i) != nullptr) Begin(*case_of(i), &counters_.back());
    }
    for (size_t i = 0; i < of_second; ++i) {
      AddSecond(second_.loops[depth_ + 1 + i], i < common_.size() ? case_of(i) : nullptr);
      const size_t number = of_first + i - common_.size();  // behind those of the first
      if (i >= common_.size() && case_of(number) != nullptr) Begin(*case_of(number), &counters_.back());
    }
    AddGuards(first_, false);
    AddGuards(second_, true);
    std::erase_if(conditions_,
                  [](const Polynomial& condition) { return !condition.exact() || condition.Constant(); });
    const std::vector<Polynomial>& extents = nest_.arrays[first_.array].extents;
    if (in_rows_) {
      for (size_t dimension = 0; dimension < extents.size(); ++dimension)
        if (IsNotZero(Renamed(second_.index[dimension]) - first_.index[dimension])) return true;
      if (extents.size() == 1) return false;
    }
    Polynomial difference;
    for (size_t dimension = 0; dimension < extents.size(); ++dimension) {
      if (dimension > 0) difference = difference * extents[dimension];
      difference = difference + Renamed(second_.index[dimension]) - first_.index[dimension];
    }
    return IsNotZero(difference);
  }

  bool IsNotZero(const Polynomial& difference) {
    return difference.exact() && (prover_->IsNeverNegative(difference - 1, counters_, conditions_) ||
                                  prover_->IsNeverNegative(-difference - 1, counters_, conditions_));
  }

  void AddCounter(int number) {
    const NestLoop& loop = nest_.loops[number];
    counters_.push_back({.name = loop.symbol, .lows = loop.lows, .highs = loop.highs});
    conditions_.insert(conditions_.end(), loop.conditions.begin(), loop.conditions.end());
  }

  // At its beginning, or behind it.
  static void Begin(int behind, Counter* counter) {
    if (counter->lows.empty()) return;
    if (behind == 0) counter->highs.insert(counter->highs.begin(), counter->lows[0]);
    if (behind == 1) counter->lows.insert(counter->lows.begin(), counter->lows[0] + 1);
  }

  // An inner loop of the later iteration: its counter is another one than in the earlier iteration. `sign`,
  // if not null: of the difference.
  void AddSecond(int number, const int* sign) {
    const NestLoop& loop = nest_.loops[number];
    std::vector<Polynomial> lows, highs;
    for (const Polynomial& low : loop.lows) lows.push_back(Renamed(low));
    for (const Polynomial& high : loop.highs) highs.push_back(Renamed(high));
    const Polynomial same = Polynomial::Symbol(loop.symbol);
    const std::string name = absl::StrCat(loop.symbol, "'");
    const Polynomial other = Polynomial::Symbol(name);
    if (sign == nullptr) {
      counters_.push_back({.name = name, .lows = lows, .highs = highs});
      renamed_.emplace_back(loop.symbol, other);
    } else if (*sign == 0) {
      for (const Polynomial& low : lows) conditions_.push_back(same - low);
      for (const Polynomial& high : highs) conditions_.push_back(high - same);
      renamed_.emplace_back(loop.symbol, same);
    } else {
      // The counter is `name` more or less than that of the earlier iteration.
      const bool more = *sign > 0;
      Counter difference{.name = name, .lows = {Polynomial(1)}, .highs = {}};
      for (const Polynomial& end : more ? highs : lows)
        difference.highs.push_back(more ? end - same : same - end);
      counters_.push_back(std::move(difference));
      renamed_.emplace_back(loop.symbol, more ? same + other : same - other);
    }
    for (const Polynomial& condition : loop.conditions) conditions_.push_back(Renamed(condition));
  }

  void AddGuards(const NestAccess& access, bool later) {
    for (const NestGuard& guard : access.guards)
      for (const Polynomial& condition : guard.conditions)
        conditions_.push_back(later ? Renamed(condition) : condition);
  }

  // Returns the polynomial as it is in the later iteration.
  Polynomial Renamed(const Polynomial& polynomial) const {
    Polynomial result = polynomial;
    // The symbols that are put in are not renamed: from the innermost on they are of loops further out, or
    // primed.
    for (auto rename = renamed_.rbegin(); rename != renamed_.rend(); ++rename)
      if (rename->second != Polynomial::Symbol(rename->first))
        result = result.Substitute(rename->first, rename->second);
    return result;
  }

  static constexpr char kDelta[] = "delta@";  // no name of C

  const Nest& nest_;
  Prover* prover_;
  const NestAccess& first_;
  const NestAccess& second_;
  const bool in_rows_;
  size_t depth_ = 0;         // of the loop among those around both
  std::vector<int> common_;  // inner loops around both
  std::vector<Counter> counters_;
  std::vector<Polynomial> conditions_;
  std::vector<std::pair<std::string, Polynomial>> renamed_;
};

class Dependences {
 public:
  explicit Dependences(const Nest& nest) : nest_(nest), prover_(nest.facts) {}

  std::vector<LoopVerdict> Find() {
    std::vector<LoopVerdict> verdicts;
    for (size_t loop = 0; loop < nest_.loops.size(); ++loop)
      if (nest_.loops[loop].claim != Claim::kNone) verdicts.push_back(Judge(static_cast<int>(loop)));
    return verdicts;
  }

 private:
  bool Contains(int loop, const std::vector<int>& loops) const {
    return std::find(loops.begin(), loops.end(), loop) != loops.end();
  }

  // Returns whether each iteration of `loop` has its own of what is declared in the loop `owner`.
  bool IsInside(int owner, int loop) const {
    for (int at = owner; at >= 0; at = nest_.loops[at].parent)
      if (at == loop) return true;
    return false;
  }

  // Returns whether both never run in the same run of the loop, as one is in the `else` of the other, and the
  // condition is the same for all iterations.
  bool AreApart(const NestAccess& a, const NestAccess& b, int loop) const {
    for (const NestGuard& one : a.guards)
      for (const NestGuard& other : b.guards)
        if (one.holds != other.holds && one.key == other.key && !one.of_memory &&
            std::none_of(one.symbols.begin(), one.symbols.end(),
                         [&](const std::string& symbol) { return ChangesIn(loop, symbol); }))
          return true;
    return false;
  }
  bool ChangesIn(int loop, const std::string& symbol) const {
    for (size_t at = 0; at < nest_.loops.size(); ++at)
      if (nest_.loops[at].symbol == symbol) return IsInside(static_cast<int>(at), loop);
    return false;
  }

  LoopVerdict Judge(int loop) {
    LoopVerdict verdict{.loop = loop, .verdict = Verdict::kIndependent};
    JudgeScalars(loop, &verdict);
    std::vector<const NestAccess*> accesses;
    for (const NestAccess& access : nest_.accesses)
      if (Contains(loop, access.loops)) accesses.push_back(&access);
    for (size_t i = 0; i < accesses.size(); ++i)
      for (size_t j = i; j < accesses.size(); ++j) {
        if (verdict.verdict == Verdict::kCarried) return verdict;
        const NestAccess &a = *accesses[i], &b = *accesses[j];
        if (!a.writes && !b.writes) continue;
        if (a.array != b.array) {
          const CVariable &one = nest_.arrays[a.array].variable, &other = nest_.arrays[b.array].variable;
          if ((one.aliases || other.aliases) && verdict.verdict != Verdict::kUnknown)
            Report(Verdict::kUnknown, a.position,
                   absl::StrCat(a.text, " and ", b.text, ", which may be the same memory"), "", &verdict);
          continue;
        }
        const NestArray& array = nest_.arrays[a.array];
        if ((array.local && IsInside(array.owner, loop)) ||
            IsIn(nest_.loops[loop].reductions, array.variable.name))
          continue;
        if (AreApart(a, b, loop)) continue;
        JudgePair(loop, a, b, &verdict);
      }
    return verdict;
  }

  void JudgePair(int loop, const NestAccess& a, const NestAccess& b, LoopVerdict* verdict) {
    const bool known =
        std::all_of(a.index.begin(), a.index.end(), [](const Polynomial& index) { return index.exact(); }) ||
        std::all_of(b.index.begin(), b.index.end(), [](const Polynomial& index) { return index.exact(); });
    const bool rows_apart = !nest_.arrays[a.array].variable.indirect;
    if (known && rows_apart) {
      const bool in_rows = StaysInRows(a) && StaysInRows(b);
      if (Pair(nest_, &prover_, loop, a, b, in_rows).NeverMeets() &&
          (&a == &b || Pair(nest_, &prover_, loop, b, a, in_rows).NeverMeets()))
        return;
    }
    const NestAccess& here = a.writes ? a : b;
    const NestAccess& there = a.writes ? b : a;
    std::string text = absl::StrCat(here.text, " (written here",
                                    &here == &there ? ""
                                    : there.writes  ? ", and written at "
                                                    : ", read at ",
                                    &here == &there ? "" : PositionText(there.position), ")");
    std::optional<std::string> witness;
    if (tried_ < kMostTried) {
      ++tried_;
      witness = FindWitness(nest_, loop, a, b, StaysInRows(a) && StaysInRows(b));
    }
    const bool sums = a.accumulates && b.accumulates && a.text == b.text;
    Report(witness ? (sums ? Verdict::kReduction : Verdict::kCarried) : Verdict::kUnknown, here.position,
           std::move(text), witness.value_or(""), verdict);
  }

  // C's programs stay in the rows of their arrays, for the sizes that they are made for: an index is taken
  // to, unless it leaves its row for all sizes.
  bool StaysInRows(const NestAccess& access) {
    if (access.index.size() == 1) return true;
    const auto [known, added] = in_rows_.try_emplace(&access, false);
    if (added) known->second = MayStayInRows(nest_, access);
    return known->second;
  }

  // Scalars that are declared outside of the loop are the same memory in all of its iterations.
  void JudgeScalars(int loop, LoopVerdict* verdict) {
    const NestLoop& judged = nest_.loops[loop];
    std::set<std::string> seen;
    for (const NestScalar& scalar : nest_.scalars) {
      if (!scalar.writes || !Contains(loop, scalar.loops) || IsInside(scalar.owner, loop) ||
          IsIn(judged.privates, scalar.name) || IsIn(judged.reductions, scalar.name) ||
          !seen.insert(scalar.name).second)
        continue;
      bool sums = true;
      const NestScalar* first = nullptr;
      bool written_first = true;
      SourcePosition other;
      for (const NestScalar& use : nest_.scalars) {
        if (use.name != scalar.name || use.owner != scalar.owner) continue;
        if (!Contains(loop, use.loops)) {
          // Nobody reads it when the loop has run.
          const bool before = use.order < scalar.order &&
                              (use.loops.empty() || scalar.loops.empty() || use.loops[0] != scalar.loops[0]);
          written_first &= use.writes || before;
          continue;
        }
        if (first == nullptr) {
          first = &use;
          written_first &= use.writes && !use.accumulates;
        }
        // Whoever reads it has passed the first write.
        written_first &= BeginsWith(use.loops, first->loops) && BeginsWith(use.branches, first->branches);
        sums &= use.accumulates;
        if (!use.writes) other = use.position;
      }
      if (judged.claim != Claim::kOpenMp && (scalar.counter || written_first)) {
        if (!scalar.counter) verdict->own.push_back(scalar.name);
        continue;
      }
      const std::optional<std::string> witness = FindTwoIterations(nest_, loop);
      Report(!witness ? Verdict::kUnknown
             : sums   ? Verdict::kReduction
                      : Verdict::kCarried,
             scalar.position,
             absl::StrCat(scalar.name, " (written here",
                          other.line > 0 ? absl::StrCat(", read at ", PositionText(other)) : "", ")"),
             witness ? absl::StrCat(*witness, " both touch ", scalar.name) : "", verdict);
    }
  }

  static bool BeginsWith(const std::vector<int>& list, const std::vector<int>& beginning) {
    return list.size() >= beginning.size() && std::equal(beginning.begin(), beginning.end(), list.begin());
  }

  // The worst stands.
  static void Report(Verdict found, SourcePosition position, std::string text, std::string witness,
                     LoopVerdict* verdict) {
    const auto rank = [](Verdict one) {
      return one == Verdict::kIndependent ? 0
             : one == Verdict::kReduction ? 1
             : one == Verdict::kUnknown   ? 2
                                          : 3;
    };
    if (rank(found) <= rank(verdict->verdict)) return;
    verdict->verdict = found;
    verdict->position = position;
    verdict->text = std::move(text);
    verdict->witness = std::move(witness);
  }

  const Nest& nest_;
  Prover prover_;
  std::map<const NestAccess*, bool> in_rows_;
  int tried_ = 0;  // pairs for which witnesses were searched
};

}  // namespace

std::vector<LoopVerdict> FindDependences(const Nest& nest) { return Dependences(nest).Find(); }

}  // namespace fusion
