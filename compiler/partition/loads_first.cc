#include "compiler/partition/loads_first.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

#include <algorithm>

#include "compiler/partition/canonical.h"

namespace fusion {

using namespace llvm;

namespace {

constexpr char kIndependent[] = "fusion.independent";  // metadata of a loop's last branch
constexpr char kEarly[] = "fusion.early";  // metadata of loads that no store of their iteration may change

// Marks these loads of a loop that is one block. Returns how many there are, 0 where nothing is stored.
unsigned MarkEarlyLoads(BasicBlock& block, AAResults& aliases) {
  unsigned loads = 0;
  SmallVector<const Instruction*, 8> stores;
  for (Instruction& instruction : block) {
    if (instruction.mayWriteToMemory()) stores.push_back(&instruction);
    if (!isa<LoadInst>(instruction) || any_of(stores, [&](const Instruction* store) {
          return isModSet(aliases.getModRefInfo(store, MemoryLocation::get(&instruction)));
        }))
      continue;
    instruction.setMetadata(kEarly, MDNode::get(block.getContext(), {}));
    ++loads;
  }
  return stores.empty() ? 0 : loads;
}

// Moves an instruction of the block, and what it needs, before `place` of the same block.
void MoveBefore(Instruction& instruction, Instruction& place) {
  if (isa<PHINode>(instruction) || instruction.comesBefore(&place)) return;
  for (Use& use : instruction.operands())
    if (auto* needed = dyn_cast<Instruction>(use);
        needed != nullptr && needed->getParent() == place.getParent())
      MoveBefore(*needed, place);
  instruction.moveBefore(&place);
}

// Returns true when it can move with all that it needs, none of which stores, or loads what its own iteration
// may have stored before.
bool CanMove(const Instruction& instruction, const Instruction& place) {
  if (isa<PHINode>(instruction) || instruction.comesBefore(&place)) return true;
  if (&instruction == &place || instruction.mayHaveSideEffects() ||
      (instruction.mayReadFromMemory() && instruction.getMetadata(kEarly) == nullptr))
    return false;
  return all_of(instruction.operands(), [&](const Use& use) {
    auto* needed = dyn_cast<Instruction>(use);
    return needed == nullptr || needed->getParent() != place.getParent() || CanMove(*needed, place);
  });
}

void MoveEarlyLoads(BasicBlock& block) {
  auto place = find_if(block, [](const Instruction& instruction) {
    return instruction.mayWriteToMemory() || (isa<FPMathOperator>(instruction) && !isa<PHINode>(instruction));
  });
  if (place == block.end()) return;
  for (Instruction& instruction : make_early_inc_range(make_range(std::next(place), block.end())))
    if (instruction.getMetadata(kEarly) != nullptr && CanMove(instruction, *place))
      MoveBefore(instruction, *place);
}

}  // namespace

void MarkIndependentLoops(const Loop& loop, const SmallPtrSet<const Loop*, 4>& dependent) {
  for (const Loop* inner : loop.getLoopsInPreorder()) {
    BasicBlock* latch = inner->getLoopLatch();
    if (inner != &loop && inner->isInnermost() && latch != nullptr && dependent.count(inner) == 0)
      latch->getTerminator()->setMetadata(kIndependent, MDNode::get(latch->getContext(), {}));
  }
}

void PutLoadsFirst(Function& function) {
  constexpr unsigned kLoadsAhead = 24, kMostTimes = 8;
  Analyses analyses;
  FunctionPassManager passes;
  passes.addPass(LoopSimplifyPass());
  passes.addPass(LCSSAPass());
  passes.run(function, analyses.of_functions);
  LoopInfo& loops = analyses.of_functions.getResult<LoopAnalysis>(function);
  auto& dominators = analyses.of_functions.getResult<DominatorTreeAnalysis>(function);
  auto& evolution = analyses.of_functions.getResult<ScalarEvolutionAnalysis>(function);
  auto& assumptions = analyses.of_functions.getResult<AssumptionAnalysis>(function);
  auto& costs = analyses.of_functions.getResult<TargetIRAnalysis>(function);
  auto& aliases = analyses.of_functions.getResult<AAManager>(function);
  OptimizationRemarkEmitter remarks(&function);
  for (Loop* loop : loops.getLoopsInPreorder()) {
    BasicBlock* block = loop->getHeader();
    if (!loop->isInnermost() || loop->getLoopLatch() != block || !loop->isLoopSimplifyForm() ||
        block->getTerminator()->getMetadata(kIndependent) == nullptr)
      continue;
    const unsigned loads = MarkEarlyLoads(*block, aliases);
    if (loads == 0) continue;
    UnrollLoopOptions options{};
    options.Count = std::max(2u, std::min(kMostTimes, bit_floor(std::max(1u, kLoadsAhead / loads))));
    options.Runtime = true;
    options.AllowExpensiveTripCount = true;
    Loop* rest = nullptr;
    if (UnrollLoop(loop, options, &loops, &evolution, &dominators, &assumptions, &costs, &remarks,
                   /*PreserveLCSSA=*/true, &rest) != LoopUnrollResult::PartiallyUnrolled)
      continue;
    loop->setLoopAlreadyUnrolled();
    if (rest != nullptr) rest->setLoopAlreadyUnrolled();
    MoveEarlyLoads(*loop->getHeader());
  }
}

}  // namespace fusion
