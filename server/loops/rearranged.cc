#include "server/loops/rearranged.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/loops/build_c.h"
#include "server/loops/diagonals.h"
#include "server/loops/split_loops.h"
#include "server/loops/sums.h"

namespace fusion {
namespace {

constexpr size_t kDeepestBand = 3;
constexpr int kMostRearranged = 16;  // loops of a region that are tried

class RegionRearranger {
 public:
  RegionRearranger(const CheckedProgram& checked, size_t number)
      : checked_(checked), number_(number), region_(checked.program.regions[number]) {
    Number(*checked.nests[number]);
    const std::vector<const CStatement*> loops = LoopsOf(*region_.statement);
    for (const CheckedLoop& loop : checked.loops)
      if (loop.region == number) known_.emplace(loops[loop.verdict.loop], loop);
    AddNames(*region_.statement, &taken_);
    for (const CVariable& variable : region_.scope) {
      taken_.insert(variable.name);
      AddNames(variable, &taken_);
    }
    for (const CParameter& parameter : checked.program.parameters) taken_.insert(parameter.name);
  }

  // Returns false where all stays as it is.
  bool Run() {
    bool changed = false;
    while (RearrangeNext(*region_.statement, 0, false)) changed = true;
    return changed;
  }
  const CRegion& region() const { return region_; }
  std::unique_ptr<const Nest> TakeNest() { return std::move(nest_); }
  // In the order of the text.
  std::vector<CheckedLoop> Loops() const {
    std::vector<CheckedLoop> loops;
    for (const CStatement* statement : LoopsOf(*region_.statement)) {
      const auto known = known_.find(statement);
      if (known == known_.end()) continue;
      loops.push_back(known->second);
      loops.back().verdict.loop = numbers_.at(statement);
    }
    return loops;
  }

 private:
  void Number(const Nest& nest) {
    nest_ = std::make_unique<const Nest>(nest);
    numbers_.clear();
    for (const CStatement* loop : LoopsOf(*region_.statement))
      numbers_.emplace(loop, static_cast<int>(numbers_.size()));
  }
  std::string Fresh(std::string name) {
    while (taken_.count(name) > 0) name += "_";
    return name;
  }

  // `depth`: how many loops are around it.
  bool IsKernel(const CStatement& loop, size_t depth) const {
    if (loop.meta) return true;
    const auto known = known_.find(&loop);
    if (known == known_.end()) return false;
    const CheckedLoop& checked = known->second;
    if (IsClaimed(checked.claim) || checked.verdict.verdict == Verdict::kIndependent) return true;
    return depth <= kMostLoopsAroundSum &&
           !SumsOf(loop, region_.scope, {checked.verdict.own.begin(), checked.verdict.own.end()},
                   checked.verdict.verdict == Verdict::kReduction)
                .empty();
  }
  bool HasKernels(const CStatement& statement, size_t depth) const {
    const bool loop = statement.kind == CStatement::Kind::kFor;
    return (loop && IsKernel(statement, depth)) ||
           std::any_of(statement.body.begin(), statement.body.end(), [&](const CStatementPtr& inner) {
             return HasKernels(*inner, depth + (loop ? 1 : 0));
           });
  }

  // `depth`: how many loops are around it. `in_part`: a part of a loop that was split is the innermost of
  // them.
  bool RearrangeNext(const CStatement& statement, size_t depth, bool in_part) {
    const bool loop = statement.kind == CStatement::Kind::kFor;
    const bool part = loop && parts_.count(&statement) > 0;
    if (loop && !part) {
      // Within parts, which are parallel themselves, no order is looked for.
      if (in_part) return IsNew(statement) && !IsParallel(statement) && Split(statement);
      if (IsKernel(statement, depth)) return false;
      if (known_.count(&statement) > 0 && !HasKernels(statement, depth) && IsNew(statement) &&
          (Split(statement) || TakeDiagonals(statement)))
        return true;
    }
    return std::any_of(statement.body.begin(), statement.body.end(), [&](const CStatementPtr& inner) {
      return RearrangeNext(*inner, depth + (loop ? 1 : 0), part || (in_part && !loop));
    });
  }
  bool IsNew(const CStatement& loop) {
    return tried_.size() < kMostRearranged && tried_.insert(&loop).second;
  }

  bool TakeDiagonals(const CStatement& loop) {
    for (size_t depth = kDeepestBand; depth >= 2; --depth) {
      const std::optional<Diagonals> made =
          AlongDiagonals(loop, depth, *nest_, numbers_, [&](const std::string& name) { return Fresh(name); });
      if (made && Replace(loop, made->statement, {made->parallel[0]})) return true;
    }
    return false;
  }

  bool Split(const CStatement& loop) {
    for (const CExpressionPtr& point : SplitPoints(loop, *nest_, numbers_)) {
      const SplitLoop split = SplitAt(loop, point);
      // The one in the middle has one iteration at most.
      if (!Replace(loop, split.statement, {split.parts.front(), split.parts.back()})) continue;
      parts_.insert(split.parts.begin(), split.parts.end());
      return true;
    }
    return false;
  }

  // Judges loops in a nest of the region's text.
  static std::vector<LoopVerdict> Judge(Nest nest, const std::vector<int>& loops) {
    for (NestLoop& one : nest.loops) one.claim = Claim::kNone;
    for (const int loop : loops) nest.loops[loop].claim = Claim::kAsked;
    return FindDependences(nest);
  }
  bool IsParallel(const CStatement& loop) const {
    return Judge(*nest_, {numbers_.at(&loop)})[0].verdict == Verdict::kIndependent;
  }

  // Puts a statement into the place of a loop if these loops in it are proved to be parallel there.
  bool Replace(const CStatement& loop, const CStatementPtr& by,
               const std::vector<const CStatement*>& parallel) {
    std::map<const CStatement*, const CStatement*> copies;
    CRegion region = region_;
    region.statement = With(region_.statement, loop, by, &copies);
    ErrorList scratch("");
    const std::unique_ptr<Nest> nest = BuildNest(checked_.program, region, &scratch);
    if (!scratch.empty()) return false;
    const std::vector<const CStatement*> loops = LoopsOf(*region.statement);
    std::vector<int> asked;
    for (size_t i = 0; i < loops.size(); ++i)
      if (std::find(parallel.begin(), parallel.end(), loops[i]) != parallel.end())
        asked.push_back(static_cast<int>(i));
    std::vector<LoopVerdict> verdicts = Judge(*nest, asked);
    if (std::any_of(verdicts.begin(), verdicts.end(),
                    [](const LoopVerdict& verdict) { return verdict.verdict != Verdict::kIndependent; }))
      return false;
    for (LoopVerdict& verdict : verdicts) {
      const NestLoop& judged = nest->loops[verdict.loop];
      known_[loops[verdict.loop]] = {number_, judged.counter, judged.position, Claim::kAsked,
                                     std::move(verdict)};
    }
    for (const auto& [original, copy] : copies) {
      if (const auto known = known_.find(original); known != known_.end()) known_[copy] = known->second;
      if (tried_.count(original) > 0) tried_.insert(copy);
      if (parts_.count(original) > 0) parts_.insert(copy);
    }
    kept_.push_back(region_.statement);
    region_ = std::move(region);
    AddNames(*by, &taken_);
    Number(*nest);
    return true;
  }

  static bool Contains(const CStatement& statement, const CStatement& part) {
    return &statement == &part ||
           std::any_of(statement.body.begin(), statement.body.end(),
                       [&](const CStatementPtr& inner) { return Contains(*inner, part); });
  }
  // Copies what is around the loop.
  static CStatementPtr With(const CStatementPtr& statement, const CStatement& loop, const CStatementPtr& by,
                            std::map<const CStatement*, const CStatement*>* copies) {
    if (statement.get() == &loop) return by;
    if (!Contains(*statement, loop)) return statement;
    auto copy = std::make_shared<CStatement>(*statement);
    for (CStatementPtr& inner : copy->body) inner = With(inner, loop, by, copies);
    copies->emplace(statement.get(), copy.get());
    return copy;
  }

  const CheckedProgram& checked_;
  const size_t number_;
  CRegion region_;
  std::unique_ptr<const Nest> nest_;
  std::map<const CStatement*, int> numbers_;
  std::map<const CStatement*, CheckedLoop> known_;
  std::set<const CStatement*> tried_;
  std::set<const CStatement*> parts_;  // of loops that were split
  std::set<std::string> taken_;
  std::vector<CStatementPtr> kept_;  // so that no other statement gets the address of one in `known_`
};

}  // namespace

std::optional<CheckedProgram> Rearranged(const CheckedProgram& checked) {
  CheckedProgram result{.program = checked.program, .nests = {}, .loops = {}};
  bool changed = false;
  for (size_t i = 0; i < checked.program.regions.size(); ++i) {
    RegionRearranger region(checked, i);
    changed |= region.Run();
    result.program.regions[i] = region.region();
    result.nests.push_back(region.TakeNest());
    for (CheckedLoop& loop : region.Loops()) result.loops.push_back(std::move(loop));
  }
  if (!changed) return std::nullopt;
  return result;
}

}  // namespace fusion
