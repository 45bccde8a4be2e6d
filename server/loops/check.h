// The check reads loops in C and says which of them are parallel.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/loops/dependence.h"

namespace fusion {

struct CheckedLoop {
  std::string counter;
  SourcePosition position;
  Claim claim = Claim::kNone;
  LoopVerdict verdict;
};

// Reads and judges all marked loops of a text in C. `file_name` is for messages.
//
// InvalidArgument reports all errors at once, as ParseSource does: what cannot be read, what no device can
// run, and claims that are wrong: a loop of which a pragma or `meta_for` says that it is parallel, while two
// of its iterations are known that touch the same memory. NotFound: there are no marked loops.
absl::StatusOr<std::vector<CheckedLoop>> CheckLoops(absl::string_view text, const std::string& file_name);

// Returns a line such as "matmul.c:3:1: i is parallel: proved".
std::string LoopText(const CheckedLoop& loop, const std::string& file_name);

}  // namespace fusion
