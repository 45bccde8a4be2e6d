// Choosing parameters by a linear program in their logarithms (Moreno Maza 2017, "Case selection at
// runtime").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/linear/general_program.h"
#include "server/loops/cases.h"

namespace fusion {

struct LogarithmicProgram {
  std::vector<std::string>
      names;               // of the variables: parameters, of which each is the logarithm to the base 2
  GeneralProgram program;  // maximises their sum
};

// Returns the program of a kernel's largest case: each of the n terms of the words that a block touches takes
// at most an n-th of `words` (of four bytes), and a block has 32 to 1024 threads. Nothing where words or
// threads are no sums of products of parameters.
std::optional<LogarithmicProgram> LogarithmicProgramOf(const CaseDiscussion& discussion, int64_t words);

// Returns the program with its solution, for people, a line each: "s + B0 + B1 <= 12".
std::string LogarithmicText(const LogarithmicProgram& program, const GeneralSolution& solution);

}  // namespace fusion
