// Rank correlation of two lists, with ties.
#pragma once

#include <optional>
#include <vector>

namespace fusion {

// Kendall's tau-b of the points (x[i], y[i]): 1 when both lists have the same order, -1 when one is the
// reverse of the other, about 0 when they have nothing to do with each other. With n0 = n (n - 1) / 2 pairs
// of points, n1 of them tied in x and n2 tied in y: (concordant - discordant) / sqrt((n0 - n1) (n0 - n2)) (M.
// G. Kendall, "The treatment of ties in ranking problems", Biometrika 33(3), 1945). Nothing when all of x are
// equal or all of y; so for fewer than two points. O(n log n): discordant pairs are the exchanges of a merge
// sort (W. R. Knight, "A computer method for calculating Kendall's tau with ungrouped data", Journal of the
// American Statistical Association 61(314), 1966). x and y are of one length and without NaN. Pure; thread
// safe.
std::optional<double> KendallTauB(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace fusion
