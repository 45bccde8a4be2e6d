// Scalars in which loops leave a result.
#pragma once

#include "server/loops/check.h"

namespace fusion {

// Returns the program with an array of one entry in the place of each scalar that loops give a value which
// others, or the program behind them, may read: kernels hand on memory alone. Integers on which ranges,
// conditions or indices depend stay scalars.
CheckedProgram WithResultsInArrays(CheckedProgram checked);

}  // namespace fusion
