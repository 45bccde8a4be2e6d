// Reads loops from C.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "server/loops/syntax.h"
#include "server/parse/error_list.h"

namespace fusion {

// Limits on what a text may have; a text with more is an error that says so.
inline constexpr size_t kMostLoopBytes = 64 << 10;
inline constexpr int kDeepestNest = 12, kDeepestExpression = 64, kMostRegions = 64;
inline constexpr int kMostAccesses = 256;  // of one region

// Returns the marked loops of a program, or of a fragment of one: `meta_schedule` statements, and loops
// behind
// "#pragma omp" with a construct of loops or "#pragma fusion parametric", and what is between "#pragma scop"
// and
// "#pragma endscop". Other statements are read only for
// what they declare, and may be any C. Whatever the subset lacks is an error where it stands inside of marked
// loops.
CProgram ParseC(absl::string_view text, ErrorList* errors);

}  // namespace fusion
