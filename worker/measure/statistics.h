// Medians with distribution-free confidence intervals.
#pragma once

#include <vector>

#include "fusion/v1/program.pb.h"

namespace fusion {

// Median and the 95 % interval of the median by order statistics: the widest k for which the k-th smallest
// and k-th largest sample enclose the median with probability >= 0.95 under Binomial(n, 1/2); no assumption
// on the distribution. Below 6 samples no such k exists: the interval is then the range of the samples.
v1::Statistics ComputeStatistics(std::vector<double> samples);

// Position k (from 0) such that [sorted[k], sorted[n-1-k]] is that interval.
int MedianIntervalRank(int n);

// Half of the interval's width over the median; infinity without samples.
double RelativeHalfWidth(const v1::Statistics& statistics);

}  // namespace fusion
