// Refusals name what C and OpenMP have and loops for a device do not, and say what to write instead.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/parse/error_list.h"

namespace fusion {

// The calls that return text return an error for people, or nothing where the word is none of their kind.
// `errors` limits suggestions.
std::string RefusedStatement(absl::string_view word);  // the first word of a statement: "break"

// A part of a directive of OpenMP that is read: "parallel".
bool IsConstruct(absl::string_view word);
// A part that is not: "barrier". `first`: it is the first one, where some stand that are clauses elsewhere,
// and nothing but directives does.
std::string RefusedConstruct(absl::string_view word, bool first, ErrorList* errors);
// Returns whether such a directive is no matter outside of marked loops: OpenMP has it, and it shares out no
// loop behind it.
bool MayStandOutside(absl::string_view word);

std::string RefusedClause(absl::string_view name, ErrorList* errors);

// Returns the error of a variable that is declared with this word, "volatile" or "static". An empty name:
// that of its declaration.
std::string RefusedVariable(absl::string_view word, absl::string_view name);

}  // namespace fusion
