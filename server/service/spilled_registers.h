// Candidates for whose values the compiler finds no registers, so that it keeps ("spills") some in local
// memory.
//
// An element kernel keeps its values in registers, or else in shared memory: one that spills has neither, and
// another choice of the same graph has. Candidates with one are left out where there are others, but for a
// few bytes. Kernels over rows and vectors are not: what they keep in registers gains more than some of it
// costs that is spilled, and their times decide.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/service/job_stages.h"

namespace fusion {

// Of the log of a build: bytes that the instructions of a thread store and load for this reason, in all its
// kernels together. 0 where the log does not say, as those of older workers, of PTX and of host compilers.
int64_t SpilledBytes(absl::string_view log);

// What spills in a candidate that was built, if it is to be left out while there are others; empty: nothing.
std::string SpillsOf(const PlannedCandidate& planned, const BuiltCode& built);

// Of the candidates at `positions`, which were built, those that are left out: they have failed, with
// EXCEEDS_DEVICE. Their positions.
std::vector<int> RejectSpilled(const std::vector<int>& positions, const BuiltCode& built,
                               GeneratedCode* code);

// Where no candidate is OK, those at `rejected` are to be timed after all, and true; else false.
bool TakeBackSpilled(const std::vector<int>& rejected, GeneratedCode* code);

}  // namespace fusion
