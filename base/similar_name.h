// "Did you mean ...?" and how names are shown in messages.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fusion {

// The candidate that is nearest to `name` by edit distance, where swapping two neighbouring characters counts
// as one edit and letters that differ in case alone count as none; "" when none is within a third of the
// length of `name` (so none at all for M1 and M2) and within 3 edits. Of equally near candidates the first.
// Names over 64 characters have none.
std::string SimilarName(absl::string_view name, const std::vector<absl::string_view>& candidates);

// " (did you mean X?)", or "" for an empty suggestion.
std::string DidYouMean(absl::string_view suggestion);

// The name, cut to 60 bytes and with '?' for control characters, so that a message stays a line.
std::string Shown(absl::string_view name);

}  // namespace fusion
