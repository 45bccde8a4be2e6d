// The code of a nest in another order: a loop of the time, and inside of it the loops of each phase.
#pragma once

#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <memory>
#include <string>

#include "compiler/partition/reorder.h"

namespace fusion {

class ReorderedCode {
 public:
  ReorderedCode(const NestStatements& nest, const Reordering& order, ExactNumbers& numbers,
                IterationSpace& space);
  ~ReorderedCode();

  // Finds the loops, and limits the numbers in their bounds. Returns "", or why there is no code.
  std::string Plan();

  struct Blocks {
    llvm::BasicBlock* entry = nullptr;
    llvm::BasicBlock* last = nullptr;     // without an end
    llvm::Instruction* one = nullptr;     // the value 1, 64 bits, to be replaced by one that nobody knows
    llvm::BasicBlock* time = nullptr;     // the header of the time's loop
    std::vector<llvm::BasicBlock*> deep;  // headers of phases that have two counters or more besides
  };
  // Writes it, without an entry, and numbers that are known before the nest in front of `before`.
  Blocks Write(llvm::Instruction* before);

 private:
  struct Plans;
  const NestStatements& nest_;
  const Reordering& order_;
  ExactNumbers& numbers_;
  IterationSpace& space_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace fusion
