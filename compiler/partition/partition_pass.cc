#include "compiler/partition/partition_pass.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/Path.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <set>
#include <string>

#include "client/partition/site.h"
#include "compiler/partition/annotations.h"
#include "compiler/partition/canonical.h"
#include "compiler/partition/columns.h"
#include "compiler/partition/device_code.h"
#include "compiler/partition/effects.h"
#include "compiler/partition/loads_first.h"
#include "compiler/partition/loop_form.h"
#include "compiler/partition/loop_report.h"
#include "compiler/partition/originals.h"
#include "compiler/partition/reordered_code.h"
#include "compiler/partition/selection.h"
#include "compiler/partition/site.h"
#include "compiler/partition/syncs.h"

namespace fusion {

using namespace llvm;

namespace {

constexpr char kRemarks[] = "fusion";  // -Rpass=fusion, -Rpass-missed=fusion

// Returns "", or why all loops of the function are left alone.
std::string WhyNotFunction(const Function& function, const SequentialFunctions& sequential) {
  if (sequential.Has(function)) return "it is annotated fusion_sequential";
  if (function.hasFnAttribute(Attribute::StrictFP))
    return "its function may change or ask how floating-point numbers are computed";
  if (function.hasOptNone()) return "its function is not to be optimized";
  if (function.hasFnAttribute(Attribute::Naked)) return "its function is assembly";
  if (function.hasFnAttribute(Attribute::PresplitCoroutine)) return "its function is a coroutine";
  for (Attribute::AttrKind kind : {Attribute::SanitizeAddress, Attribute::SanitizeThread,
                                   Attribute::SanitizeMemory, Attribute::SanitizeHWAddress})
    if (function.hasFnAttribute(kind)) return "a sanitizer watches it";
  if (function.hasFnAttribute(Attribute::ReturnsTwice) || function.callsFunctionThatReturnsTwice())
    return "its function calls one that may return twice, such as setjmp";
  return "";
}

constexpr char kSums[] = "it sums up over its iterations";

// A nest that has a copy in another order.
struct ReorderedNest {
  size_t at = 0;                     // which remark is about it
  std::string description, why_not;  // the latter: why the loop itself is not partitioned
  ReorderedCode::Blocks blocks;
  GlobalVariable* site = nullptr;
};

// A remark that waits until it is known which nests stay reordered.
struct SaidOfLoop {
  DebugLoc place;
  BasicBlock* header;
  std::string text, where;
  int nest;  // the reordered one that the loop is in; -1: none
};

constexpr StringLiteral kFound("loop partitioned: "), kNotFound("not partitioned: ");

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

// Takes the call away, and the code in another order.
void Forget(ReorderedNest& nest, Function& function) {
  for (User* user : make_early_inc_range(nest.site->users())) {
    auto* call = cast<CallInst>(user);
    if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(Constant::getNullValue(call->getType()));
    call->eraseFromParent();
  }
  nest.site->eraseFromParent();
  BasicBlock* before = nest.blocks.entry->getSinglePredecessor();
  auto* branch = cast<BranchInst>(before->getTerminator());
  nest.blocks.entry->removePredecessor(before);
  IRBuilder<>(branch).CreateBr(branch->getSuccessor(branch->getSuccessor(0) == nest.blocks.entry ? 1 : 0));
  branch->eraseFromParent();
  EliminateUnreachableBlocks(function);
}

void Say(const std::vector<SaidOfLoop>& said, Function& function, FunctionAnalysisManager& analyses,
         LoopReport& report) {
  OptimizationRemarkEmitter& remarks = analyses.getResult<OptimizationRemarkEmitterAnalysis>(function);
  for (const SaidOfLoop& of_loop : said) {
    const StringRef text = of_loop.text;
    const bool is_found = text.starts_with(kFound), is_not = text.starts_with(kNotFound);
    report.Add(of_loop.place, function, is_found,
               text.drop_front(is_found ? kFound.size()
                               : is_not ? kNotFound.size()
                                        : 0)
                   .str());
    if (is_not)
      remarks.emit([&] {
        return OptimizationRemarkMissed(kRemarks, "NotPartitioned", of_loop.place, of_loop.header)
               << text << of_loop.where;
      });
    else
      remarks.emit([&] {
        return OptimizationRemark(kRemarks, is_found ? "Partitioned" : "Reordered", of_loop.place,
                                  of_loop.header)
               << text << of_loop.where;
      });
  }
}

// Takes the outermost parallel loops of a function, one after another, or none where it is said why not.
// Returns the functions that their bodies became.
std::vector<DeviceKernel> PartitionFunction(Function& function, FunctionAnalysisManager& analyses,
                                            const std::string& why_not, LoopReport& report) {
  std::vector<DeviceKernel> bodies;
  NameLoads(function);
  const FunctionEffects effects = FindEffects(function, analyses.getResult<AAManager>(function));
  std::set<BasicBlock*> seen, done;  // headers
  std::vector<ReorderedNest> reordered;
  std::vector<SaidOfLoop> said;
  std::vector<int> nests_of_bodies;
  // A loop with sums comes after all others: none of them stays behind for it.
  bool takes_sums = false, has_sums = false;
  for (bool again = true; again;) {
    again = false;
    for (Loop* loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder()) {
      bool inside = false;
      for (Loop* around = loop->getParentLoop(); around != nullptr; around = around->getParentLoop())
        inside |= done.count(around->getHeader()) > 0;
      if (inside || seen.count(loop->getHeader()) > 0) continue;
      const DebugLoc place = loop->getStartLoc();
      BasicBlock* header = loop->getHeader();
      std::string description, why = why_not, where;
      // A loop of a header is one of many functions.
      if (place && (place->getInlinedAt() != nullptr ||
                    sys::path::filename(place->getFilename()) !=
                        sys::path::filename(function.getParent()->getSourceFileName())))
        where = " (in " + demangle(function.getName()) + ")";
      DeviceKernel body;
      const bool is_around = any_of(loop->getLoopsInPreorder(),
                                    [&](const Loop* inner) { return done.count(inner->getHeader()) > 0; });
      if (why.empty()) {
        LoopCandidate candidate(*loop, function, analyses);
        why = candidate.Partition((function.getName() + ".fusion." + Twine(bodies.size())).str(),
                                  takes_sums && !is_around, description, body);
      }
      if (why == kSums && !takes_sums) {
        has_sums = true;
        continue;
      }
      if (why == kSums) why += ", around a partitioned loop";
      seen.insert(header);
      if (why_not.empty() && !why.empty() && loop->isOutermost() && !is_around) {
        ReorderedNest nest;
        LoopCandidate candidate(*loop, function, analyses);
        const std::string name = (function.getName() + ".fusion.order." + Twine(reordered.size())).str();
        if (const std::string why_not_so = candidate.Reorder(name, nest); why_not_so.empty()) {
          nest.why_not = why;
          nest.at = said.size();
          said.push_back({place, header, "", where, -1});
          seen.insert(nest.blocks.time);
          reordered.push_back(std::move(nest));
          analyses.invalidate(function, PreservedAnalyses::none());
          again = true;
          break;
        }
      }
      int of_nest = -1;
      for (size_t at = 0; at < reordered.size(); ++at)
        for (const Loop* around = loop; around != nullptr; around = around->getParentLoop())
          if (around->getHeader() == reordered[at].blocks.time) of_nest = static_cast<int>(at);
      said.push_back({place, header, why.empty() ? (kFound + description).str() : (kNotFound + why).str(),
                      where, of_nest});
      if (!why.empty()) continue;
      nests_of_bodies.push_back(of_nest);
      bodies.push_back(body);
      done.insert(header);
      analyses.invalidate(function, PreservedAnalyses::none());
      again = true;
      break;
    }
    if (!again && has_sums && !takes_sums) again = takes_sums = true;
  }
  // Another order is of no use where its phases turn out not to be partitioned.
  for (size_t at = 0; at < reordered.size(); ++at) {
    ReorderedNest& nest = reordered[at];
    const bool is_of_use =
        any_of(nest.blocks.deep, [&](BasicBlock* header) { return done.count(header) > 0; });
    said[nest.at].text = is_of_use ? "loop reordered: " + nest.description : (kNotFound + nest.why_not).str();
    if (is_of_use) continue;
    Forget(nest, function);
    erase_if(said, [&](const SaidOfLoop& of_loop) { return of_loop.nest == static_cast<int>(at); });
    for (size_t body = bodies.size(); body-- > 0;) {
      if (nests_of_bodies[body] != static_cast<int>(at)) continue;
      EraseSite(*bodies[body].body);
      bodies.erase(bodies.begin() + static_cast<std::ptrdiff_t>(body));
      nests_of_bodies.erase(nests_of_bodies.begin() + static_cast<std::ptrdiff_t>(body));
    }
    analyses.invalidate(function, PreservedAnalyses::none());
  }
  Say(said, function, analyses, report);
  if (!bodies.empty()) SetEffects(effects, function);
  return bodies;
}

}  // namespace

PreservedAnalyses PartitionPass::run(Module& module, ModuleAnalysisManager&) {
  const Triple triple(module.getTargetTriple());
  if (!triple.isOSLinux() || !triple.isX86() || !triple.isArch64Bit()) return PreservedAnalyses::all();
  // A user who asks about each loop gets an answer for all of them.
  LoopReport report;
  const DiagnosticHandler* asked = module.getContext().getDiagHandlerPtr();
  const SetVector<Function*> selected = SelectFunctions(
      module, report.IsWanted() || (asked != nullptr && asked->isMissedOptRemarkEnabled(kRemarks)));
  if (selected.empty()) {
    report.Write();
    return PreservedAnalyses::all();
  }

  Originals originals(module, selected);
  SequentialFunctions sequential(module);
  Analyses analyses;
  Canonicalise(module, analyses.of_module);
  sequential.Release();
  originals.Rejoin();

  std::vector<Function*> functions, partitioned;
  std::vector<DeviceKernel> kernels;
  for (Function& function : module)
    if (originals.IsCopy(function)) functions.push_back(&function);
  for (Function* function : functions) {
    const std::vector<DeviceKernel> bodies =
        PartitionFunction(*function, analyses.of_functions, WhyNotFunction(*function, sequential), report);
    if (!bodies.empty()) AddSyncs(*function, analyses.of_functions);
    bool is_right = !verifyFunction(*function);
    for (const DeviceKernel& body : bodies) is_right = is_right && !verifyFunction(*body.body);
    if (is_right && !bodies.empty()) {
      partitioned.push_back(function);
      function->addFnAttr(kPartitioned);
      for (const DeviceKernel& body : bodies) body.body->addFnAttr(kPartitioned);
      std::copy_if(bodies.begin(), bodies.end(), std::back_inserter(kernels),
                   [](const DeviceKernel& body) { return !body.name.empty(); });
    }
    // A function that the verifier refuses is a fault of this pass: it is compiled as it was.
    if (!is_right && !bodies.empty())
      errs() << "fusion-cc: " << function->getName()
             << " is not partitioned: its new form is not valid, please report it\n";
    if (!is_right) {
      analyses.of_functions.clear(*function, function->getName());
      function->deleteBody();
      for (const DeviceKernel& body : bodies) EraseSite(*body.body);
    }
  }
  analyses.of_functions.clear();
  originals.Restore(partitioned);
  report.Write();
  if (!kernels.empty()) device_code_->Begin(module, kernels);
  return PreservedAnalyses::none();
}

PreservedAnalyses DeviceTextPass::run(Module& module, ModuleAnalysisManager&) {
  std::string error;
  const std::string text = device_code_->Finish(error);
  if (!error.empty())
    errs() << "fusion-cc: remark: the loops of " << module.getName() << " have no code for GPUs: " << error
           << "\n";
  SetDeviceText(module, text);
  return PreservedAnalyses::none();
}

}  // namespace fusion
