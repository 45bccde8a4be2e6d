// The form that a loop must have to be taken apart, before anything is asked of memory.
#pragma once

#include <string>

#include "compiler/partition/exact_numbers.h"

namespace fusion {

// Returns "" for a loop with one exit, at its end, whose count is known before it and whose iterations hand
// nothing on but counters; else why it is none.
std::string WhyNotCounted(const llvm::Loop& loop, ExactNumbers& numbers);

}  // namespace fusion
