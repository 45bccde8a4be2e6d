#include "compiler/partition/outline.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace fusion {

using namespace llvm;

namespace {

// Values from outside that the loop uses, but for constants.
SetVector<Value*> UsedFromOutside(const Loop& loop, const LoopAccesses& accesses) {
  SetVector<Value*> used;
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block) {
      if (instruction.isDebugOrPseudoInst() || instruction.isLifetimeStartOrEnd() ||
          isa<AssumeInst>(instruction))
        continue;
      if (&instruction == EndThatNothingElseUses(loop)) continue;
      for (Use& use : instruction.operands()) {
        if (auto* local = dyn_cast<AllocaInst>(use); local != nullptr && accesses.own.contains(local))
          continue;
        if (auto* address = dyn_cast<GetElementPtrInst>(use);
            address != nullptr && accesses.own_addresses.contains(address))
          continue;
        if (isa<Constant>(use) || isa<BasicBlock>(use) || isa<MetadataAsValue>(use)) continue;
        if (auto* inside = dyn_cast<Instruction>(use);
            inside != nullptr && loop.contains(inside->getParent()))
          continue;
        used.insert(use);
      }
    }
  return used;
}

// Loads and stores of different arrays, or parts of one, touch different memory: the program has asked
// before.
void SayThatArraysAreApart(const LoopAccesses& accesses, ValueToValueMapTy& copies, LLVMContext& context) {
  MDBuilder metadata(context);
  MDNode* domain = metadata.createAnonymousAliasScopeDomain("fusion");
  MapVector<std::pair<unsigned, unsigned>, MDNode*> scopes;  // of an array and a part
  for (const LoopAccess& access : accesses.accesses)
    if (MDNode*& scope = scopes[{access.array, access.part}]; scope == nullptr)
      scope = metadata.createAnonymousAliasScope(domain);
  for (const LoopAccess& access : accesses.accesses) {
    auto* copy = cast<Instruction>(copies[access.instruction]);
    MDNode* own = scopes[{access.array, access.part}];
    SmallVector<Metadata*, 8> others;
    for (const auto& [place, scope] : scopes)
      if (scope != own) others.push_back(scope);
    auto add = [&](unsigned kind, ArrayRef<Metadata*> more) {
      copy->setMetadata(kind, MDNode::concatenate(copy->getMetadata(kind), MDNode::get(context, more)));
    };
    add(LLVMContext::MD_alias_scope, {own});
    if (!others.empty()) add(LLVMContext::MD_noalias, others);
  }
}

}  // namespace

std::string Outline(const LoopAccesses& accesses, const std::vector<LoopSum>& sums, ExactNumbers& numbers,
                    const std::string& name, OutlinedLoop& outlined) {
  const Loop& loop = numbers.loop();
  ScalarEvolution& evolution = numbers.evolution();
  BasicBlock *before = loop.getLoopPreheader(), *after = loop.getExitBlock(), *header = loop.getHeader(),
             *latch = loop.getLoopLatch();
  Function& around = *header->getParent();
  Module& module = *around.getParent();
  LLVMContext& context = module.getContext();

  SetVector<Value*> captured = UsedFromOutside(loop, accesses);
  for (unsigned array = 0; array < accesses.arrays.size(); ++array)
    captured.insert(accesses.arrays[array].address);
  outlined.captured.assign(captured.begin(), captured.end());
  SmallVector<Constant*, 4> globals;
  for (unsigned field = 0; field < outlined.captured.size(); ++field) {
    Value* value = outlined.captured[field];
    if (auto* global = dyn_cast<Constant>(value)) globals.push_back(global);
    if (!value->getType()->isPointerTy()) continue;
    const SCEV* base = evolution.getPointerBase(evolution.getSCEV(value));
    unsigned array = 0;
    while (array < accesses.arrays.size() && accesses.arrays[array].base != base) ++array;
    if (array == accesses.arrays.size()) return "uses an address that belongs to no array of it";
    outlined.pointers.push_back({field, array});
  }
  auto is_sum = [&](const PHINode& value) {
    return any_of(sums, [&](const LoopSum& sum) { return sum.before == &value; });
  };

  std::vector<Type*> fields;
  for (Value* value : outlined.captured) fields.push_back(value->getType());
  outlined.first_sum = static_cast<unsigned>(fields.size());
  for (const LoopSum& sum : sums) fields.push_back(sum.before->getType());
  outlined.context = StructType::create(context, fields, name + ".context");
  Type* integer = Type::getInt64Ty(context);
  auto* type =
      FunctionType::get(Type::getVoidTy(context), {integer, integer, PointerType::getUnqual(context)}, false);
  Function* body = Function::Create(type, GlobalValue::InternalLinkage, name, module);
  outlined.body = body;
  AttrBuilder attributes(context, around.getAttributes().getFnAttrs());
  for (Attribute::AttrKind kind :
       {Attribute::AlwaysInline, Attribute::InlineHint, Attribute::Memory, Attribute::NoReturn,
        Attribute::AllocSize, Attribute::AllocKind, Attribute::ReturnsTwice})
    attributes.removeAttribute(kind);
  body->addFnAttrs(attributes);
  body->addFnAttr(Attribute::NoInline);
  body->addFnAttr(Attribute::NoUnwind);

  BasicBlock *entry = BasicBlock::Create(context, "entry", body),
             *end = BasicBlock::Create(context, "end", body);
  IRBuilder<> builder(entry);
  ValueToValueMapTy copies;
  for (unsigned field = 0; field < outlined.captured.size(); ++field) {
    Value* value = outlined.captured[field];
    copies[value] = builder.CreateLoad(value->getType(),
                                       builder.CreateStructGEP(outlined.context, body->getArg(2), field),
                                       value->getName());
  }
  for (AllocaInst* local : accesses.own) {
    Instruction* copy = builder.Insert(local->clone());
    copy->setMetadata(LLVMContext::MD_DIAssignID, nullptr);
    copies[local] = copy;
  }
  for (GetElementPtrInst* address : accesses.own_addresses) {
    Instruction* copy = builder.Insert(address->clone());
    copy->setDebugLoc(DebugLoc());
    copy->setOperand(0, copies[address->getPointerOperand()]);
    copies[address] = copy;
  }
  SmallVector<BasicBlock*, 16> blocks;
  for (BasicBlock* block : loop.blocks()) {
    BasicBlock* copy = CloneBasicBlock(block, copies, "", body);
    copies[block] = copy;
    blocks.push_back(copy);
  }
  copies[before] = entry;
  copies[after] = end;
  for (BasicBlock* block : blocks)
    for (Instruction& instruction : make_early_inc_range(*block)) {
      instruction.dropDbgRecords();
      instruction.setDebugLoc(DebugLoc());
      instruction.setMetadata(LLVMContext::MD_DIAssignID, nullptr);
      if (instruction.isDebugOrPseudoInst() || instruction.isLifetimeStartOrEnd() ||
          isa<AssumeInst>(instruction) || isa<NoAliasScopeDeclInst>(instruction))
        instruction.eraseFromParent();
    }
  SayThatArraysAreApart(accesses, copies, context);
  DenseMap<Constant*, Value*> addresses;
  for (Constant* global : globals) {
    addresses[global] = copies[global];
    copies.erase(global);  // constants are mapped by name below
  }
  remapInstructionsInBlocks(blocks, copies);
  // Addresses of globals inside of constants become instructions, so that the copies of these arrays are
  // used.
  convertUsersOfConstantsToInstructions(globals, body);
  for (BasicBlock* block : blocks)
    for (Instruction& instruction : *block)
      for (Use& use : instruction.operands())
        if (auto* constant = dyn_cast<Constant>(use))
          if (auto address = addresses.find(constant); address != addresses.end()) use.set(address->second);

  // Each counter starts where iteration `first` has it, and a new one counts up to `last`.
  Value *first = body->getArg(0), *last = body->getArg(1);
  auto *new_header = cast<BasicBlock>(copies[header]), *new_latch = cast<BasicBlock>(copies[latch]);
  for (PHINode& counter : header->phis()) {
    if (is_sum(counter)) continue;
    auto* recurrence = cast<SCEVAddRecExpr>(evolution.getSCEV(&counter));
    const APInt& step = cast<SCEVConstant>(recurrence->getStepRecurrence(evolution))->getAPInt();
    auto* copy = cast<PHINode>(copies[&counter]);
    Value* start = copy->getIncomingValueForBlock(entry);
    Value* distance = builder.CreateMul(first, builder.getInt64(static_cast<uint64_t>(step.getSExtValue())));
    copy->setIncomingValueForBlock(
        entry, start->getType()->isPointerTy()
                   ? builder.CreateGEP(builder.getInt8Ty(), start, distance)
                   : builder.CreateAdd(start, builder.CreateSExtOrTrunc(distance, start->getType())));
  }
  for (const LoopSum& sum : sums) {
    cast<PHINode>(copies[sum.before])->setIncomingValueForBlock(entry, sum.neutral);
    // A sum of the program that does not overflow may do so in another order.
    for (Instruction* partial : sum.partials) cast<Instruction>(copies[partial])->dropPoisonGeneratingFlags();
  }
  builder.CreateBr(new_header);
  PHINode* count = IRBuilder<>(new_header, new_header->begin()).CreatePHI(integer, 2, "iteration");
  Instruction* old_end = new_latch->getTerminator();
  builder.SetInsertPoint(old_end);
  Value* next = builder.CreateAdd(count, builder.getInt64(1), "next", true, true);
  count->addIncoming(first, entry);
  count->addIncoming(next, new_latch);
  Instruction* new_end = builder.CreateCondBr(builder.CreateICmpSLT(next, last), new_header, end);
  if (MDNode* hints = old_end->getMetadata(LLVMContext::MD_loop))
    new_end->setMetadata(LLVMContext::MD_loop, hints);
  old_end->eraseFromParent();
  if (const Instruction* comparison = EndThatNothingElseUses(loop))
    cast<Instruction>(copies[comparison])->eraseFromParent();
  builder.SetInsertPoint(end);
  for (unsigned at = 0; at < sums.size(); ++at)
    builder.CreateAtomicRMW(
        sums[at].operation,
        builder.CreateStructGEP(outlined.context, body->getArg(2), outlined.first_sum + at),
        copies[sums[at].after], MaybeAlign(), AtomicOrdering::Monotonic);
  builder.CreateRetVoid();
  return "";
}

}  // namespace fusion
