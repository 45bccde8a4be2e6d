// Serial nests of loops as loops along diagonals.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/loops/nest.h"
#include "server/loops/syntax.h"

namespace fusion {

// These loops have the same iterations in another order.
struct Diagonals {
  CStatementPtr statement;  // a loop over the times, around the loops of the band but the last
  std::vector<const CStatement*> parallel;  // these: iterations of one time are independent, but for scalars
};

// Returns `depth` loops, of which `loop` is the outermost, as a loop over the weighted sums of their counters
// that DiagonalOrder speaks of; the innermost counter follows from the others. Tries small weights, the
// smallest first. Nothing: there are no such loops, or for no weights it is proved that the order keeps all
// dependences. `numbers` of loops are those in `nest`; `fresh` makes names that nothing else has.
std::optional<Diagonals> AlongDiagonals(const CStatement& loop, size_t depth, const Nest& nest,
                                        const std::map<const CStatement*, int>& numbers,
                                        const std::function<std::string(const std::string&)>& fresh);

}  // namespace fusion
