// Features that all loops over vectors and rows have (server/model/residual_features.h).
#pragma once

#include "server/model/residual_features.h"
#include "server/plan/plan.h"

namespace fusion {

// The binary logarithm of value / of_one; 0 where there is no value.
double FeatureLogarithm(double value, double of_one);

// Features of kernels of any skeleton are made of these.
struct FeatureTerms {
  explicit FeatureTerms(const RunTimeEstimate& estimate);
  // The part of a kernel's time that the seconds are.
  double Share(double seconds) const { return all_seconds > 0 ? seconds / all_seconds : 0; }

  double all_seconds;        // of memory, computation, barriers and launches
  double total_seconds;      // as the model made it, without corrections
  double is_short;           // nearly 1 for kernels of few microseconds
  double registers, shared;  // shares of what there is
};

// Features of loops whose lanes load `vector_width` entries at once are made of these too.
struct LoopTerms {
  LoopTerms(const RunTimeEstimate& estimate, int threads, int vector_width);
  double threads;
  double issue;      // issuing instructions adds this to waiting for memory
  double few_warps;  // 1: a warp on each multiprocessor
  double little;     // how much less is under way than the bandwidth needs
  double few_loads;  // the same where each thread waits for one load at a time
};

// Sets what does not depend on where a loop keeps its data.
ResidualFeatures LoopFeatures(const RunTimeEstimate& estimate, int threads, int vector_width, bool one_tile);

}  // namespace fusion
