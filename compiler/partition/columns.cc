#include "compiler/partition/columns.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SimpleLoopUnswitch.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <algorithm>

#include "compiler/partition/canonical.h"
#include "compiler/partition/elements.h"

namespace fusion {

using namespace llvm;

namespace {

constexpr char kStep[] = "fusion.step";  // metadata of counters

// A loop that can be cut to one iteration: counters alone go from one to the next, and nothing comes out.
bool CanBeCut(const Loop& loop, ScalarEvolution& evolution) {
  if (loop.getExitingBlock() == nullptr || loop.getExitingBlock() != loop.getLoopLatch() ||
      loop.getExitBlock() == nullptr || isa<SCEVCouldNotCompute>(evolution.getBackedgeTakenCount(&loop)))
    return false;
  for (PHINode& counter : loop.getHeader()->phis()) {
    auto* recurrence = evolution.isSCEVable(counter.getType())
                           ? dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(&counter))
                           : nullptr;
    if (recurrence == nullptr || recurrence->getLoop() != &loop || !recurrence->isAffine() ||
        !isa<SCEVConstant>(recurrence->getStepRecurrence(evolution)))
      return false;
  }
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block)
      for (User* user : instruction.users())
        if (!loop.contains(cast<Instruction>(user)->getParent())) return false;
  return true;
}

// Takes conditions that do not change in a loop out of it. LLVM does that for no GPU, as threads might
// diverge; these are the same for all threads, and without them an element stays in a register while a loop
// adds to it.
void HoistConditions(Function& function) {
  Analyses analyses;
  FunctionPassManager passes;
  passes.addPass(SimplifyCFGPass());
  passes.addPass(LoopSimplifyPass());
  passes.addPass(LCSSAPass());
  passes.addPass(
      createFunctionToLoopPassAdaptor(SimpleLoopUnswitchPass(/*NonTrivial=*/true), /*UseMemorySSA=*/true));
  passes.run(function, analyses.of_functions);
}

// `depth` of the outermost loop is 0.
bool IsCut(const Loop& loop, unsigned depth, ColumnLoops which) {
  return depth > 0 && (which == ColumnLoops::kInnermost ? loop.isInnermost() : depth == 1);
}

// Returns which counter of the access's nest counts columns, 0 for none.
int ColumnOf(const LoopAccess& access, ColumnLoops which) {
  for (unsigned depth = 1; depth < access.nest.size(); ++depth)
    if (IsCut(*access.nest[depth], depth, which)) return static_cast<int>(depth);
  return 0;
}

// Returns true when accesses of two different columns of one iteration may meet. What belongs to no column is
// done by all.
bool ColumnsMeet(int column_of_one, int column_of_other, const isl::map& elements,
                 const isl::map& elements_of_other) {
  const isl::map both =
      elements.apply_range(elements_of_other.reverse()).equate(isl::dim::in, 0, isl::dim::out, 0);
  if (column_of_one == 0 || column_of_other == 0) return !both.is_empty().is_true();
  const isl::map same = both.equate(isl::dim::in, column_of_one, isl::dim::out, column_of_other);
  return !both.subtract(same).is_empty().is_true();
}

bool AreColumns(ColumnLoops which, const LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                IterationSpace& space, const isl::set& assumed, LinearBound& last) {
  const Loop& loop = numbers.loop();
  const SCEV* count = nullptr;
  for (const Loop* inner : loops.getLoopsInPreorder()) {
    if (!loop.contains(inner) || !IsCut(*inner, inner->getLoopDepth() - loop.getLoopDepth(), which)) continue;
    const SCEV* of_inner = numbers.LastCount(*inner);
    if (of_inner == nullptr || (count != nullptr && of_inner != count) ||
        !CanBeCut(*inner, numbers.evolution()))
      return false;
    count = of_inner;
  }
  if (count == nullptr) return false;
  // It changes with the loop's own counter alone, by a constant each time.
  auto* counter = dyn_cast<SCEVAddRecExpr>(count);
  const bool changes = counter != nullptr && counter->getLoop() == &loop;
  if (!numbers.evolution().isLoopInvariant(changes ? counter->getStart() : count, &loop)) return false;
  last = Ranges(numbers).Most(count);
  if (last.constant == nullptr || !accesses.own.empty()) return false;
  for (unsigned array = 0; array < accesses.arrays.size(); ++array) {
    if (!accesses.arrays[array].written) continue;
    bool apart = false;
    for (const ArrayShape& shape : PossibleShapes(accesses, array, numbers)) {
      apart = true;
      Elements elements(shape, numbers, space);
      std::vector<std::pair<const LoopAccess*, isl::map>> touched;
      for (const LoopAccess& access : accesses.accesses) {
        if (access.array != array) continue;
        // A store beside the columns, whose value is the same in all of them, may be repeated.
        if (ColumnOf(access, which) == 0 && access.nest.size() > 1) return false;
        touched.push_back({&access, elements.Of(access)});
        if (touched.back().second.is_null()) apart = false;
      }
      // The shape must need nothing but what was assumed to prove the iterations independent.
      if (!apart || !assumed.intersect_params(space.Known()).is_subset(elements.within()).is_true()) {
        apart = false;
        continue;
      }
      for (const auto& [writer, written] : touched)
        for (const auto& [other, of_other] : touched)
          if (writer->written && !(writer == other && ColumnOf(*writer, which) == 0) &&
              ColumnsMeet(ColumnOf(*writer, which), ColumnOf(*other, which),
                          written.intersect_params(assumed), of_other))
            apart = false;
      if (apart) break;
    }
    if (!apart) return false;
  }
  return true;
}

}  // namespace

namespace {

// The step of each counter of a loop that is cut is written to it: in the outlined loop, where less is known
// of numbers, it may be no recurrence to LLVM.
void WriteSteps(ColumnLoops which, const LoopInfo& loops, ExactNumbers& numbers) {
  ScalarEvolution& evolution = numbers.evolution();
  for (const Loop* inner : loops.getLoopsInPreorder()) {
    if (!numbers.loop().contains(inner) ||
        !IsCut(*inner, inner->getLoopDepth() - numbers.loop().getLoopDepth(), which))
      continue;
    for (PHINode& counter : inner->getHeader()->phis()) {
      const APInt& step =
          cast<SCEVConstant>(cast<SCEVAddRecExpr>(evolution.getSCEV(&counter))->getStepRecurrence(evolution))
              ->getAPInt();
      auto* value = ConstantInt::get(numbers.type(), static_cast<uint64_t>(step.getSExtValue()));
      counter.setMetadata(kStep, MDNode::get(counter.getContext(), ConstantAsMetadata::get(value)));
    }
  }
}

}  // namespace

ColumnLoops FindColumns(const LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                        IterationSpace& space, const isl::set& assumed, LinearBound& last) {
  for (const ColumnLoops which : {ColumnLoops::kInnermost, ColumnLoops::kOutermost})
    if (AreColumns(which, loops, accesses, numbers, space, assumed, last)) {
      WriteSteps(which, loops, numbers);
      return which;
    }
  return ColumnLoops::kNone;
}

bool CutToColumn(Function& body, ColumnLoops which, Value* column) {
  DominatorTree dominators(body);
  LoopInfo loops(dominators);
  for (Loop* loop : loops.getLoopsInPreorder()) {
    if (!IsCut(*loop, loop->getLoopDepth() - 1, which)) continue;
    BasicBlock *before = loop->getLoopPreheader(), *latch = loop->getLoopLatch(),
               *after = loop->getExitBlock();
    IRBuilder<> builder(before->getTerminator());
    SmallVector<std::pair<PHINode*, Value*>, 4> counters;
    for (PHINode& counter : loop->getHeader()->phis()) {
      const MDNode* step = counter.getMetadata(kStep);
      if (step == nullptr) return false;
      Value* start = counter.getIncomingValueForBlock(before);
      Value* distance = builder.CreateMul(column, mdconst::extract<ConstantInt>(step->getOperand(0)));
      counters.push_back(
          {&counter, start->getType()->isPointerTy()
                         ? builder.CreateGEP(builder.getInt8Ty(), start, distance)
                         : builder.CreateAdd(start, builder.CreateSExtOrTrunc(distance, start->getType()))});
    }
    for (const auto& [counter, value] : counters) {
      counter->replaceAllUsesWith(value);
      counter->eraseFromParent();
    }
    Instruction* end = latch->getTerminator();
    IRBuilder<>(end).CreateBr(after);
    end->eraseFromParent();
  }
  HoistConditions(body);
  return true;
}

}  // namespace fusion
