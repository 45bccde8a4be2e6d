// The form that a loop must have to be taken apart, before anything is asked of memory.
#pragma once

#include <string>
#include <vector>

#include "compiler/partition/exact_numbers.h"
#include "compiler/partition/sums.h"

namespace fusion {

// Returns "" for a loop with one exit, at its end, whose count is known before it and whose iterations hand
// nothing on but counters and `sums`; else why it is none.
std::string WhyNotCounted(const llvm::Loop& loop, ExactNumbers& numbers, std::vector<LoopSum>& sums);

}  // namespace fusion
