#include "compiler/partition/shape.h"

#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "compiler/partition/ranges.h"

namespace fusion {

using namespace llvm;

namespace {

// Factors of a product that do not change in the loop, sorted, and its constant factor.
struct Term {
  int64_t constant = 1;
  std::vector<const SCEV*> unknown;  // of one kind: numbers that are known before the loop
  const SCEV* rest = nullptr;        // a counter from 0 by 1, or null
};

// The sum of terms that a number is: counters by themselves, everything multiplied out.
class Terms {
 public:
  Terms(ExactNumbers& numbers) : numbers_(numbers) {}
  bool Add(const SCEV* number, const Term& factor) {
    ScalarEvolution& evolution = numbers_.evolution();
    if (auto* constant = dyn_cast<SCEVConstant>(number)) {
      if (constant->getAPInt().getSignificantBits() > 62) return false;
      Term term = factor;
      if (__builtin_mul_overflow(term.constant, constant->getAPInt().getSExtValue(), &term.constant))
        return false;
      return Keep(term);
    }
    if (auto* sum = dyn_cast<SCEVAddExpr>(number)) {
      return std::all_of(sum->operands().begin(), sum->operands().end(),
                         [&](const SCEV* operand) { return Add(operand, factor); });
    }
    if (auto* counter = dyn_cast<SCEVAddRecExpr>(number)) {
      if (!counter->isAffine()) return false;
      const SCEV* step = counter->getStepRecurrence(evolution);
      const SCEV* count =
          evolution.getAddRecExpr(evolution.getZero(counter->getType()), evolution.getOne(counter->getType()),
                                  counter->getLoop(), SCEV::FlagAnyWrap);
      if (!Add(counter->getStart(), factor)) return false;
      if (counter == count) {
        Term term = factor;
        if (term.rest != nullptr) return false;
        term.rest = count;
        return Keep(term);
      }
      Term term = factor;
      if (term.rest != nullptr) return false;
      term.rest = count;
      return Add(step, term);
    }
    if (auto* product = dyn_cast<SCEVMulExpr>(number)) {
      // Operands that are no sums go into the factor; one sum may remain.
      Term term = factor;
      const SCEV* sum = nullptr;
      for (const SCEV* operand : product->operands()) {
        if (auto* constant = dyn_cast<SCEVConstant>(operand)) {
          if (constant->getAPInt().getSignificantBits() > 62 ||
              __builtin_mul_overflow(term.constant, constant->getAPInt().getSExtValue(), &term.constant))
            return false;
        } else if (isa<SCEVAddExpr>(operand) || isa<SCEVAddRecExpr>(operand)) {
          if (sum != nullptr) return false;
          sum = operand;
        } else if (!Unknown(operand, term)) {
          return false;
        }
      }
      return sum == nullptr ? Keep(term) : Add(sum, term);
    }
    Term term = factor;
    return Unknown(number, term) && Keep(term);
  }
  const std::vector<Term>& all() const { return all_; }

 private:
  bool Unknown(const SCEV* number, Term& term) {
    if (!numbers_.evolution().isLoopInvariant(number, &numbers_.loop())) return false;
    term.unknown.insert(std::lower_bound(term.unknown.begin(), term.unknown.end(), number), number);
    return true;
  }
  bool Keep(const Term& term) {
    for (Term& known : all_)
      if (known.rest == term.rest && known.unknown == term.unknown)
        return !__builtin_add_overflow(known.constant, term.constant, &known.constant);
    all_.push_back(term);
    return true;
  }

  ExactNumbers& numbers_;
  std::vector<Term> all_;
};

std::vector<Term> TermsOf(const SCEV* number, ExactNumbers& numbers) {
  Terms terms(numbers);
  return terms.Add(number, {}) ? terms.all() : std::vector<Term>();
}

const SCEV* Product(int64_t constant, const std::vector<const SCEV*>& unknown, ExactNumbers& numbers) {
  SmallVector<const SCEV*, 4> factors(unknown.begin(), unknown.end());
  factors.push_back(numbers.evolution().getConstant(numbers.type(), static_cast<uint64_t>(constant), true));
  return numbers.evolution().getMulExpr(factors);
}

// Returns true when all of `factors` are among `of`; then `left` are the others.
bool Divides(const std::vector<const SCEV*>& factors, const std::vector<const SCEV*>& of,
             std::vector<const SCEV*>& left) {
  left.clear();
  size_t at = 0;
  for (const SCEV* factor : of)
    if (at < factors.size() && factors[at] == factor)
      ++at;
    else
      left.push_back(factor);
  return at == factors.size();
}

// Sizes of the elements of constant arrays that an address is computed with.
void StridesOfTypes(const Value* address, std::set<int64_t, std::greater<>>& strides,
                    const DataLayout& layout) {
  for (auto* element = dyn_cast<GEPOperator>(address); element != nullptr;
       element = dyn_cast<GEPOperator>(element->getPointerOperand()))
    for (auto index = gep_type_begin(element); index != gep_type_end(element); ++index)
      if (index.isSequential()) {
        const TypeSize size = index.getSequentialElementStride(layout);
        if (!size.isScalable() && size.getFixedValue() > 0)
          strides.insert(static_cast<int64_t>(size.getFixedValue()));
      }
}

ArrayShape OfConstants(const std::set<int64_t, std::greater<>>& strides, ExactNumbers& numbers) {
  ArrayShape shape;
  int64_t last = 0;
  for (int64_t stride : strides)
    if (stride > 1 && (last == 0 || last % stride == 0)) {
      shape.strides.push_back(numbers.evolution().getConstant(numbers.type(), static_cast<uint64_t>(stride)));
      last = stride;
    }
  shape.strides.push_back(numbers.evolution().getOne(numbers.type()));
  return shape;
}

}  // namespace

const SCEV* Dimension(const ArrayShape& shape, size_t at, ExactNumbers& numbers) {
  const std::vector<Term> outer = TermsOf(shape.strides[at - 1], numbers),
                          inner = TermsOf(shape.strides[at], numbers);
  std::vector<const SCEV*> left;
  if (outer.size() != 1 || inner.size() != 1 || outer[0].constant % inner[0].constant != 0 ||
      !Divides(inner[0].unknown, outer[0].unknown, left))
    return nullptr;
  return Product(outer[0].constant / inner[0].constant, left, numbers);
}

std::vector<ArrayShape> PossibleShapes(const LoopAccesses& accesses, unsigned array, ExactNumbers& numbers) {
  std::set<int64_t, std::greater<>> of_types, of_counters;
  std::vector<std::pair<size_t, Term>> unknown;  // strides of unknown size, by their number of factors
  int64_t unit = 0;
  for (const LoopAccess& access : accesses.accesses) {
    if (access.array != array || access.offset == nullptr) continue;
    unit = std::gcd(unit, access.bytes);
    StridesOfTypes(getLoadStorePointerOperand(access.instruction), of_types,
                   access.instruction->getModule()->getDataLayout());
    for (const Term& term : TermsOf(access.offset, numbers)) {
      if (term.rest != nullptr && term.unknown.empty() && term.constant != INT64_MIN)
        of_counters.insert(std::abs(term.constant));
      if (term.rest != nullptr && !term.unknown.empty()) unknown.push_back({term.unknown.size(), term});
    }
  }
  std::vector<ArrayShape> shapes;
  shapes.push_back({{numbers.evolution().getOne(numbers.type())}});
  std::stable_sort(unknown.begin(), unknown.end(),
                   [](const auto& one, const auto& other) { return one.first > other.first; });
  ArrayShape parametric;
  std::vector<const SCEV*> last;
  for (const auto& [factors, term] : unknown) {
    std::vector<const SCEV*> left;
    if (!parametric.strides.empty() && (term.unknown == last || !Divides(term.unknown, last, left))) continue;
    parametric.strides.push_back(Product(unit, term.unknown, numbers));
    last = term.unknown;
  }
  if (!parametric.strides.empty()) {
    parametric.strides.push_back(Product(unit, {}, numbers));
    if (unit > 1) parametric.strides.push_back(numbers.evolution().getOne(numbers.type()));
    shapes.push_back(std::move(parametric));
  }
  if (of_types.size() > 1) shapes.push_back(OfConstants(of_types, numbers));
  if (of_counters.size() > 1 && of_counters != of_types) shapes.push_back(OfConstants(of_counters, numbers));
  return shapes;
}

namespace {

// i * n + (n - 1) - j is row i + 1 and column -1 - j by its terms, and row i, column n - 1 - j to people.
void BringIntoRows(std::vector<const SCEV*>& subscripts, const ArrayShape& shape, ExactNumbers& numbers) {
  ScalarEvolution& evolution = numbers.evolution();
  for (size_t at = subscripts.size() - 1; at > 0; --at) {
    const SCEV* size = Dimension(shape, at, numbers);
    if (size == nullptr) continue;
    Ranges ranges(numbers);
    const LinearBound least = ranges.Least(subscripts[at]), most = ranges.Most(subscripts[at]);
    const SCEV* one = nullptr;
    if (most.constant != nullptr && evolution.isKnownNegative(most.constant) &&
        evolution.isKnownNonPositive(most.slope)) {
      one = evolution.getOne(numbers.type());
    } else if (least.constant != nullptr &&
               evolution.isKnownNonNegative(evolution.getMinusSCEV(least.constant, size)) &&
               evolution.isKnownNonNegative(least.slope)) {
      one = evolution.getMinusOne(numbers.type());
    }
    if (one == nullptr) continue;
    subscripts[at] = evolution.getAddExpr(subscripts[at], evolution.getMulExpr(one, size));
    subscripts[at - 1] = evolution.getMinusSCEV(subscripts[at - 1], one);
  }
}

}  // namespace

std::vector<const SCEV*> Subscripts(const SCEV* offset, const ArrayShape& shape, ExactNumbers& numbers) {
  ScalarEvolution& evolution = numbers.evolution();
  if (shape.strides.size() == 1) return {offset};
  std::vector<Term> strides;
  for (const SCEV* stride : shape.strides) strides.push_back(TermsOf(stride, numbers).at(0));
  std::vector<SmallVector<const SCEV*, 4>> sums(strides.size());
  for (Term term : TermsOf(offset, numbers)) {
    // Each term goes to the largest strides that it holds, and what remains of it to the smaller ones.
    for (size_t at = 0; at < strides.size() && term.constant != 0; ++at) {
      std::vector<const SCEV*> left;
      if (!Divides(strides[at].unknown, term.unknown, left)) continue;
      int64_t times = term.constant / strides[at].constant;
      const int64_t rest = term.constant % strides[at].constant;
      if (rest != 0) {
        if (!term.unknown.empty()) continue;
        const bool holds_elements = at + 2 >= strides.size();  // their bytes are counted from 0
        if (holds_elements ? rest < 0 : 2 * std::abs(rest) > strides[at].constant) times += rest < 0 ? -1 : 1;
      }
      if (times == 0) continue;
      const SCEV* part = Product(times, left, numbers);
      sums[at].push_back(term.rest == nullptr ? part : evolution.getMulExpr(part, term.rest));
      term.constant -= times * strides[at].constant;
    }
    if (term.constant != 0) return {};
  }
  std::vector<const SCEV*> subscripts;
  for (auto& sum : sums)
    subscripts.push_back(sum.empty() ? evolution.getZero(numbers.type()) : evolution.getAddExpr(sum));
  BringIntoRows(subscripts, shape, numbers);
  SmallVector<const SCEV*, 4> again;
  for (size_t at = 0; at < strides.size(); ++at)
    again.push_back(evolution.getMulExpr(subscripts[at], shape.strides[at]));
  const SCEV* sum = evolution.getAddExpr(again);
  if (!evolution.getMinusSCEV(sum, offset)->isZero()) return {};
  numbers.Limit(sum, 62);
  return subscripts;
}

}  // namespace fusion
