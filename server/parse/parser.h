// The grammar of .fuse (README.md of this folder).
#pragma once

#include "absl/strings/string_view.h"
#include "server/parse/error_list.h"
#include "server/parse/syntax.h"

namespace fusion {

// Reads all statements of `text`, which must be valid UTF-8 and outlive the tree. Reports at most one error
// per statement and goes on with the next one. Linear in the length of the text. Reads no more than
// `max_calls` calls and reports the one that is too many.
SyntaxTree ParseFuse(absl::string_view text, int max_calls, ErrorList* errors);

}  // namespace fusion
