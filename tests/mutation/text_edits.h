// Changes of lines of generated code, as text.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/mutation/mutants.h"

namespace fusion::testing {

// text[begin, begin + length) becomes `with`.
struct TextEdit {
  MutationKind kind = MutationKind::kBound;
  size_t begin = 0, length = 0;
  std::string with;
};
std::string Edited(const std::string& text, const TextEdit& edit);

// Returns what can be changed in a line. `is_routine`: the line is of an elementary function, whose sums are
// plain variables.
std::vector<TextEdit> EditsOf(const std::string& line, v1::Target target, bool is_routine = false);

// A "for (begin; condition; step)" at or behind a place in a text: where each part begins and ends, and where
// the bracket closes.
struct ForHeader {
  std::pair<size_t, size_t> begin, condition, step;
  size_t close = 0;
};
std::optional<ForHeader> ForHeaderOf(const std::string& text, size_t from);

size_t CountOf(const std::string& text, const std::string& part);
// Returns the text with occurrence `number`, from 0, replaced; the text itself where there are fewer.
std::string ReplaceNumber(std::string text, const std::string& before, const std::string& after,
                          size_t number);

// Joins loops of a host kernel: the loops over groups number `number` and the next become one, with the
// bodies of both. Returns the text itself where they do not have the same groups.
std::string JoinSections(std::string text, size_t number);

// The first function template of the name, with its "template" line; "" where there is none.
std::string FunctionText(const std::string& runtime, const std::string& name);

}  // namespace fusion::testing
