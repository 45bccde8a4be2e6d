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
    std::map<std::string, std::vector<int>> branches;
    std::vector<int> always;
    Footprint footprint;
    for (int number : Touched()) {
      const NestAccess& access = nest_.accesses[number];
      const std::string& name = nest_.arrays[access.array].variable.name;
      if (std::find(footprint.arrays.begin(), footprint.arrays.end(), name) == footprint.arrays.end())
        footprint.arrays.push_back(name);
      const NestGuard* guard = UniformGuard(access);
      if (guard == nullptr)
        always.push_back(number);
      else
        branches[guard->key + (guard->holds ? " yes" : " no")].push_back(number);
    }
    if (branches.empty()) branches[""] = {};
    std::vector<Polynomial> each;
    for (auto& [key, accesses] : branches) {
      std::vector<int> together = always;
      together.insert(together.end(), accesses.begin(), accesses.end());
      each.push_back(Words(Cover(together)));
    }
    const bool alike =
        std::all_of(each.begin(), each.end(), [&](const Polynomial& words) { return words == each[0]; });
    footprint.words = each[0];
    if (!alike)
      for (size_t i = 1; i < each.size(); ++i) footprint.words = footprint.words + each[i];
    return footprint;
  }

  std::vector<TouchedBox> FindBoxes() {
    std::map<std::string, std::vector<int>> by_guard;
    std::vector<std::string> order;
    for (int number : Touched()) {
      const NestGuard* guard = UniformGuard(nest_.accesses[number]);
      const std::string key = guard == nullptr ? "" : guard->key + (guard->holds ? " yes" : " no");
      if (by_guard.count(key) == 0) order.push_back(key);
      by_guard[key].push_back(number);
    }
    std::vector<TouchedBox> boxes;
    for (const std::string& key : order)
      for (TouchedBox& box : Cover(by_guard[key])) {
        box.guard = UniformGuard(nest_.accesses[box.uses[0].access]);
        boxes.push_back(std::move(box));
      }
    return boxes;
  }

 private:
  // The accesses in the kernel, of arrays whose indices are polynomials.
  std::vector<int> Touched() {
    std::set<int> left_out;
    std::vector<int> touched;
    for (size_t i = 0; i < nest_.accesses.size(); ++i) {
      const NestAccess& access = nest_.accesses[i];
      if (!Contains(access.loops, kernel_.root) || nest_.arrays[access.array].local) continue;
      touched.push_back(static_cast<int>(i));
      if (!DimensionsOf(access)) left_out.insert(access.array);
    }
    std::erase_if(touched, [&](int number) { return left_out.count(nest_.accesses[number].array) > 0; });
    return touched;
  }
  const NestGuard* UniformGuard(const NestAccess& access) const {
    const auto guard = std::find_if(access.guards.begin(), access.guards.end(),
                                    [&](const NestGuard& one) { return IsUniform(one); });
    return guard == access.guards.end() ? nullptr : &*guard;
  }

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

  struct Dimensions {
    std::vector<Polynomial> indices, strides;
  };
  // The index, with products by an extent taken apart: c[i*N + j] is c[i][j] where j is proved to be below N.
  std::optional<Dimensions> DimensionsOf(const NestAccess& access) {
    std::vector<Polynomial> dimensions;
    for (const Polynomial& index : access.index) {
      if (!index.exact()) return std::nullopt;
      dimensions.push_back(Reduced(index));
    }
    std::vector<Polynomial> strides(dimensions.size(), Polynomial(1));
    for (size_t i = dimensions.size() - 1; i > 0; --i)
      strides[i - 1] = strides[i] * nest_.arrays[access.array].extents[i];
    if (dimensions.size() != 1) return Dimensions{dimensions, strides};
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
        return Dimensions{{parts[1], parts[0]}, {extent, Polynomial(1)}};
    }
    return Dimensions{dimensions, strides};
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

  struct Range {
    Polynomial smallest, largest;  // inexact where they are not known
  };
  // Over the counters in a block.
  Range RangeOf(const Polynomial& local, const NestAccess& access) {
    Range range{local, local};
    const Range unknown{Polynomial::Inexact(), Polynomial::Inexact()};
    const std::vector<Counter> counters = Counters(access);
    for (auto counter = counters.rbegin(); counter != counters.rend(); ++counter) {
      if (local_.count(counter->name) == 0 || !range.largest.exact()) continue;
      if (!range.largest.Has(counter->name) && !range.smallest.Has(counter->name)) continue;
      if (counter->lows.empty() || counter->highs.empty()) return unknown;
      for (Polynomial* end : {&range.largest, &range.smallest}) {
        const std::vector<Polynomial> coefficients = end->CoefficientsOf(counter->name);
        if (coefficients.size() < 2) continue;
        if (coefficients.size() > 2) return unknown;
        const std::vector<Polynomial> conditions = Conditions(access);
        const bool rises = prover_.IsNeverNegative(coefficients[1], counters, conditions);
        if (!rises && !prover_.IsNeverNegative(-coefficients[1], counters, conditions)) return unknown;
        const bool high = rises == (end == &range.largest);
        *end = end->Substitute(counter->name, high ? counter->highs[0] : counter->lows[0]);
      }
    }
    return range;
  }

  // Boxes around these accesses: one for those that differ by constants alone.
  std::vector<TouchedBox> Cover(const std::vector<int>& accesses) {
    struct Growing {
      TouchedBox box;
      std::vector<Split> splits;  // of its first access
      std::vector<int64_t> least, most;
      std::vector<std::vector<int64_t>> constants;  // of each use
    };
    std::vector<Growing> boxes;
    std::map<std::pair<int, std::string>, size_t>
        numbers;  // by array, and what is the same but for constants
    for (int number : accesses) {
      const NestAccess& access = nest_.accesses[number];
      const Dimensions dimensions = *DimensionsOf(access);
      std::string key;
      std::vector<Split> splits;
      std::vector<int64_t> constants;
      for (const Polynomial& index : dimensions.indices) {
        splits.push_back(SplitOf(index));
        constants.push_back(splits.back().constant);
        key += splits.back().uniform.ToString() + " | " + splits.back().local.ToString() + " ; ";
      }
      const auto [at, added] = numbers.try_emplace({access.array, key}, boxes.size());
      if (added) {
        boxes.push_back(
            {.box = {}, .splits = splits, .least = constants, .most = constants, .constants = {}});
        boxes.back().box.array = access.array;
        boxes.back().box.strides = dimensions.strides;
      }
      Growing& one = boxes[at->second];
      for (size_t i = 0; i < splits.size(); ++i) {
        one.least[i] = std::min(one.least[i], constants[i]);
        one.most[i] = std::max(one.most[i], constants[i]);
      }
      one.box.uses.push_back({number, {}});
      one.constants.push_back(std::move(constants));
    }
    std::vector<TouchedBox> covered;
    for (Growing& one : boxes) {
      for (size_t i = 0; i < one.splits.size(); ++i) {
        const Range range = RangeOf(one.splits[i].local, nest_.accesses[one.box.uses[0].access]);
        one.box.first.push_back(one.splits[i].uniform + range.smallest + one.least[i]);
        one.box.extents.push_back(range.largest - range.smallest + 1 + (one.most[i] - one.least[i]));
        for (size_t use = 0; use < one.constants.size(); ++use)
          one.box.uses[use].place.push_back(one.splits[i].local - range.smallest +
                                            (one.constants[use][i] - one.least[i]));
      }
      covered.push_back(std::move(one.box));
    }
    return covered;
  }

  Polynomial Words(const std::vector<TouchedBox>& boxes) {
    Polynomial words;
    for (const TouchedBox& box : boxes) {
      Polynomial entries(1);
      for (const Polynomial& extent : box.extents) entries = entries * extent;
      const CType type = nest_.arrays[box.array].variable.type;
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
      if (is_meta(loop) && IsAround(nest, kernel.metas.empty() ? root : kernel.metas.back(), loop))
        kernel.metas.push_back(loop);
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

std::vector<TouchedBox> BoxesOf(const Nest& nest, const KernelLoops& kernel) {
  return Boxes(nest, kernel, false).FindBoxes();
}

Footprint FootprintOf(const Nest& nest, const KernelLoops& kernel, bool single) {
  return Boxes(nest, kernel, single).Find();
}

}  // namespace fusion
