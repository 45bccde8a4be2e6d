// Loops as MetaFork has them (Chen et al. 2017).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/loops/syntax.h"

namespace fusion {

// Returns the marked loops of a text as MetaFork, with the declarations that they need: reading it again
// gives the same loops. Loops of OpenMP are shared out as its `schedule(static, 1)` says: the iterations of a
// loop that is distributed to G teams in G chunks, those of a chunk, or of an inner loop, to B threads in
// turn. Where OpenMP says neither they are the parameters `teams` and `threads`. A guard stands where the
// last chunk may be shorter.
//
// InvalidArgument: as CheckLoops gives it, and for clauses that MetaFork has no words for (collapse,
// reduction).
absl::StatusOr<std::string> PrintMetaFork(absl::string_view text, const std::string& file_name);

// Returns one kernel of mapped loops as MetaFork: with these arrays in shared memory, and where `granularity`
// is not empty with one entry a thread in the place of so many.
std::string KernelText(const CProgram& program, const CRegion& region, const CStatement& kernel,
                       const std::vector<std::string>& cached, const std::string& granularity);

}  // namespace fusion
