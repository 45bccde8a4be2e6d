// Numbers that a loop keeps in a register, and that may as well be in memory: LLVM moves the load of a[i][j]
// +=
// ... out of the loop, and sometimes the store, and programs do the same with variables.
#pragma once

#include <llvm/ADT/DenseSet.h>

#include "compiler/partition/block_domains.h"
#include "compiler/partition/statements.h"

namespace fusion {

// Adds them to found.in_memory, with what has to hold for that, and their steps to the statements. Returns
// loads that are not needed then.
llvm::DenseSet<const llvm::Instruction*> FindNumbersInMemory(const llvm::LoopInfo& loops,
                                                             const LoopAccesses& accesses,
                                                             ExactNumbers& numbers,
                                                             const BlockDomains& domains,
                                                             NestStatements& found);

}  // namespace fusion
