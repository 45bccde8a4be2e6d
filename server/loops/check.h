// The check reads loops in C and says which of them are parallel.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/loops/dependence.h"
#include "server/loops/nest.h"
#include "server/loops/syntax.h"

namespace fusion {

// Returns whether a pragma or `meta_for` says that iterations may run at the same time.
inline bool IsClaimed(Claim claim) { return claim == Claim::kMetaFor || claim == Claim::kOpenMp; }

struct CheckedLoop {
  size_t region = 0;  // of the program, and the number of its nest
  std::string counter;
  SourcePosition position;
  Claim claim = Claim::kNone;
  LoopVerdict verdict;
};

struct CheckedProgram {
  CProgram program;
  std::vector<std::unique_ptr<const Nest>> nests;  // one for each region
  std::vector<CheckedLoop> loops;                  // that somebody claims to be parallel, or asks about
};

// Reads and judges all marked loops of a text in C. `file_name` is for messages.
//
// InvalidArgument reports all errors at once, as ParseSource does: what cannot be read, what no device can
// run, and claims that are wrong: a loop of which a pragma or `meta_for` says that it is parallel, while two
// of its iterations are known that touch the same memory. NotFound: there are no marked loops.
//
// Numbers that the text defines are constants, but those whose names are in `sizes`: what is proved holds for
// all their values.
absl::StatusOr<CheckedProgram> CheckLoops(absl::string_view text, const std::string& file_name,
                                          const std::set<std::string>& sizes = {});

// Returns a line such as "matmul.c:3:1: i is parallel: proved".
std::string LoopText(const CheckedLoop& loop, const std::string& file_name);

}  // namespace fusion
