#include "server/loops/diagonal_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/loops/witness.h"

namespace fusion {
namespace {

constexpr size_t kMostMeetings = 200;

bool IsAround(const std::vector<int>& loops, int loop) {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

// A system has polynomials that are at least 0 and others that are 0. These go: each gives a symbol a value.
class System {
 public:
  void AddFact(Polynomial fact) { facts_.push_back(std::move(fact)); }
  void AddValue(Polynomial value) { values_.push_back(std::move(value)); }
  void AddEquation(Polynomial zero) { equations_.push_back(std::move(zero)); }

  // `symbols` may get values, the first ones first. Returns false where nothing solves the system.
  bool Solve(const std::vector<std::string>& symbols) {
    while (!equations_.empty()) {
      const Polynomial zero = equations_.back();
      equations_.pop_back();
      if (!zero.exact() || zero.IsZero()) continue;
      if (zero.Constant()) return false;
      const bool solved = std::any_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) {
        const std::vector<Polynomial> coefficients = zero.CoefficientsOf(symbol);
        if (coefficients.size() != 2) return false;
        const std::optional<int64_t> factor = coefficients[1].Constant();
        if (!factor || (*factor != 1 && *factor != -1)) return false;
        Put(symbol, *factor == 1 ? -coefficients[0] : coefficients[0]);
        return true;
      });
      if (solved) continue;
      facts_.push_back(zero);
      facts_.push_back(-zero);
    }
    for (const Polynomial& fact : facts_)
      if (const auto constant = fact.Constant(); constant && *constant < 0) return false;
    std::erase_if(facts_, [](const Polynomial& fact) { return !fact.exact() || fact.Constant(); });
    return true;
  }
  const std::vector<Polynomial>& facts() const { return facts_; }
  const std::vector<Polynomial>& values() const { return values_; }

 private:
  void Put(const std::string& symbol, const Polynomial& value) {
    for (std::vector<Polynomial>* list : {&facts_, &values_, &equations_})
      for (Polynomial& polynomial : *list) polynomial = polynomial.Substitute(symbol, value);
  }

  std::vector<Polynomial> facts_, values_, equations_;
};

// Returns the conditions that speak of symbols of the polynomial, or of symbols that such conditions have.
// The others say nothing about it, unless nothing meets them.
std::vector<Polynomial> Connected(const Polynomial& polynomial, const std::vector<Polynomial>& conditions) {
  std::set<std::string> symbols = polynomial.Symbols();
  for (size_t before = 0; before != symbols.size();) {
    before = symbols.size();
    for (const Polynomial& condition : conditions) {
      std::set<std::string> own = condition.Symbols();
      if (std::any_of(own.begin(), own.end(), [&](const auto& one) { return symbols.count(one) > 0; }))
        symbols.merge(own);
    }
  }
  std::vector<Polynomial> connected;
  for (const Polynomial& condition : conditions)
    if (symbols.count(*condition.Symbols().begin()) > 0) connected.push_back(condition);
  return connected;
}

}  // namespace

DiagonalOrder::DiagonalOrder(const Nest& nest, std::vector<BandLoop> band)
    : nest_(nest), band_(std::move(band)), prover_(nest.facts) {
  AddMeetings();
}

bool DiagonalOrder::IsKept(const std::vector<int>& weights) {
  if (!known_ || weights.size() != band_.size() || weights.back() <= 0) return false;
  for (size_t i = 0; i < meetings_.size(); ++i) {
    Polynomial time;
    for (size_t j = 0; j < band_.size(); ++j)
      time = time + meetings_[i].distances[j] * Polynomial(weights[j]);
    if (prover_.IsNeverNegative(time - 1, {}, Connected(time, meetings_[i].conditions))) continue;
    // The next weights most likely fail there, too.
    std::swap(meetings_[i], meetings_.front());
    return false;
  }
  return true;
}

// Indices stay in their rows where dependence.cc says so, too.
bool DiagonalOrder::StaysInRows(const NestAccess& access) const {
  return access.index.size() == 1 || MayStayInRows(nest_, access);
}

void DiagonalOrder::AddMeetings() {
  const int outermost = band_.front().number, innermost = band_.back().number;
  for (const BandLoop& loop : band_)
    known_ &= nest_.loops[loop.number].privates.empty() && nest_.loops[loop.number].reductions.empty();
  std::vector<const NestAccess*> accesses;
  for (const NestAccess& access : nest_.accesses) {
    if (!IsAround(access.loops, outermost)) continue;
    known_ &= IsAround(access.loops, innermost);
    accesses.push_back(&access);
  }
  for (const NestAccess* earlier : accesses)
    for (const NestAccess* later : accesses) {
      if (!known_) return;
      if (!earlier->writes && !later->writes) continue;
      const NestArray &array = nest_.arrays[earlier->array], &other = nest_.arrays[later->array];
      if (earlier->array != later->array) {
        known_ &= !array.variable.aliases && !other.variable.aliases;
        continue;
      }
      known_ &= !array.variable.indirect;
      int owner = array.local ? array.owner : -1;
      while (owner >= 0 && owner != innermost) owner = nest_.loops[owner].parent;
      if (owner == innermost) continue;  // each iteration has its own
      // Iterations that differ in the innermost counter alone are in the order of their times.
      for (size_t level = 0; level + 1 < band_.size(); ++level) AddMeeting(*earlier, *later, level);
      known_ &= meetings_.size() <= kMostMeetings;
    }
}

// Iterations whose counters outside of `level` are the same, and which differ there. Counters of the later
// one are primed from there on, those of loops inside of the band among them.
void DiagonalOrder::AddMeeting(const NestAccess& earlier, const NestAccess& later, size_t level) {
  System system;
  std::map<std::string, Polynomial> renamed;
  std::vector<std::string> primed, plain;
  const std::string distance = "delta@";  // no name of C
  const auto in_later = [&](Polynomial polynomial) {
    for (const auto& [symbol, value] : renamed) polynomial = polynomial.Substitute(symbol, value);
    return polynomial;
  };
  const auto add_loop = [&](int number, bool of_later) {
    const NestLoop& loop = nest_.loops[number];
    const Polynomial counter = Polynomial::Symbol(loop.symbol);
    std::vector<Polynomial> facts = loop.conditions;
    for (const Polynomial& low : loop.lows) facts.push_back(counter - low);
    for (const Polynomial& high : loop.highs) facts.push_back(high - counter);
    for (const Polynomial& fact : facts) system.AddFact(of_later ? in_later(fact) : fact);
  };
  for (const int number : earlier.loops) {
    add_loop(number, false);
    plain.push_back(nest_.loops[number].symbol);
  }
  const auto first = std::find(later.loops.begin(), later.loops.end(), band_[level].number);
  for (auto number = first; number != later.loops.end(); ++number) {
    const std::string& symbol = nest_.loops[*number].symbol;
    const Polynomial delta = Polynomial::Symbol(distance);
    if (number == first) {
      renamed[symbol] = Polynomial::Symbol(symbol) + (band_[level].down ? -delta : delta);
    } else {
      primed.push_back(symbol + "'");
      renamed[symbol] = Polynomial::Symbol(primed.back());
    }
  }
  for (auto number = first; number != later.loops.end(); ++number) add_loop(*number, true);
  system.AddFact(Polynomial::Symbol(distance) - 1);
  for (const NestGuard& guard : earlier.guards)
    for (const Polynomial& condition : guard.conditions) system.AddFact(condition);
  for (const NestGuard& guard : later.guards)
    for (const Polynomial& condition : guard.conditions) system.AddFact(in_later(condition));
  for (const BandLoop& loop : band_) {
    const Polynomial counter = Polynomial::Symbol(nest_.loops[loop.number].symbol);
    const Polynomial passed = in_later(counter) - counter;
    system.AddValue(loop.down ? -passed : passed);
  }
  if (StaysInRows(earlier) && StaysInRows(later)) {
    for (size_t dimension = 0; dimension < earlier.index.size(); ++dimension)
      system.AddEquation(in_later(later.index[dimension]) - earlier.index[dimension]);
  } else {
    system.AddEquation(in_later(FlatIndex(nest_, later)) - FlatIndex(nest_, earlier));
  }
  std::vector<std::string> symbols = primed;
  symbols.push_back(distance);
  symbols.insert(symbols.end(), plain.rbegin(), plain.rend());
  if (!system.Solve(symbols)) return;
  std::string text;
  for (const auto* list : {&system.values(), &system.facts()})
    for (const Polynomial& polynomial : *list) absl::StrAppend(&text, polynomial.ToString(), "; ");
  if (seen_.insert(text).second) meetings_.push_back({system.values(), system.facts()});
}

}  // namespace fusion
