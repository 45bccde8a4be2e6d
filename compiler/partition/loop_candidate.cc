#include "compiler/partition/loop_candidate.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <vector>

#include "client/partition/site.h"
#include "compiler/partition/columns.h"
#include "compiler/partition/loads_first.h"
#include "compiler/partition/loop_form.h"
#include "compiler/partition/site.h"

namespace fusion {

using namespace llvm;

namespace {

// One loop on its way to a call: all that is known of it.
class LoopCandidate {
 public:
  LoopCandidate(Loop& loop, Function& function, FunctionAnalysisManager& analyses)
      : loop_(loop),
        function_(function),
        analyses_(analyses),
        numbers_(analyses.getResult<ScalarEvolutionAnalysis>(function), loop),
        space_(numbers_),
        ranges_(numbers_) {}

  // Returns "", or why the loop stays as it is: then nothing was changed. That is kSums alone where
  // `takes_sums` would let it go on.
  std::string Partition(const std::string& name, bool takes_sums, std::string& description,
                        DeviceKernel& kernel) {
    const LoopInfo& loops = analyses_.getResult<LoopAnalysis>(function_);
    if (std::string why = WhyNotCounted(loop_, numbers_, facts_.sums); !why.empty()) return why;
    if (!facts_.sums.empty() && !takes_sums) return kSums;
    if (!facts_.sums.empty() && IsShort()) return std::string(kSums) + ", and they are few";
    if (std::string why = FindAccesses(loops, numbers_, accesses_); !why.empty()) return "it " + why;
    if (facts_.sums.empty() && std::none_of(accesses_.arrays.begin(), accesses_.arrays.end(),
                                            [](const LoopArray& array) { return array.written; }))
      return "it writes nothing";
    facts_.accesses = &accesses_;
    facts_.last = numbers_.LastCount(loop_);
    const BlockOrder order{loops, analyses_.getResult<DominatorTreeAnalysis>(function_)};
    const Independence independence =
        FindDependence(accesses_, numbers_, space_, MayHavePrivateArrays() ? &order : nullptr);
    if (!independence.why_not.empty()) return independence.why_not;
    facts_.assumed = independence.assumed;
    if (std::string why = FindRanges(independence); !why.empty()) return why;
    if (std::string why = FindOverlaps(); !why.empty()) return why;
    FindWork(loops);
    if (HasLittleToDo()) return "it has too little to do";
    if (facts_.sums.empty() && independence.private_arrays.empty()) FindColumnsOfIteration(loops);
    if (std::string why = CollectConditions(); !why.empty()) return why;
    if (std::string why = WhyNoSite(facts_, numbers_); !why.empty()) return why;
    // Nothing is known of how iterations use local arrays.
    if (accesses_.own.empty()) MarkIndependentLoops(loop_, independence.dependent);
    OutlinedLoop outlined;
    if (std::string why = Outline(accesses_, facts_.sums, numbers_, name, outlined); !why.empty())
      return "it " + why;
    std::string why_no_kernel =
        facts_.sums.empty() ? WhyNoKernel(*outlined.body, *outlined.context) : "sums up over its iterations";
    for (const AccessRange& range : facts_.ranges)
      if ((range.flags & FUSION_PARTITION_UNBOUNDED) != 0)
        why_no_kernel = "reads anywhere in " + NameOf(accesses_.arrays[range.array]);
      else if ((range.flags & FUSION_PARTITION_PRIVATE) != 0)
        why_no_kernel = "needs a copy of " + NameOf(accesses_.arrays[range.array]) + " for each thread";
    if (!why_no_kernel.empty()) {
      facts_.last_column = {};
      columns_ = ColumnLoops::kNone;
    }
    description = Describe();
    if (why_no_kernel.empty()) {
      for (char letter : name) outlined.kernel += isAlnum(letter) ? letter : '_';
    } else {
      description += "; on the host alone, as it " + why_no_kernel;
    }
    kernel = {outlined.body, outlined.context, outlined.kernel, columns_};
    MakeSite(facts_, numbers_, loop_, outlined);
    return "";
  }

  // Gives a nest whose outermost loop cannot be partitioned a copy in another order, where most of it can.
  // Returns "", or why there is none: then nothing was changed.
  std::string Reorder(const std::string& name, ReorderedNest& nest) {
    const LoopInfo& loops = analyses_.getResult<LoopAnalysis>(function_);
    if (none_of(loop_.getLoopsInPreorder(),
                [&](const Loop* inner) { return inner->getLoopDepth() >= loop_.getLoopDepth() + kDeep - 1; }))
      return "it is not deep";
    if (std::string why = WhyNotCounted(loop_, numbers_, facts_.sums); !why.empty()) return why;
    if (!facts_.sums.empty()) return kSums;
    if (std::string why = FindAccesses(loops, numbers_, accesses_); !why.empty()) return "it " + why;
    // An element that each iteration writes keeps the order of the iterations.
    if (none_of(accesses_.accesses, [&](const LoopAccess& access) {
          return access.written && access.offset != nullptr &&
                 SCEVExprContains(access.offset, [&](const SCEV* part) {
                   auto* counter = dyn_cast<SCEVAddRecExpr>(part);
                   return counter != nullptr && counter->getLoop() == &loop_;
                 });
        }))
      return "its iterations write the same elements";
    facts_.accesses = &accesses_;
    facts_.last = numbers_.LastCount(loop_);
    NestStatements statements;
    if (std::string why = FindStatements(loops, accesses_, numbers_, space_, statements); !why.empty())
      return why;
    const Reordering order = FindReordering(statements, accesses_, numbers_, space_);
    if (!order.why_not.empty()) return order.why_not;
    facts_.assumed = order.assumed;
    ReorderedCode code(statements, order, numbers_, space_);
    if (std::string why = code.Plan(); !why.empty()) return why;
    if (std::string why = FindRanges(Independence()); !why.empty()) return why;
    if (std::string why = FindOverlaps(); !why.empty()) return why;
    FindWork(loops);
    if (std::string why = CollectConditions(); !why.empty()) return why;
    if (std::string why = WhyNoSite(facts_, numbers_); !why.empty()) return why;
    nest.description = Counters(order);
    const std::string conditions = Conditions(facts_);
    if (!conditions.empty()) nest.description += "; checked before each run: " + conditions;
    nest.blocks = code.Write(loop_.getLoopPreheader()->getTerminator());
    nest.site =
        MakeOrderSite(facts_, numbers_, loop_, name, nest.blocks.entry, nest.blocks.last, nest.blocks.one);
    return "";
  }

 private:
  // "k (line 5) and j (line 4) are counted outermost"
  static std::string Counters(const Reordering& order) {
    std::vector<std::string> counters;
    for (const Phase& phase : order.phases) {
      const Loop* loop = phase.statement->nest[phase.counter];
      std::string name = "a counter";
      for (const PHINode& phi : loop->getHeader()->phis())
        if (phi.hasName() && phi.getType()->isIntegerTy())
          name = phi.getName().split('.').first.rtrim("0123456789");
      if (const DebugLoc place = loop->getStartLoc())
        name += " (line " + std::to_string(place.getLine()) + ")";
      if (!is_contained(counters, name)) counters.push_back(name);
    }
    std::string text;
    for (size_t at = 0; at < counters.size(); ++at)
      text += (at == 0 ? "" : at + 1 == counters.size() ? " and " : ", ") + counters[at];
    return text + (counters.size() == 1 ? " is" : " are") + " counted outermost";
  }
  // Loops that clang unrolls, or nearly so.
  bool IsShort() const {
    constexpr unsigned kFewIterations = 1000;
    const unsigned most = numbers_.evolution().getSmallConstantMaxTripCount(&loop_);
    return loop_.isInnermost() && most != 0 && most < kFewIterations;
  }
  // Loops inside of it stay as they are then, which a few iterations are not worth.
  bool MayHavePrivateArrays() const {
    constexpr unsigned kFewIterations = 5;
    const unsigned most = numbers_.evolution().getSmallConstantMaxTripCount(&loop_);
    return facts_.sums.empty() && (most == 0 || most >= kFewIterations);
  }
  std::string FindRanges(const Independence& independence) {
    const DominatorTree& dominators = analyses_.getResult<DominatorTreeAnalysis>(function_);
    ScalarEvolution& evolution = numbers_.evolution();
    for (const LoopAccess& access : accesses_.accesses) {
      AccessRange range{
          access.array, {}, {}, access.written ? FUSION_PARTITION_WRITTEN : FUSION_PARTITION_READ};
      if (independence.private_arrays.count(access.array) > 0) range.flags |= FUSION_PARTITION_PRIVATE;
      if (access.offset != nullptr) {
        range.first = ranges_.Least(access.offset);
        range.end = ranges_.Most(access.offset);
      }
      if (range.first.constant == nullptr || range.end.constant == nullptr) {
        if (access.written)
          return "what it writes of " + NameOf(accesses_.arrays[access.array]) +
                 " is not known before the loop";
        range.first = range.end = {evolution.getZero(numbers_.type()), evolution.getZero(numbers_.type())};
        range.flags |= FUSION_PARTITION_UNBOUNDED;
        Join(range);
        continue;
      }
      range.end.constant = evolution.getAddExpr(
          range.end.constant, evolution.getConstant(numbers_.type(), static_cast<uint64_t>(access.bytes)));
      if (independence.fills.count(&access) == 0 && !TouchesAll(access, dominators, numbers_))
        range.flags |= FUSION_PARTITION_PARTIAL;
      Join(range);
    }
    return "";
  }
  // Called last, as each step may find numbers that are to be asked; so may this one.
  std::string CollectConditions() {
    ScalarEvolution& evolution = numbers_.evolution();
    for (size_t at = 0; at < numbers_.not_negative().size(); ++at) {
      const LinearBound least = ranges_.Least(numbers_.not_negative()[at]);
      if (least.constant == nullptr) return "a number in it may be negative";
      facts_.not_negative.insert(least.constant);
      facts_.not_negative.insert(
          evolution.getAddExpr(least.constant, evolution.getMulExpr(least.slope, facts_.last)));
    }
    for (const SCEV* number : ranges_.not_negative()) facts_.not_negative.insert(number);
    for (const AccessRange& range : facts_.ranges)
      for (const LinearBound& bound : {range.first, range.end})
        for (const SCEV* number :
             {bound.constant, bound.slope, evolution.getMulExpr(bound.slope, facts_.last)})
          numbers_.Limit(number, 62);
    return "";
  }
  void FindColumnsOfIteration(const LoopInfo& loops) {
    LinearBound last;
    const ColumnLoops which = FindColumns(loops, accesses_, numbers_, space_, facts_.assumed, last);
    if (which == ColumnLoops::kNone) return;
    Instruction* before = loop_.getLoopPreheader()->getTerminator();
    SCEVExpander expander(numbers_.evolution(), before->getModule()->getDataLayout(), "fusion");
    if (!expander.isSafeToExpandAt(last.constant, before) || !expander.isSafeToExpandAt(last.slope, before))
      return;
    facts_.last_column = last;
    columns_ = which;
    for (const SCEV* number : {last.constant, numbers_.evolution().getMulExpr(last.slope, facts_.last)})
      numbers_.Limit(number, 61);
  }
  // Accesses with the same bounds are one range. Where one of them writes all of it, it does not matter which
  // of it the others touch.
  void Join(const AccessRange& range) {
    constexpr uint32_t kPartial = FUSION_PARTITION_PARTIAL, kWritten = FUSION_PARTITION_WRITTEN;
    for (AccessRange& known : facts_.ranges) {
      if (known.array != range.array || !(known.first == range.first) || !(known.end == range.end) ||
          ((known.flags ^ range.flags) & FUSION_PARTITION_UNBOUNDED) != 0)
        continue;
      const bool is_partial = (known.flags & kPartial) != 0;
      if (is_partial != ((range.flags & kPartial) != 0)) {
        const uint32_t all = is_partial ? range.flags : known.flags,
                       some = is_partial ? known.flags : range.flags;
        if ((all & kWritten) == 0 && (some & kWritten) != 0) continue;
        known.flags = all | (some & ~kPartial);
      } else {
        known.flags |= range.flags;
      }
      return;
    }
    facts_.ranges.push_back(range);
  }
  std::string FindOverlaps() {
    AAResults& aliases = analyses_.getResult<AAManager>(function_);
    const std::vector<LoopArray>& arrays = accesses_.arrays;
    for (unsigned first = 0; first < arrays.size(); ++first)
      for (unsigned second = first + 1; second < arrays.size(); ++second)
        if ((arrays[first].written || arrays[second].written) &&
            !aliases.isNoAlias(MemoryLocation::getBeforeOrAfter(arrays[first].address),
                               MemoryLocation::getBeforeOrAfter(arrays[second].address)))
          facts_.may_overlap.push_back({first, second});
    for (const AccessRange& range : facts_.ranges)
      for (const auto& [first, second] : facts_.may_overlap)
        if ((range.flags & FUSION_PARTITION_UNBOUNDED) != 0 &&
            (range.array == first || range.array == second))
          return NameOf(arrays[first]) + " and " + NameOf(arrays[second]) +
                 " may overlap, and what it reads of them is not known before the loop";
    return "";
  }
  void FindWork(const LoopInfo& loops) {
    for (BasicBlock* block : loop_.blocks()) {
      const LoopNest nest = NestOf(*block, loop_, loops);
      for (const Loop* around : nest) numbers_.LastCount(*around);  // what it needs is asked, too
      const double instructions = static_cast<double>(block->sizeWithoutDebug());
      auto known = std::find_if(facts_.work.begin(), facts_.work.end(),
                                [&](const auto& work) { return work.first == nest; });
      if (known == facts_.work.end())
        facts_.work.push_back({nest, instructions});
      else
        known->second += instructions;
    }
  }
  // It is known now that no call of the run time is worth it.
  bool HasLittleToDo() {
    constexpr double kLittle = 100;  // instructions
    double all = 0;
    for (const auto& [nest, instructions] : facts_.work) {
      double times = 1;
      for (const Loop* loop : nest) {
        auto* last = dyn_cast_or_null<SCEVConstant>(loop == &loop_ ? facts_.last : numbers_.LastCount(*loop));
        if (last == nullptr) return false;
        times *= static_cast<double>(last->getAPInt().getSExtValue()) + 1;
      }
      all += instructions * times;
    }
    return all < kLittle;
  }
  std::string Describe() {
    std::string text;
    for (size_t array = 0; array < accesses_.arrays.size(); ++array) {
      uint32_t flags = 0;
      for (const AccessRange& range : facts_.ranges)
        if (range.array == array) flags |= range.flags;
      text += (text.empty() ? "" : ", ") + NameOf(accesses_.arrays[array]) +
              ((flags & FUSION_PARTITION_PRIVATE) != 0     ? " (private to each iteration)"
               : (flags & FUSION_PARTITION_UNBOUNDED) != 0 ? " (read anywhere)"
               : (flags & FUSION_PARTITION_READ) != 0 && (flags & FUSION_PARTITION_WRITTEN) != 0
                   ? " (read, written)"
               : (flags & FUSION_PARTITION_WRITTEN) != 0 ? " (written)"
                                                         : " (read)");
    }
    for (const LoopSum& sum : facts_.sums)
      text += (text.empty() ? "" : ", ") + NameOf(sum) + " (of all iterations)";
    const std::string conditions = Conditions(facts_);
    if (facts_.last_column.constant != nullptr) text += "; columns of an iteration on the device";
    return text + (conditions.empty() ? "" : "; checked before each run: " + conditions);
  }

  Loop& loop_;
  Function& function_;
  FunctionAnalysisManager& analyses_;
  ExactNumbers numbers_;
  IterationSpace space_;
  Ranges ranges_;
  LoopAccesses accesses_;
  LoopFacts facts_;
  ColumnLoops columns_ = ColumnLoops::kNone;
};

}  // namespace

std::string PartitionLoop(Loop& loop, Function& function, FunctionAnalysisManager& analyses,
                          const std::string& name, bool takes_sums, std::string& description,
                          DeviceKernel& kernel) {
  return LoopCandidate(loop, function, analyses).Partition(name, takes_sums, description, kernel);
}

std::string ReorderNest(Loop& loop, Function& function, FunctionAnalysisManager& analyses,
                        const std::string& name, ReorderedNest& nest) {
  return LoopCandidate(loop, function, analyses).Reorder(name, nest);
}

}  // namespace fusion
