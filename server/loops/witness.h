// Searches two iterations of a loop that touch the same entry, by trying.
#pragma once

#include <optional>
#include <string>

#include "server/loops/nest.h"

namespace fusion {

// Runs the loops around both accesses for some small values of the parameters. The accesses are of one array.
// Returns text such as "n = 3: i = 0 and i = 1 both touch a[1]"; nothing where no such pair was met, which
// proves nothing. Where a bound or a condition is no polynomial there is no witness. Unless
// `in_rows`, an index may leave its dimension, and the place in memory counts.
std::optional<std::string> FindWitness(const Nest& nest, int loop, const NestAccess& first,
                                       const NestAccess& second, bool in_rows = true);

// Returns whether there are values of the parameters for which the access is run, and none of its indices but
// the outermost leaves its dimension of the array.
bool MayStayInRows(const Nest& nest, const NestAccess& access);

// The values of parameters for which the loop has at least two iterations, and these: "n = 3: i = 0 and i =
// 1".
std::optional<std::string> FindTwoIterations(const Nest& nest, int loop);

}  // namespace fusion
