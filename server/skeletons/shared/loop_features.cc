#include "server/skeletons/shared/loop_features.h"

#include <algorithm>
#include <cmath>

namespace fusion {

double FeatureLogarithm(double value, double of_one) { return value > 0 ? std::log2(value / of_one) : 0; }

FeatureTerms::FeatureTerms(const RunTimeEstimate& e) {
  constexpr double kShortSeconds = 10e-6, kLargeShared = 200e3;
  all_seconds = e.memory_seconds + e.compute_seconds + e.barrier_seconds + e.launch_seconds;
  total_seconds = e.total_seconds / std::max(e.correction, 1e-3);
  is_short = kShortSeconds / (kShortSeconds + total_seconds);
  registers = e.registers / 255.0;
  shared = e.shared_bytes / kLargeShared;
}

LoopTerms::LoopTerms(const RunTimeEstimate& e, int block_threads, int vector_width) {
  threads = FeatureLogarithm(block_threads, 256) / 2;
  // Shares of the time beside memory, in logarithms as errors are.
  const double busy = std::max({e.memory_seconds, e.compute_seconds, 1e-9});
  issue = std::log1p(std::min(e.issue_seconds / busy, 3.0));
  const double resident_threads = e.resident_blocks * block_threads;
  few_warps = std::clamp(std::log2(2048 / std::max(resident_threads, 32.0)), 0.0, 4.0) / 4;
  little = std::clamp(-std::log2(std::max(e.load, 1e-3)), -3.0, 3.0) / 3;
  // Where the compiler keeps loads in order, each thread waits for one at a time.
  few_loads = std::clamp(std::log2(8192.0 / std::max(resident_threads * vector_width, 32.0)), 0.0, 6.0) / 6;
}

ResidualFeatures LoopFeatures(const RunTimeEstimate& e, int threads, int vector_width, bool one_tile) {
  const FeatureTerms terms(e);
  const LoopTerms loop(e, threads, vector_width);
  ResidualFeatures features{};
  features[kEveryKernel] = 1;
  features[kOneTileABlock] = one_tile;
  features[kSingleEntries] = vector_width == 1;
  features[kComputation] = terms.Share(e.compute_seconds);
  features[kBarriers] = terms.Share(e.barrier_seconds);
  features[kLaunches] = terms.Share(e.launch_seconds);
  features[kLowOccupancy] = 1 - e.occupancy;
  features[kThreadsABlock] = loop.threads;
  features[kRegisters] = terms.registers;
  features[kShortKernels] = terms.is_short;
  features[kSharedMemory] = terms.shared;
  features[kIssueOfFewWarps] = loop.issue * loop.few_warps;
  features[kLastWave] = one_tile ? std::log(std::ceil(e.waves) / e.waves) : 0;
  features[kFewWaves] = one_tile ? 1 / (1 + e.waves) : 0;
  return features;
}

}  // namespace fusion
