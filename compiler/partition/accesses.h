// Loads and stores of a loop: the array that each belongs to, and where in it.
#pragma once

#include <llvm/IR/Instructions.h>

#include <string>
#include <vector>

#include "compiler/partition/iteration_space.h"

namespace fusion {

struct LoopAccess {
  llvm::Instruction* instruction;
  bool written;
  int64_t bytes;
  unsigned array;  // in LoopAccesses::arrays
  LoopNest nest;
  const llvm::SCEV* offset;  // behind the array's address, bytes, exact; null where it is no affine number
  // Accesses of an array that belong to different parts of it touch different bytes in all of the loop.
  unsigned part = 0;
};

struct LoopArray {
  const llvm::SCEV* base;  // its address
  llvm::Value* address;
  bool written;
};

struct LoopAccesses {
  std::vector<LoopArray> arrays;
  std::vector<LoopAccess> accesses;
  // Local arrays whose lifetime is one iteration: each thread has its own.
  llvm::SetVector<llvm::AllocaInst*> own;
  // Addresses of their elements that are computed before the loop, each after those that it is made of.
  llvm::SetVector<llvm::GetElementPtrInst*> own_addresses;
};

// Finds the accesses of numbers.loop(). Returns "", or why the loop cannot be taken apart.
std::string FindAccesses(const llvm::LoopInfo& loops, ExactNumbers& numbers, LoopAccesses& found);

// The loops around a block, `loop` first.
LoopNest NestOf(const llvm::BasicBlock& block, const llvm::Loop& loop, const llvm::LoopInfo& loops);

// The comparison that ends the loop, where nothing else uses it: a function of a range of iterations needs
// none.
const llvm::Instruction* EndThatNothingElseUses(const llvm::Loop& loop);

// "C" or "an array": how people know it.
std::string NameOf(const LoopArray& array);
// Returns what a call calls: "exp", "g(double)".
std::string NameOfCallee(const llvm::CallBase& call);
// Gives names to values that are read before loops: a.rows is a member of what `a` points to, *a its first
// one.
void NameLoads(llvm::Function& function);
// " (line 7)", or "" where that is not known.
std::string LineOf(const llvm::Instruction& instruction);

}  // namespace fusion
