#include "compiler/partition/syncs.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <vector>

namespace fusion {

using namespace llvm;

namespace {

bool IsEntry(const Instruction& instruction) {
  auto* call = dyn_cast<CallInst>(&instruction);
  return call != nullptr && call->getCalledFunction() != nullptr &&
         call->getCalledFunction()->getName() == "fusion_partition_enter";
}

// It may touch memory of the program, or ends the function, whose caller may.
bool Touches(const Instruction& instruction) {
  if (instruction.hasMetadata(kSiteMemory)) return false;
  if (isa<ReturnInst>(instruction)) return true;
  // The end of an object's life is not among these: its memory may be another's after.
  if (isa<DbgInfoIntrinsic>(instruction) || isa<AssumeInst>(instruction) ||
      isa<NoAliasScopeDeclInst>(instruction))
    return false;
  if (auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction);
      intrinsic != nullptr && intrinsic->getIntrinsicID() == Intrinsic::lifetime_start)
    return false;
  // Assembly need not say what it touches by an address that it has.
  if (auto* call = dyn_cast<CallBase>(&instruction); call != nullptr && call->isInlineAsm()) return true;
  return instruction.mayReadOrWriteMemory() || instruction.mayThrow();
}

// A load or store of some bytes: where these are on no device nothing has to come back.
bool IsAccess(const Instruction& instruction) {
  auto is_simple = [](const auto& access, const Type* type) {
    return access.isSimple() && access.getPointerAddressSpace() == 0 && !type->isScalableTy();
  };
  if (auto* load = dyn_cast<LoadInst>(&instruction)) return is_simple(*load, load->getType());
  auto* store = dyn_cast<StoreInst>(&instruction);
  return store != nullptr && is_simple(*store, store->getValueOperand()->getType());
}

enum class EventKind {
  kOpens,     // a partitioned loop
  kAccesses,  // some bytes are touched
  kTouches,   // any memory may be
};

// Where results may still be on a device, block by block.
class SyncPlaces {
 public:
  SyncPlaces(Function& function, const LoopInfo& loops) : function_(function) {
    for (BasicBlock& block : function) {
      for (Instruction& instruction : block) {
        if (IsEntry(instruction)) {
          events_[&block].push_back({&instruction, EventKind::kOpens});
        } else if (Touches(instruction)) {
          events_[&block].push_back(
              {&instruction, IsAccess(instruction) ? EventKind::kAccesses : EventKind::kTouches});
        }
      }
    }
    // No loop asks again and again: where it has no partitioned loop inside, it is asked before it.
    for (const Loop* loop : loops) TakeTogether(*loop);
  }

  // Returns the instructions before which the program has to ask.
  std::vector<Instruction*> Find() {
    std::vector<Instruction*> places;
    bool changes = true;
    while (changes) {
      changes = false;
      places.clear();
      for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_)) {
        bool open = false;
        for (BasicBlock* before : predecessors(block)) open = open || is_open_after_[before];
        for (const Event& event : events_[block]) {
          if (event.kind != EventKind::kOpens && open) places.push_back(event.at);
          if (event.kind != EventKind::kAccesses) open = event.kind == EventKind::kOpens;
        }
        changes = changes || is_open_after_[block] != open;
        is_open_after_[block] = open;
      }
    }
    return places;
  }

 private:
  struct Event {
    Instruction* at;
    EventKind kind;
  };

  void TakeTogether(const Loop& loop) {
    bool has_entry = false, touches = false;
    for (BasicBlock* block : loop.blocks())
      for (const Event& event : events_[block])
        (event.kind == EventKind::kOpens ? has_entry : touches) = true;
    BasicBlock* const before = loop.getLoopPreheader();
    if (has_entry || before == nullptr) {
      for (const Loop* inner : loop) TakeTogether(*inner);
      return;
    }
    for (BasicBlock* block : loop.blocks()) events_[block].clear();
    if (touches) events_[before].push_back({before->getTerminator(), EventKind::kTouches});
  }

  Function& function_;
  DenseMap<const BasicBlock*, std::vector<Event>> events_;
  DenseMap<const BasicBlock*, bool> is_open_after_;
};

}  // namespace

void AddSyncs(Function& function, FunctionAnalysisManager& analyses) {
  Module& module = *function.getParent();
  const std::vector<Instruction*> places =
      SyncPlaces(function, analyses.getResult<LoopAnalysis>(function)).Find();
  IRBuilder<> builder(function.getContext());
  Constant* const open = module.getOrInsertGlobal("fusion_partition_open", builder.getInt32Ty());
  FunctionCallee sync =
      module.getOrInsertFunction("fusion_partition_sync", FunctionType::get(builder.getVoidTy(), false));
  FunctionCallee touch = module.getOrInsertFunction(
      "fusion_partition_touch",
      FunctionType::get(builder.getVoidTy(), {builder.getPtrTy(), builder.getInt64Ty(), builder.getInt32Ty()},
                        false));
  for (FunctionCallee callee : {sync, touch})
    cast<Function>(callee.getCallee())->addFnAttr(Attribute::NoUnwind);
  cast<Function>(touch.getCallee())->addParamAttr(0, Attribute::NoCapture);
  MDNode* const unlikely = MDBuilder(function.getContext()).createUnlikelyBranchWeights();
  for (Instruction* place : places) {
    builder.SetInsertPoint(place);
    LoadInst* const now = builder.CreateLoad(builder.getInt32Ty(), open);
    now->setAtomic(AtomicOrdering::Monotonic);
    now->setAlignment(Align(4));
    Instruction* const then = SplitBlockAndInsertIfThen(builder.CreateICmpNE(now, builder.getInt32(0)), place,
                                                        /*Unreachable=*/false, unlikely);
    builder.SetInsertPoint(then);
    if (IsAccess(*place)) {
      const TypeSize bytes = module.getDataLayout().getTypeStoreSize(getLoadStoreType(place));
      builder.CreateCall(touch, {getLoadStorePointerOperand(place), builder.getInt64(bytes.getFixedValue()),
                                 builder.getInt32(isa<StoreInst>(place))});
    } else {
      builder.CreateCall(sync);
    }
  }
}

}  // namespace fusion
