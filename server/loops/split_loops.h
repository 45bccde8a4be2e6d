// Loops split at an iteration that is in the way of all others.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "server/loops/nest.h"
#include "server/loops/syntax.h"

namespace fusion {

// Returns values of the loop's counter at which one access touches what another one touches in all
// iterations: where path[i][j] meets path[k][j], i is k. They are free of the loop's own counters, and few.
// `numbers` of loops are those in `nest`.
std::vector<CExpressionPtr> SplitPoints(const CStatement& loop, const Nest& nest,
                                        const std::map<const CStatement*, int>& numbers);

// Three loops do what one did, in the same order: one up to a value of the counter, one of this value alone
// if the loop has it, and one from there on. Their bodies are copies.
struct SplitLoop {
  CStatementPtr statement;  // all three
  std::array<const CStatement*, 3> parts = {};
};
SplitLoop SplitAt(const CStatement& loop, const CExpressionPtr& point);

}  // namespace fusion
