#include "compiler/partition/accesses.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <algorithm>

namespace fusion {

using namespace llvm;

namespace {

constexpr size_t kMostAccesses = 256;  // pairs of them are compared

// Returns "" for an instruction that may run in any thread, on any copy of the arrays.
std::string WhyNotInstruction(const Instruction& instruction) {
  if (instruction.isDebugOrPseudoInst() || instruction.isLifetimeStartOrEnd()) return "";
  for (const Use& use : instruction.operands())
    if (use->getType()->isX86_FP80Ty() || use->getType()->isPPC_FP128Ty() || use->getType()->isFP128Ty())
      return "computes with long double";
  if (auto* call = dyn_cast<CallBase>(&instruction)) {
    auto* intrinsic = dyn_cast<IntrinsicInst>(call);
    if (intrinsic != nullptr) {
      const Intrinsic::ID id = intrinsic->getIntrinsicID();
      if (id == Intrinsic::assume || id == Intrinsic::experimental_noalias_scope_decl) return "";
      if (id != Intrinsic::threadlocal_address && !intrinsic->mayReadOrWriteMemory() &&
          !intrinsic->isConvergent())
        return "";
    }
    return call->isInlineAsm() ? "has assembly" : "calls " + NameOfCallee(*call);
  }
  if (instruction.isAtomic()) return "has an atomic access";
  if (instruction.isVolatile()) return "has a volatile access";
  if (auto* store = dyn_cast<StoreInst>(&instruction)) {
    if (store->getValueOperand()->getType()->isPointerTy()) return "stores a pointer";
    return "";
  }
  if (isa<LoadInst>(instruction)) return instruction.getType()->isPointerTy() ? "reads a pointer" : "";
  if (isa<PtrToIntInst>(instruction) || isa<IntToPtrInst>(instruction))
    return "computes with addresses as numbers";
  if (instruction.mayReadOrWriteMemory() || instruction.mayThrow())
    return "has an instruction with effects that are not known";
  return "";
}

// Returns true when the array is the loop's own: what it holds at the start of an iteration is not defined.
// Addresses of its elements that are computed before the loop are added to `addresses`.
bool IsOwn(const AllocaInst& local, const Loop& loop, SmallVectorImpl<GetElementPtrInst*>& addresses) {
  bool begins = false;
  SmallVector<const Value*, 4> left{&local};
  while (!left.empty()) {
    for (const User* user : left.pop_back_val()->users()) {
      auto* instruction = dyn_cast<Instruction>(user);
      if (instruction == nullptr) return false;
      if (!loop.contains(instruction)) {
        auto* element = dyn_cast<GetElementPtrInst>(instruction);
        if (element == nullptr || !element->hasAllConstantIndices()) return false;
        addresses.push_back(const_cast<GetElementPtrInst*>(element));
        left.push_back(element);
        continue;
      }
      auto* intrinsic = dyn_cast<IntrinsicInst>(instruction);
      begins |= intrinsic != nullptr && intrinsic->getIntrinsicID() == Intrinsic::lifetime_start;
    }
  }
  return begins && isa<ConstantInt>(local.getArraySize());
}

// Comparisons of addresses are the same on copies only where both belong to one array.
bool ComparesAddresses(const Instruction& instruction, ScalarEvolution& evolution) {
  auto* comparison = dyn_cast<ICmpInst>(&instruction);
  if (comparison == nullptr || !comparison->getOperand(0)->getType()->isPointerTy()) return false;
  auto base = [&](unsigned operand) {
    return evolution.getPointerBase(evolution.getSCEV(comparison->getOperand(operand)));
  };
  return base(0) != base(1);
}

}  // namespace

LoopNest NestOf(const BasicBlock& block, const Loop& loop, const LoopInfo& loops) {
  LoopNest nest;
  for (const Loop* around = loops.getLoopFor(&block); around != nullptr; around = around->getParentLoop()) {
    nest.insert(nest.begin(), around);
    if (around == &loop) break;
  }
  return nest;
}

const Instruction* EndThatNothingElseUses(const Loop& loop) {
  const ICmpInst* comparison = EndOf(loop);
  return comparison != nullptr && comparison->hasOneUse() && loop.contains(comparison) ? comparison : nullptr;
}

std::string NameOf(const LoopArray& array) {
  return array.address->hasName() ? array.address->getName().str() : "an array";
}

std::string NameOfCallee(const CallBase& call) {
  const Function* callee = call.getCalledFunction();
  if (callee == nullptr) return "a function pointer";
  if (!callee->isIntrinsic()) return demangle(callee->getName());
  StringRef name = Intrinsic::getBaseName(callee->getIntrinsicID());
  name.consume_front("llvm.");
  return name.str();
}

void NameLoads(Function& function) {
  for (Instruction& instruction : instructions(function)) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (load == nullptr || load->hasName()) continue;
    const Value* place = load->getPointerOperand();
    auto* member = dyn_cast<GEPOperator>(place);
    const Value* object = member == nullptr ? place : member->getPointerOperand();
    if (!object->hasName()) continue;
    // The compiler numbers the values of a variable: rows.07.
    const StringRef name = member == nullptr ? "" : member->getName().split('.').first;
    if (member != nullptr && !member->hasAllConstantIndices())
      load->setName(object->getName() + "[...]");
    else if (member != nullptr && !name.empty())
      load->setName(object->getName() + "." + name);
    else if (member == nullptr)
      load->setName((isa<GlobalVariable>(object) ? "" : "*") + object->getName());
  }
}

std::string LineOf(const Instruction& instruction) {
  const DebugLoc& place = instruction.getDebugLoc();
  return place && place.getLine() != 0 ? " (line " + std::to_string(place.getLine()) + ")" : "";
}

std::string FindAccesses(const LoopInfo& loops, ExactNumbers& numbers, LoopAccesses& found) {
  const Loop& loop = numbers.loop();
  ScalarEvolution& evolution = numbers.evolution();
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block) {
      if (std::string why = WhyNotInstruction(instruction); !why.empty()) return why + LineOf(instruction);
      if (&instruction != EndThatNothingElseUses(loop) && ComparesAddresses(instruction, evolution))
        return "compares addresses" + LineOf(instruction);
      Value* address = getLoadStorePointerOperand(&instruction);
      if (address == nullptr) continue;
      if (found.accesses.size() == kMostAccesses)
        return "has more than " + std::to_string(kMostAccesses) + " accesses";
      const DataLayout& layout = instruction.getModule()->getDataLayout();
      const TypeSize size = layout.getTypeStoreSize(getLoadStoreType(&instruction));
      if (size.isScalable()) return "has vectors of unknown length";
      LoopAccess access{
          &instruction, isa<StoreInst>(instruction), static_cast<int64_t>(size.getFixedValue()), 0, {},
          nullptr};
      access.nest = NestOf(*block, loop, loops);
      const SCEV* place = evolution.getSCEVAtScope(address, loops.getLoopFor(block));
      const SCEV* base = evolution.getPointerBase(place);
      auto* value = dyn_cast<SCEVUnknown>(base);
      if (value == nullptr || !evolution.isLoopInvariant(base, &loop))
        return (access.written ? "writes through a pointer that changes"
                               : "reads through a pointer that changes") +
               LineOf(instruction);
      auto* global = dyn_cast<GlobalVariable>(value->getValue());
      if (global != nullptr && global->isThreadLocal())
        return "uses a variable that each thread has" + LineOf(instruction);
      if (auto* local = dyn_cast<AllocaInst>(value->getValue())) {
        SmallVector<GetElementPtrInst*, 4> addresses;
        if (found.own.contains(local) || IsOwn(*local, loop, addresses)) {
          found.own.insert(local);
          found.own_addresses.insert(addresses.begin(), addresses.end());
          continue;
        }
      }
      auto array = std::find_if(found.arrays.begin(), found.arrays.end(),
                                [&](const LoopArray& known) { return known.base == base; });
      if (array == found.arrays.end()) array = found.arrays.insert(array, {base, value->getValue(), false});
      array->written |= access.written;
      access.array = static_cast<unsigned>(array - found.arrays.begin());
      const SCEV* offset = evolution.getMinusSCEV(place, base);
      if (!isa<SCEVCouldNotCompute>(offset)) access.offset = numbers.Exact(offset);
      if (access.offset != nullptr) numbers.Limit(access.offset, 62);
      found.accesses.push_back(std::move(access));
    }
  return "";
}

}  // namespace fusion
