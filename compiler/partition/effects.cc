#include "compiler/partition/effects.h"

#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace fusion {

using namespace llvm;

namespace {

MemoryEffects EffectsOn(const Instruction& instruction, AAResults& aliases) {
  if (!instruction.mayReadOrWriteMemory() || instruction.isDebugOrPseudoInst() ||
      instruction.isLifetimeStartOrEnd() || isa<AssumeInst>(instruction))
    return MemoryEffects::none();
  if (auto* call = dyn_cast<CallBase>(&instruction))
    return call->onlyReadsMemory() ? MemoryEffects::readOnly() : MemoryEffects::unknown();
  if (instruction.isVolatile() || instruction.isAtomic() ||
      getLoadStorePointerOperand(&instruction) == nullptr)
    return MemoryEffects::unknown();
  const MemoryLocation place = MemoryLocation::get(&instruction);
  if (isNoModRef(aliases.getModRefInfoMask(place, /*IgnoreLocals=*/true))) return MemoryEffects::none();
  if (!isa<LoadInst>(instruction)) return MemoryEffects::unknown();
  return isa<Argument>(getUnderlyingObject(place.Ptr)) ? MemoryEffects::argMemOnly(ModRefInfo::Ref)
                                                       : MemoryEffects::readOnly();
}

}  // namespace

FunctionEffects FindEffects(Function& function, AAResults& aliases) {
  // Another definition, with other effects, may take the place of this one.
  if (!function.hasExactDefinition()) return {};
  FunctionEffects effects{MemoryEffects::none(), {}};
  for (const Instruction& instruction : instructions(function))
    effects.memory |= EffectsOn(instruction, aliases);
  for (const Argument& argument : function.args())
    if (argument.getType()->isPointerTy() &&
        !PointerMayBeCaptured(&argument, /*ReturnCaptures=*/true, /*StoreCaptures=*/true))
      effects.not_captured.push_back(argument.getArgNo());
  return effects;
}

void SetEffects(const FunctionEffects& effects, Function& function) {
  if (effects.memory != MemoryEffects::unknown())
    function.setMemoryEffects(function.getMemoryEffects() & effects.memory);
  for (unsigned argument : effects.not_captured) function.addParamAttr(argument, Attribute::NoCapture);
}

}  // namespace fusion
