// This is where compile time is saved: most of a C++ file has no loop that could be taken apart.
#pragma once

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Module.h>

namespace fusion {

// The attribute of functions that were made, or partitioned: a file of LLVM's language that fusion-cc has
// written is not partitioned again.
inline constexpr char kPartitioned[] = "fusion-partitioned";

// Functions with a loop that calls nothing but what may be inlined into it, and what these call. With `all`,
// every function that has a loop.
llvm::SetVector<llvm::Function*> SelectFunctions(llvm::Module& module, bool all);

}  // namespace fusion
