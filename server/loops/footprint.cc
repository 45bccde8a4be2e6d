#include "server/loops/footprint.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "server/polynomial/prover.h"

namespace fusion {
namespace {

bool IsAround(const Nest& nest, int outer, int loop) {
  for (int at = loop; at >= 0; at = nest.loops[at].parent)
    if (at == outer) return true;
  return false;
}

class Boxes {
 public:
  Boxes(const Nest& nest, const KernelLoops& kernel, bool single)
      : nest_(nest), kernel_(kernel), single_(single), prover_(ReducedFacts()) {
    for (int loop : kernel.local) local_.insert(nest.loops[loop].symbol);
  }

  Footprint Find() {
    // Branches of conditions that are the same for the whole kernel, and what is under none of them.
    std::map<std::string, std::vector<const NestAccess*>> branches;
    std::vector<const NestAccess*> always;
    std::set<int> left_out;
    std::vector<int> order;
    for (const NestAccess& access : nest_.accesses) {
      if (access.loops.empty() || !Contains(access.loops, kernel_.root) || nest_.arrays[access.array].local)
        continue;
      if (std::find(order.begin(), order.end(), access.array) == order.end()) order.push_back(access.array);
      const auto guard = std::find_if(access.guards.begin(), access.guards.end(),
                                      [&](const NestGuard& one) { return IsUniform(one); });
      if (guard == access.guards.end())
        always.push_back(&access);
      else
        branches[guard->key + (guard->holds ? " yes" : " no")].push_back(&access);
      if (!DimensionsOf(access)) left_out.insert(access.array);
    }
    Footprint footprint;
    for (int array : order)
      if (left_out.count(array) == 0) footprint.arrays.push_back(nest_.arrays[array].variable.name);
    if (branches.empty()) branches[""] = {};
    std::vector<Polynomial> each;
    for (auto& [key, accesses] : branches) {
      std::vector<const NestAccess*> together = always;
      together.insert(together.end(), accesses.begin(), accesses.end());
      std::erase_if(together, [&](const NestAccess* access) { return left_out.count(access->array) > 0; });
      each.push_back(Words(together));
    }
    const bool alike =
        std::all_of(each.begin(), each.end(), [&](const Polynomial& words) { return words == each[0]; });
    footprint.words = each[0];
    if (!alike)
      for (size_t i = 1; i < each.size(); ++i) footprint.words = footprint.words + each[i];
    return footprint;
  }

 private:
  static bool Contains(const std::vector<int>& loops, int loop) {
    return std::find(loops.begin(), loops.end(), loop) != loops.end();
  }

  bool IsUniform(const NestGuard& guard) const {
    if (guard.of_memory) return false;
    return std::none_of(guard.symbols.begin(), guard.symbols.end(), [&](const std::string& symbol) {
      for (size_t loop = 0; loop < nest_.loops.size(); ++loop)
        if (nest_.loops[loop].symbol == symbol) return IsAround(nest_, kernel_.root, static_cast<int>(loop));
      return false;
    });
  }

  std::vector<Polynomial> ReducedFacts() const {
    std::vector<Polynomial> facts;
    for (const Polynomial& fact : nest_.facts) facts.push_back(Reduced(fact));
    return facts;
  }

  Polynomial Reduced(Polynomial polynomial) const {
    if (!single_ || !kernel_.granular) return polynomial;
    polynomial = polynomial.Substitute(nest_.loops[*kernel_.granular].symbol, Polynomial(0));
    return polynomial.Substitute(kernel_.granularity, Polynomial(1));
  }

  std::vector<Counter> Counters(const NestAccess& access) const {
    std::vector<Counter> counters;
    for (int loop : access.loops) {
      Counter counter{.name = nest_.loops[loop].symbol, .lows = {}, .highs = {}};
      for (const Polynomial& low : nest_.loops[loop].lows) counter.lows.push_back(Reduced(low));
      for (const Polynomial& high : nest_.loops[loop].highs) counter.highs.push_back(Reduced(high));
      counters.push_back(std::move(counter));
    }
    return counters;
  }

  std::vector<Polynomial> Conditions(const NestAccess& access) const {
    std::vector<Polynomial> conditions;
    for (int loop : access.loops)
      for (const Polynomial& condition : nest_.loops[loop].conditions)
        conditions.push_back(Reduced(condition));
    return conditions;
  }

  // The index, with products by an extent taken apart: c[i*N + j] is c[i][j] where j is proved to be below N.
  std::optional<std::vector<Polynomial>> DimensionsOf(const NestAccess& access) {
    std::vector<Polynomial> dimensions;
    for (const Polynomial& index : access.index) {
      if (!index.exact()) return std::nullopt;
      dimensions.push_back(Reduced(index));
    }
    if (dimensions.size() != 1) return dimensions;
    const Polynomial whole = dimensions[0];
    for (const std::string& symbol : whole.Symbols()) {
      const std::vector<Polynomial> parts = whole.CoefficientsOf(symbol);
      if (parts.size() != 2 || !HasLocal(parts[1]) || !nest_.arrays[access.array].extents[0].Has(symbol))
        continue;
      const std::vector<Counter> counters = Counters(access);
      const Polynomial extent = Polynomial::Symbol(symbol);
      const std::vector<Polynomial> conditions = Conditions(access);
      if (prover_.IsNeverNegative(parts[0], counters, conditions) &&
          prover_.IsNeverNegative(extent - 1 - parts[0], counters, conditions))
        return std::vector<Polynomial>{parts[1], parts[0]};
    }
    return dimensions;
  }
  bool HasLocal(const Polynomial& polynomial) const {
    const std::set<std::string> symbols = polynomial.Symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](const std::string& symbol) { return local_.count(symbol) > 0; });
  }

  // A split has what changes in a block, and the rest without its constant.
  struct Split {
    Polynomial local, uniform;
    int64_t constant = 0;
  };
  Split SplitOf(const Polynomial& polynomial) const {
    Split split;
    split.uniform = polynomial;
    for (const std::string& symbol : polynomial.Symbols())
      if (local_.count(symbol) > 0) split.uniform = split.uniform.Substitute(symbol, Polynomial(0));
    split.local = polynomial - split.uniform;
    Polynomial constant = split.uniform;
    for (const std::string& symbol : split.uniform.Symbols())
      constant = constant.Substitute(symbol, Polynomial(0));
    split.constant = constant.Constant().value_or(0);
    split.uniform = split.uniform - constant;
    return split;
  }

  // The largest value less the smallest, over the counters in a block.
  Polynomial SpanOf(const Polynomial& local, const NestAccess& access) {
    Polynomial largest = local, smallest = local;
    const std::vector<Counter> counters = Counters(access);
    for (auto counter = counters.rbegin(); counter != counters.rend(); ++counter) {
      if (local_.count(counter->name) == 0 || !largest.exact()) continue;
      if (!largest.Has(counter->name) && !smallest.Has(counter->name)) continue;
      if (counter->lows.empty() || counter->highs.empty()) return Polynomial::Inexact();
      for (Polynomial* end : {&largest, &smallest}) {
        const std::vector<Polynomial> coefficients = end->CoefficientsOf(counter->name);
        if (coefficients.size() < 2) continue;
        if (coefficients.size() > 2) return Polynomial::Inexact();
        const std::vector<Polynomial> conditions = Conditions(access);
        const bool rises = prover_.IsNeverNegative(coefficients[1], counters, conditions);
        if (!rises && !prover_.IsNeverNegative(-coefficients[1], counters, conditions))
          return Polynomial::Inexact();
        const bool high = rises == (end == &largest);
        *end = end->Substitute(counter->name, high ? counter->highs[0] : counter->lows[0]);
      }
    }
    return largest - smallest;
  }

  Polynomial Words(const std::vector<const NestAccess*>& accesses) {
    struct Box {
      std::vector<Polynomial> spans;
      std::vector<int64_t> least, most;  // constants
    };
    std::map<std::pair<int, std::string>, Box> boxes;  // by array, and what is the same but for constants
    for (const NestAccess* access : accesses) {
      const std::vector<Polynomial> dimensions = *DimensionsOf(*access);
      std::string key;
      std::vector<Split> splits;
      for (const Polynomial& dimension : dimensions) {
        splits.push_back(SplitOf(dimension));
        key += splits.back().uniform.ToString() + " | " + splits.back().local.ToString() + " ; ";
      }
      const auto [at, added] = boxes.try_emplace({access->array, key});
      Box& box = at->second;
      for (size_t i = 0; i < splits.size(); ++i) {
        if (added) {
          box.spans.push_back(SpanOf(splits[i].local, *access));
          box.least.push_back(splits[i].constant);
          box.most.push_back(splits[i].constant);
        }
        box.least[i] = std::min(box.least[i], splits[i].constant);
        box.most[i] = std::max(box.most[i], splits[i].constant);
      }
    }
    Polynomial words;
    for (const auto& [key, box] : boxes) {
      Polynomial entries(1);
      for (size_t i = 0; i < box.spans.size(); ++i)
        entries = entries * (box.spans[i] + 1 + (box.most[i] - box.least[i]));
      const CType type = nest_.arrays[key.first].variable.type;
      words = words + entries * (type == CType::kDouble || type == CType::kLong ? 2 : 1);
    }
    return words;
  }

  const Nest& nest_;
  const KernelLoops& kernel_;
  const bool single_;
  Prover prover_;
  std::set<std::string> local_;
};

}  // namespace

std::vector<KernelLoops> KernelsOf(const Nest& nest) {
  std::vector<KernelLoops> kernels;
  const auto is_meta = [&](int loop) { return nest.loops[loop].claim == Claim::kMetaFor; };
  for (int root = 0; root < static_cast<int>(nest.loops.size()); ++root) {
    bool inside = false;  // of another one
    for (int at = nest.loops[root].parent; at >= 0; at = nest.loops[at].parent) inside |= is_meta(at);
    if (!is_meta(root) || inside) continue;
    KernelLoops kernel{.root = root, .metas = {}, .local = {}, .granular = {}, .granularity = ""};
    for (int loop = root; loop < static_cast<int>(nest.loops.size()); ++loop)
      if (is_meta(loop) && IsAround(nest, root, loop)) kernel.metas.push_back(loop);
    if (kernel.metas.size() % 2 != 0) continue;
    const int first_thread = kernel.metas[kernel.metas.size() / 2], last_thread = kernel.metas.back();
    for (int loop = root; loop < static_cast<int>(nest.loops.size()); ++loop)
      if (IsAround(nest, first_thread, loop)) kernel.local.push_back(loop);
    for (int loop : kernel.local) {
      const NestLoop& one = nest.loops[loop];
      if (one.parent != last_thread || one.highs.size() != 1) continue;
      const std::set<std::string> symbols = (one.highs[0] + 1).Symbols();
      if (symbols.size() == 1 && one.highs[0] + 1 == Polynomial::Symbol(*symbols.begin())) {
        kernel.granular = loop;
        kernel.granularity = *symbols.begin();
        break;
      }
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Footprint FootprintOf(const Nest& nest, const KernelLoops& kernel, bool single) {
  return Boxes(nest, kernel, single).Find();
}

}  // namespace fusion
