// Registers keep what a thread adds up over the strips of a loop.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/loops/evaluate.h"
#include "server/loops/syntax.h"

namespace fusion {

// A loop that all threads of a block go through together, around loops over threads. Each thread reads its
// entries before it, has them in variables in `loop`, and writes them after it.
struct KeptOverStrips {
  // Each thread has such a variable. Names begin with a dollar (kernel_ir.h).
  struct Variable {
    std::string name;
    CType type = CType::kInt;
    std::vector<int64_t> extents;  // one for each loop over parts
  };
  std::vector<Variable> variables;
  std::set<std::string> arrays;       // whose entries they are; the loop touches no others of them
  CStatementPtr before, loop, after;  // `before` and `after`: loops over threads
};

// Returns nothing where no entries are the same in all iterations of the loop. `arrays`: types of those that
// may be kept. `constants`: as for KeepInRegisters. `threads`: of a block. `first`: the number of the first
// variable.
std::optional<KeptOverStrips> KeepOverStrips(const CStatement& loop,
                                             const std::map<std::string, CType>& arrays,
                                             const IntegerValues& constants, int64_t threads, int first);

// Strips of full length have a loop of their own, whose number of iterations is known; where it has few
// statements, it is marked as a loop over strips itself, which devices unroll.
CStatementPtr WithWholeStrips(const CStatementPtr& statement, const IntegerValues& constants);

}  // namespace fusion
