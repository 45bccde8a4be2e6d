// Medians with distribution-free confidence intervals, and times of runs of which some were disturbed.
//
// What disturbs a run (another process, an interrupt, a clock that fell) makes it longer, by any factor, and
// on a busy machine that happens to most runs. So a low quantile finds the runs that nothing disturbed: the
// second smallest sample, of 64 and more the one behind the smallest 1/32, which one sample that is too short
// for whatever reason does not move. Samples of more than kDisturbed times that are left out; on a quiet
// machine there are none, and the time is the median of all.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "fusion/v1/program.pb.h"

namespace fusion {

// Median and the 95 % interval of the median by order statistics: the widest k for which the k-th smallest
// and k-th largest sample enclose the median with probability >= 0.95 under Binomial(n, 1/2); no assumption
// on the distribution. Below 6 samples no such k exists: the interval is then the range of the samples.
v1::Statistics ComputeStatistics(std::vector<double> samples);

// A sample is taken to be disturbed beyond so many times the low quantile.
inline constexpr double kDisturbed = 1.25;

// Takes times of runs in seconds. Gives the low quantile and the spread of all, and median and interval, as
// above, of those that nothing disturbed, with their number.
v1::Statistics TimeStatistics(std::vector<double> seconds);

// Returns whether such statistics of so many samples say what a run takes: nothing disturbed five at least,
// or all of fewer, and their median is known to 10 %. Samples without a common least time, which scatter over
// decades, do not fulfil this: few of them are near the low quantile.
bool IsSteady(const v1::Statistics& times, size_t samples);
// Returns whether samples by round are so, and not because each of them waited for a processor: `waits` has
// the rounds of those that did.
bool IsSteadyTime(const v1::Statistics& times, const std::map<int, double>& samples,
                  const std::set<int>& waits);

// Position k (from 0) such that [sorted[k], sorted[n-1-k]] is that interval.
int MedianIntervalRank(int n);

// Half of the interval's width over the median; infinity without samples.
double RelativeHalfWidth(const v1::Statistics& statistics);

// Returns how far the times differ, as a share of them: the width of the interval where they are steady, else
// the spread of all samples.
double Uncertainty(const v1::Statistics& times, size_t samples);

// Returns the ratio first / second of runs in turn, first[i] beside second[i] at nearly the same moment.
// Where most pairs were undisturbed, as on a quiet machine, it is the median of the ratios of all, since what
// disturbs both alike (clocks) does not change them. Otherwise it is that of the undisturbed pairs, and with
// fewer than five of those the ratio of the two times, whose interval is as wide as theirs allow.
v1::Statistics PairedRatio(const std::vector<double>& first, const std::vector<double>& second);
// Returns the same of the rounds that both have.
v1::Statistics PairedRatioByRound(const std::map<int, double>& first, const std::map<int, double>& second);

// Seconds by round, without the rounds.
std::vector<double> Samples(const std::map<int, double>& by_round);

}  // namespace fusion
