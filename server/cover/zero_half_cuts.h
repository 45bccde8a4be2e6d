// Cuts from halves of sums (zero-half cuts: A. Caprara, M. Fischetti, Mathematical Programming 74 (1996)).
// Each node is in one set of a cover, and a cut lets at most so many of its sets be taken. Add some of these
// rows up, halve, and round down what each set counts for: then the limit can be rounded down too, since
// covers take sets as a whole. Where the sum of limits is odd, shares may break that. Internal to
// server/cover.
#pragma once

#include <utility>
#include <vector>

#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"

namespace fusion {

// Returns cuts that the shares (sets that are taken, each with how much of it, ascending) break, most broken
// first, but for many of one node or cut. `cuts` are known, `cuts_of` says per set in which of them it
// stands, as often as it counts there. The new cuts are found by elimination modulo two, set after set, those
// of large shares first, `attempts` times in different orders; so not all are (the heuristic of A. M. C. A.
// Koster, A. Zymolka, M. Kutschka, Algorithmica 55 (2009)).
std::vector<Cut> ZeroHalfCuts(const SetProblem& problem, const std::vector<const Cut*>& cuts,
                              const std::vector<std::vector<int>>& cuts_of,
                              const std::vector<std::pair<int, double>>& shares, int attempts);

}  // namespace fusion
