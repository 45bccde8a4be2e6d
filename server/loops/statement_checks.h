// Faults of statements that need no polynomials to be found.
#pragma once

#include <string>
#include <vector>

#include "server/loops/syntax.h"
#include "server/parse/error_list.h"

namespace fusion {

// Reports loops whose bounds have their own counter, variables that are volatile, and sums that are not what
// their reduction clause says.
void CheckStatements(const CRegion& region, ErrorList* errors);

// Returns what the bound or the step of a loop reads and its body writes, as people read it: "c[0]"; else
// nothing. Nobody knows beforehand how often such a loop runs.
std::string ChangedBound(const CStatement& loop);

// A note names a part of a pragma that is read and has no effect here.
struct LoopNote {
  SourcePosition position;
  std::string text;  // "nowait is ignored: ..."
};
std::vector<LoopNote> NotesOf(const CProgram& program);
std::string NoteText(const LoopNote& note, const std::string& file_name);  // "x.c:3:1: note: nowait is ..."

}  // namespace fusion
