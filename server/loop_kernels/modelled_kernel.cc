#include "server/loop_kernels/modelled_kernel.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/loop_kernels/formula.h"
#include "server/loops/build_c.h"
#include "server/loops/footprint.h"
#include "server/parse/error_list.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

template <class Function>
ThreadWork Combined(const ThreadWork& a, const ThreadWork& b, const Function& function) {
  return {function(a.operations, b.operations), function(a.coalesced_reads, b.coalesced_reads),
          function(a.scattered_reads, b.scattered_reads), function(a.coalesced_writes, b.coalesced_writes),
          function(a.scattered_writes, b.scattered_writes)};
}
template <class Function>
ThreadWork Each(const ThreadWork& work, const Function& function) {
  return Combined(work, work, [&](const Polynomial& a, const Polynomial&) { return function(a); });
}
ThreadWork operator+(const ThreadWork& a, const ThreadWork& b) {
  return Combined(a, b, [](const Polynomial& x, const Polynomial& y) { return x + y; });
}

// Walks a region as BuildNest does, so that it meets the loops in the order of their numbers.
class RegionCounter {
 public:
  RegionCounter(const CRegion& region, std::shared_ptr<Nest> nest)
      : nest_(std::move(nest)), kernel_loops_(KernelsOf(*nest_)) {
    AddAssigned(*region.statement);
    for (const CVariable& variable : region.scope) {
      if (variable.array) continue;
      Polynomial value = Polynomial::Inexact();
      if (variable.initial != nullptr && IsIntegerType(variable.type)) value = Value(*variable.initial);
      if (!value.exact() && variable.constant) value = Polynomial(*variable.constant);
      if (value.exact()) names_[variable.name] = std::move(value);
    }
    for (size_t i = 0; i < nest_->accesses.size(); ++i) {
      const SourcePosition& position = nest_->accesses[i].position;
      const std::string& name = nest_->arrays[nest_->accesses[i].array].variable.name;
      accesses_[{position.line, position.column, name}] = &nest_->accesses[i];
    }
    trips_.resize(nest_->loops.size());
  }

  std::vector<ModelledKernel> Count(const CStatement& statement) {
    Walk(statement);
    std::map<std::string, std::string> variables;
    for (const auto& [name, value] : names_)
      for (const NestQuotient& quotient : nest_->quotients)
        if (value == Polynomial::Symbol(quotient.symbol)) variables.emplace(quotient.symbol, name);
    for (ModelledKernel& kernel : kernels_) kernel.nest = nest_, kernel.variables = variables;
    return std::move(kernels_);
  }

 private:
  // --- Values of integers ---
  void AddAssigned(const CStatement& statement) {
    if (statement.kind == Kind::kAssignment) assigned_.insert(statement.target->text);
    for (const CStatementPtr& inner : statement.body) AddAssigned(*inner);
  }
  // Unlike that of a nest, a value may have quotients of counters.
  Polynomial Value(const CExpression& expression) {
    using Expression = CExpression::Kind;
    const auto operand = [&](size_t i) { return Value(*expression.operands[i]); };
    switch (expression.kind) {
      case Expression::kInteger:
        return Polynomial(expression.integer);
      case Expression::kName: {
        if (assigned_.count(expression.text) > 0) return Polynomial::Inexact();
        const auto known = names_.find(expression.text);
        return known == names_.end() ? Polynomial::Symbol(expression.text) : known->second;
      }
      case Expression::kUnary:
        return expression.text == "-" ? -operand(0) : Polynomial::Inexact();
      case Expression::kCast:
        return IsIntegerType(expression.type) ? operand(0) : Polynomial::Inexact();
      case Expression::kBinary:
        if (expression.text == "+") return operand(0) + operand(1);
        if (expression.text == "-") return operand(0) - operand(1);
        if (expression.text == "*") return operand(0) * operand(1);
        if (expression.text == "/") return Quotient(operand(0), operand(1));
        if (expression.text == "%") return operand(0) - Quotient(operand(0), operand(1)) * operand(1);
        return Polynomial::Inexact();
      default:
        return Polynomial::Inexact();
    }
  }
  Polynomial Quotient(const Polynomial& numerator, const Polynomial& denominator) {
    if (!numerator.exact() || !denominator.exact() || denominator.IsZero()) return Polynomial::Inexact();
    if (denominator == Polynomial(1)) return numerator;
    if (const auto n = numerator.Constant(), d = denominator.Constant(); n && d) return Polynomial(*n / *d);
    for (const NestQuotient& known : nest_->quotients)
      if (known.numerator == numerator && known.denominator == denominator)
        return Polynomial::Symbol(known.symbol);
    nest_->quotients.push_back({absl::StrCat("(", numerator.ToString(), ")/(", denominator.ToString(), ")"),
                                numerator, denominator});
    return Polynomial::Symbol(nest_->quotients.back().symbol);
  }

  // --- Ranges of loops ---
  // Where an end is the smaller of two, each of them bounds it; the one that other loops matter least to is
  // taken.
  Polynomial TripsOf(const CStatement& loop, int number) {
    Polynomial trips = Polynomial::Inexact();
    for (const Polynomial& low : nest_->loops[number].lows)
      for (const Polynomial& high : nest_->loops[number].highs) {
        Polynomial one = high - low + 1;
        if (!trips.exact() || one.Symbols().size() < trips.Symbols().size()) trips = std::move(one);
      }
    if (!trips.exact()) trips = Value(*TripCount(loop));
    return trips_[number] = trips;
  }
  // Returns the largest value over a loop's range, as far as the signs of coefficients tell which end has it.
  Polynomial Largest(Polynomial polynomial, int number) {
    const NestLoop& loop = nest_->loops[number];
    for (size_t i = 0; i < nest_->quotients.size(); ++i) {  // which may grow
      const NestQuotient quotient = nest_->quotients[i];
      if (!polynomial.Has(quotient.symbol)) continue;
      if (!quotient.numerator.Has(loop.symbol) && !quotient.denominator.Has(loop.symbol)) continue;
      const std::vector<Polynomial> parts = polynomial.CoefficientsOf(quotient.symbol);
      if (quotient.denominator.Has(loop.symbol) ||
          !std::all_of(parts.begin() + 1, parts.end(), HasNoNegativeTerm))
        return Polynomial::Inexact();
      polynomial = polynomial.Substitute(quotient.symbol,
                                         Quotient(Largest(quotient.numerator, number), quotient.denominator));
    }
    const std::vector<Polynomial> parts = polynomial.CoefficientsOf(loop.symbol);
    if (parts.size() < 2) return polynomial;
    const bool rises = std::all_of(parts.begin() + 1, parts.end(), HasNoNegativeTerm) &&
                       (parts.size() == 2 || (!loop.lows.empty() && HasNoNegativeTerm(loop.lows[0])));
    if (!rises && (parts.size() > 2 || !HasNoNegativeTerm(-parts[1]))) return Polynomial::Inexact();
    const std::vector<Polynomial>& ends = rises ? loop.highs : loop.lows;
    if (!ends.empty()) return polynomial.Substitute(loop.symbol, ends[0]);
    return rises ? polynomial.Substitute(loop.symbol, trips_[number] - 1) : Polynomial::Inexact();
  }
  Polynomial LargestOver(Polynomial polynomial, const std::vector<int>& loops) {
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
      polynomial = Largest(std::move(polynomial), *loop);
    return polynomial;
  }

  // --- The walk ---
  ThreadWork Walk(const CStatement& statement) {
    ThreadWork work;
    switch (statement.kind) {
      case Kind::kBlock:
      case Kind::kSchedule: {
        const auto before = names_;
        for (const CStatementPtr& inner : statement.body) work = work + Walk(*inner);
        names_ = before;
        return work;
      }
      case Kind::kDeclaration: {
        if (statement.value == nullptr) return work;
        work = Read(*statement.value, true);
        if (IsIntegerType(statement.variable.type)) {
          names_[statement.variable.name] = Value(*statement.value);
          work.operations = Polynomial(0);
        } else if (work.operations.IsZero()) {
          work.operations = Polynomial(1);
        }
        return work;
      }
      case Kind::kAssignment: {
        work = Read(*statement.value, true);
        const bool compound = statement.operation != "=";
        if (compound || work.operations.IsZero()) work.operations = work.operations + 1;
        if (statement.target->kind != CExpression::Kind::kSubscript) return work;
        for (const CExpressionPtr& index : statement.target->operands) work = work + Read(*index, false);
        if (compound) work = work + Access(*statement.target, false);
        return work + Access(*statement.target, true);
      }
      case Kind::kIf: {
        work = Walk(*statement.body[0]);
        if (statement.body.size() > 1) work = Combined(work, Walk(*statement.body[1]), AtMostEither);
        return Read(*statement.value, true) + work;
      }
      case Kind::kFor:
        return statement.meta && path_.empty() ? Kernel(statement) : Loop(statement);
    }
    return work;
  }

  // A factor of words that a register holds while the loop runs, so that they do not count in each iteration.
  static std::string HeldSymbol(int loop) { return absl::StrCat("held@", loop); }

  ThreadWork Loop(const CStatement& statement) {
    const int number = next_loop_++;
    const Polynomial trips = TripsOf(statement, number);
    const bool on_host = path_.empty() && !statement.meta;
    const auto names = names_;
    const auto lanes = lanes_;
    const int metas = metas_;
    if (statement.meta) {
      ++metas_;
      Polynomial& extent = metas_ <= block_metas_ ? kernels_.back().counts.blocks : lanes_;
      extent = extent * LargestOver(trips, path_);
      if (!HasMeta(*statement.body[0]))
        kernels_.back().counts.threads = AtMostEither(kernels_.back().counts.threads, lanes_);
    }
    names_[statement.variable.name] = nest_->loops[number].value;
    (on_host ? host_ : path_).push_back(number);
    ThreadWork work = Walk(*statement.body[0]);
    (on_host ? host_ : path_).pop_back();
    names_ = names, lanes_ = lanes, metas_ = metas;
    return Each(work, [&](const Polynomial& count) {
      const Polynomial largest = Largest(count, number);
      if (statement.meta || largest.IsZero()) return largest;
      const std::vector<Polynomial> parts = largest.CoefficientsOf(HeldSymbol(number));
      return parts.size() < 2 ? largest * trips : parts[0] * trips + parts[1];
    });
  }

  ThreadWork Kernel(const CStatement& statement) {
    const int root = next_loop_;
    const NestLoop& loop = nest_->loops[root];
    kernels_.emplace_back();
    kernels_.back().counts.blocks = kernels_.back().launches = lanes_ = Polynomial(1);
    kernels_.back().counts.block_words = Polynomial::Inexact();
    block_metas_ = MetaDepth(statement) / 2;
    metas_ = 0;
    ThreadWork work = Loop(statement);
    ModelledKernel& kernel = kernels_.back();
    kernel.name = absl::StrCat(loop.counter, " at ", loop.position.line, ":", loop.position.column);
    kernel.counts.thread = std::move(work);
    for (const KernelLoops& loops : kernel_loops_)
      if (loops.root == root) {
        kernel.granularity = loops.granularity;
        kernel.counts.block_words = FootprintOf(*nest_, loops, false).words;
      }
    for (size_t i = 0; i < host_.size(); ++i)
      kernel.launches =
          kernel.launches *
          LargestOver(trips_[host_[i]], {host_.begin(), host_.begin() + static_cast<std::ptrdiff_t>(i)});
    const auto most = [&](const Polynomial& count) { return LargestOver(count, host_); };
    kernel.most = {most(kernel.counts.blocks), most(kernel.counts.threads), Each(kernel.counts.thread, most),
                   most(kernel.counts.block_words)};
    return {};
  }

  // --- Expressions ---
  // Operators in indices do not count, what they read does.
  ThreadWork Read(const CExpression& expression, bool counts) {
    using Expression = CExpression::Kind;
    ThreadWork work;
    const bool subscript = expression.kind == Expression::kSubscript;
    for (const CExpressionPtr& operand : expression.operands)
      work = work + Read(*operand, counts && !subscript);
    if (subscript) return work + Access(expression, false);
    if (counts && !expression.operands.empty() && expression.kind != Expression::kCast)
      work.operations = work.operations + 1;
    return work;
  }
  ThreadWork Access(const CExpression& subscript, bool writes) {
    const auto found = accesses_.find({subscript.position.line, subscript.position.column, subscript.text});
    if (found == accesses_.end() || nest_->arrays[found->second->array].local || kernels_.empty()) return {};
    const NestAccess& access = *found->second;
    const NestArray& array = nest_->arrays[access.array];
    Polynomial entries(1);
    for (const Polynomial& extent : array.extents) entries = entries * extent;
    kernels_.back().arrays[array.variable.name] = entries;
    bool coalesced = false;
    const Polynomial flat = FlatIndex(*nest_, access);
    for (int loop : access.loops) {  // the innermost one over threads decides
      if (nest_->loops[loop].claim != Claim::kMetaFor || !flat.exact()) continue;
      const std::vector<Polynomial> parts = flat.CoefficientsOf(nest_->loops[loop].symbol);
      coalesced = parts.size() == 1 ||
                  (parts.size() == 2 && (parts[1] == Polynomial(1) || parts[1] == Polynomial(-1)));
    }
    const CType type = array.variable.type;
    Polynomial words(type == CType::kDouble || type == CType::kLong ? 2 : 1);
    for (int loop : access.loops) {
      const NestLoop& one = nest_->loops[loop];
      const bool innermost = loop == access.loops.back() && one.claim != Claim::kMetaFor;
      if ((one.parts || innermost) && flat.exact() && !flat.Has(one.symbol))
        words = words * Polynomial::Symbol(HeldSymbol(loop));
    }
    ThreadWork work;
    (writes ? (coalesced ? work.coalesced_writes : work.scattered_writes)
            : (coalesced ? work.coalesced_reads : work.scattered_reads)) = words;
    return work;
  }

  const std::shared_ptr<Nest> nest_;
  const std::vector<KernelLoops> kernel_loops_;
  std::set<std::string> assigned_;
  std::map<std::string, Polynomial> names_;
  // A place and an array name an access, as loops that no text has are all at one place.
  std::map<std::tuple<int, int, std::string>, const NestAccess*> accesses_;
  std::vector<Polynomial> trips_;  // by loop
  std::vector<ModelledKernel> kernels_;
  std::vector<int> host_, path_;  // loops around the statement, outside and inside of a kernel
  int next_loop_ = 0, metas_ = 0, block_metas_ = 0;
  Polynomial lanes_;
};

}  // namespace

Polynomial AtMostEither(const Polynomial& a, const Polynomial& b) {
  if (HasNoNegativeTerm(a - b)) return a;
  return HasNoNegativeTerm(b - a) ? b : a + b;
}

std::vector<ModelledKernel> ModelledKernels(const MappedLoops& mapped) {
  std::vector<ModelledKernel> kernels;
  for (const CRegion& region : mapped.program.regions) {
    ErrorList scratch("");
    RegionCounter counter(region, BuildNest(mapped.program, region, &scratch));
    for (ModelledKernel& kernel : counter.Count(*region.statement)) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace fusion
