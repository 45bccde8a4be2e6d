#include "server/loops/diagonals.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "server/loops/build_c.h"
#include "server/loops/diagonal_order.h"

namespace fusion {
namespace {

constexpr int kMostWeight = 4;  // a stencil of all neighbours in two dimensions and time wants 4, 2 and 1
constexpr size_t kMostEnds = 4;

// Weights of which the last is 1, the smallest sums first.
std::vector<std::vector<int>> WeightsInOrder(size_t count) {
  std::vector<std::vector<int>> all = {{}};
  for (size_t i = 0; i + 1 < count; ++i) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& weights : all)
      for (int weight = 0; weight <= kMostWeight; ++weight) {
        longer.push_back(weights);
        longer.back().push_back(weight);
      }
    all = std::move(longer);
  }
  for (std::vector<int>& weights : all) weights.push_back(1);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::accumulate(a.begin(), a.end(), 0) < std::accumulate(b.begin(), b.end(), 0);
  });
  return all;
}

class Band {
 public:
  Band(const Nest& nest, const std::map<const CStatement*, int>& numbers) : nest_(nest), numbers_(numbers) {}

  // Returns false where there are no such loops.
  bool Find(const CStatement& outermost, size_t depth) {
    const CStatement* loop = &outermost;
    while (loops_.size() < depth) {
      const auto number = numbers_.find(loop);
      if (loop->kind != CStatement::Kind::kFor || loop->meta || number == numbers_.end()) return false;
      const NestLoop& known = nest_.loops[number->second];
      if (known.value != Polynomial::Symbol(known.symbol) || !known.bounded || known.lows.empty() ||
          known.highs.empty())
        return false;
      loops_.push_back(loop);
      band_.push_back({.number = number->second, .down = loop->down});
      body_ = loop->body[0];
      loop = Unwrapped(body_).get();
    }
    std::set<std::string> declared, counters;
    AddDeclared(*body_, &declared);
    for (const CStatement* counted : loops_) {
      const std::string& counter = counted->variable.name;
      if (declared.count(counter) > 0 || !counters.insert(counter).second) return false;
    }
    return true;
  }

  std::optional<std::vector<int>> ProvedWeights() const {
    DiagonalOrder order(nest_, band_);
    for (std::vector<int>& weights : WeightsInOrder(band_.size()))
      if (order.IsKept(weights)) return std::move(weights);
    return std::nullopt;
  }

  // Returns nothing where the ends of the times cannot be said outside of the band.
  std::optional<Diagonals> Made(const std::vector<int>& weights,
                                const std::function<std::string(const std::string&)>& fresh) const {
    Polynomial time;
    for (size_t i = 0; i < band_.size(); ++i) {
      const Polynomial part = Symbol(i) * Polynomial(weights[i]);
      time = band_[i].down ? time - part : time + part;
    }
    const CExpressionPtr first = End(time, false), last = End(time, true);
    if (first == nullptr || last == nullptr) return std::nullopt;
    const CStatement& innermost = *loops_.back();
    CType type = CType::kInt;
    for (const CStatement* loop : loops_)
      if (loop->variable.type == CType::kLong) type = CType::kLong;
    const CExpressionPtr now = CName(fresh("w")), own = CName(fresh(innermost.variable.name));
    // The innermost counter is the time less the parts of the others; its negative, where it counts down.
    CExpressionPtr counter = band_.back().down ? CInteger(0) : now;
    for (const bool added : {true, false}) {
      if (!added && band_.back().down) counter = CBinary("-", counter, now);
      for (size_t i = 0; i + 1 < loops_.size(); ++i) {
        if (weights[i] == 0 || (band_[i].down == band_.back().down) == added) continue;
        counter = CBinary(added ? "+" : "-", counter,
                          CBinary("*", CInteger(weights[i]), CName(loops_[i]->variable.name)));
      }
    }
    const auto with_own = [&](const CExpressionPtr& expression) {
      return Replaced(expression, innermost.variable.name, own);
    };
    const CExpressionPtr begun = CBinary(innermost.down ? "<=" : ">=", own, innermost.start);
    CStatementPtr inner = CBlock(
        {CDeclare(innermost.variable.type, own->text, counter),
         CWhere(CAll({begun, with_own(GoesOn(innermost))}), Replaced(body_, innermost.variable.name, own))});
    Diagonals made;
    for (size_t i = loops_.size() - 1; i-- > 0;) {
      auto loop = std::make_shared<CStatement>(*loops_[i]);
      loop->directives.clear();
      loop->body = {inner};
      made.parallel.insert(made.parallel.begin(), loop.get());
      inner = loop;
    }
    const std::shared_ptr<CStatement> times = CCount(now->text, last, inner, false);
    times->position = loops_[0]->position;
    times->directives = loops_[0]->directives;
    times->variable.type = type;
    times->start = first;
    times->relation = "<=";
    made.statement = times;
    return made;
  }

 private:
  Polynomial Symbol(size_t i) const { return Polynomial::Symbol(nest_.loops[band_[i].number].symbol); }

  // Returns the smallest or largest time, or one beyond it.
  CExpressionPtr End(const Polynomial& time, bool largest) const {
    std::vector<Polynomial> ends = {time};
    for (size_t i = band_.size(); i-- > 0;) {
      const NestLoop& loop = nest_.loops[band_[i].number];
      std::vector<Polynomial> further;
      for (const Polynomial& end : ends) {
        const std::vector<Polynomial> coefficients = end.CoefficientsOf(loop.symbol);
        if (coefficients.size() == 1) {
          further.push_back(end);
          continue;
        }
        const std::optional<int64_t> factor = coefficients[1].Constant();
        if (coefficients.size() != 2 || !factor) return nullptr;
        for (const Polynomial& bound : (*factor > 0) == largest ? loop.highs : loop.lows)
          further.push_back(end.Substitute(loop.symbol, bound));
      }
      ends = std::move(further);
    }
    if (ends.empty() || ends.size() > kMostEnds) return nullptr;
    std::map<std::string, std::string> names;
    for (const std::string& parameter : nest_.parameters) names[parameter] = parameter;
    for (int outer = nest_.loops[band_[0].number].parent; outer >= 0; outer = nest_.loops[outer].parent)
      if (nest_.loops[outer].value == Polynomial::Symbol(nest_.loops[outer].symbol))
        names[nest_.loops[outer].symbol] = nest_.loops[outer].counter;
    CExpressionPtr closest;
    for (const Polynomial& end : ends) {
      const CExpressionPtr value = CPolynomial(end, names);
      if (value == nullptr) return nullptr;
      if (closest == nullptr)
        closest = value;
      else
        closest = largest ? CSmaller(closest, value) : CLarger(closest, value);
    }
    return closest;
  }

  const Nest& nest_;
  const std::map<const CStatement*, int>& numbers_;
  std::vector<const CStatement*> loops_;
  std::vector<BandLoop> band_;
  CStatementPtr body_;
};

}  // namespace

std::optional<Diagonals> AlongDiagonals(const CStatement& loop, size_t depth, const Nest& nest,
                                        const std::map<const CStatement*, int>& numbers,
                                        const std::function<std::string(const std::string&)>& fresh) {
  Band band(nest, numbers);
  if (!band.Find(loop, depth)) return std::nullopt;
  const std::optional<std::vector<int>> weights = band.ProvedWeights();
  if (!weights) return std::nullopt;
  return band.Made(*weights, fresh);
}

}  // namespace fusion
