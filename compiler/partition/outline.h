// A loop as a function of a range of its iterations, which runs in any thread and on copies of the arrays.
#pragma once

#include <llvm/IR/DerivedTypes.h>

#include <string>
#include <vector>

#include "compiler/partition/accesses.h"
#include "compiler/partition/sums.h"

namespace fusion {

// A pointer that the loop uses: an array's address, or one that was computed from it before the loop.
struct CapturedPointer {
  unsigned field;  // of the context
  unsigned array;
};

struct OutlinedLoop {
  llvm::Function* body = nullptr;  // void(int64 first, int64 last, ptr context)
  llvm::StructType* context = nullptr;
  std::string kernel;                  // its name on the device, "" where it runs on the host alone
  std::vector<llvm::Value*> captured;  // what the fields of the context are before the loop
  std::vector<CapturedPointer> pointers;
  unsigned first_sum = 0;  // the fields from here on are the sums: each call of the body adds its part
};

// Makes the function; the loop stays. Returns "", or why there is none: then nothing was changed.
std::string Outline(const LoopAccesses& accesses, const std::vector<LoopSum>& sums, ExactNumbers& numbers,
                    const std::string& name, OutlinedLoop& outlined);

}  // namespace fusion
