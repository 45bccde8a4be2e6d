// Values that the search produces and the code generator consumes: fusions, fusion implementations, covers.
#pragma once

#include <any>
#include <cstdint>
#include <string>
#include <vector>

#include "server/graph/graph.h"
#include "server/graph/node_set.h"

namespace fusion {

// A set of nodes computed by one kernel.
struct Fusion {
  NodeSet nodes;
};

class Skeleton;  // server/skeletons/skeleton.h

// Predicted time with its terms, seconds.
struct RunTimeEstimate {
  double bytes = 0;  // moved to and from device memory
  // Bytes of the graph's inputs that the kernel reads and of the outputs that it writes, each once: these
  // have to be moved.
  double floor_bytes = 0;
  double flops = 0;
  double occupancy = 1;  // resident threads / possible
  double memory_seconds = 0;
  double compute_seconds = 0;
  double barrier_seconds = 0;
  // Seconds lost beside the longest of memory, compute and alone: blocks wait for loads, barriers or the
  // issue of instructions.
  double waiting_seconds = 0;
  double launch_seconds = 0;
  double issue_seconds = 0;    // estimate for issuing all instructions; no term of the sum
  double resident_blocks = 1;  // on a multiprocessor at once
  double waves = 1;            // blocks of the grid over those that are resident at once
  // Bytes on their way to the multiprocessors over those that the bandwidth needs (Little's law).
  double load = 1;
  bool measured_routines = false;  // memory and compute are from tables of routine times
  bool extended_routines = false;  // partly beyond what was measured
  // Otherwise, on devices with tables: the first routine whose table does not reach so far. Empty: none is
  // needed.
  std::string missing_routine;
  double alone_seconds = 0;  // then: all routines one after the other, in blocks that share nothing
  double total_seconds = 0;  // with the correction
  double correction = 1;     // learned from measurements; the terms above are without it
  // An earlier job measured the kernel itself; the correction turns the prediction into that time.
  bool measured = false;
  int64_t measured_jobs = 0;    // so many jobs measured it then; 0: not known
  int64_t measured_micros = 0;  // microseconds since 1970 when the last of them did; 0: not known
  int registers = 0;            // estimated, per thread
  int64_t shared_bytes = 0;
  std::string ToString() const;
};

// Everything that is needed to generate the code of one kernel.
struct FusionImplementation {
  Fusion fusion;
  std::vector<NodeId> order;  // linearization
  const Skeleton* skeleton = nullptr;
  std::any parameters;         // of the type that the skeleton has for them (server/skeletons/*/parameters.h)
  std::vector<ValueId> loads;  // values read from device memory, ascending
  std::vector<ValueId> stores;  // values written to device memory, ascending
  RunTimeEstimate estimate;

  // Return the parameters; the skeleton must have this type for them.
  template <typename Parameters>
  const Parameters& As() const {
    return std::any_cast<const Parameters&>(parameters);
  }
  template <typename Parameters>
  Parameters& As() {
    return std::any_cast<Parameters&>(parameters);
  }
};

// Returns whether the groups of a kernel that computes `kernel` may add their parts of a reduction over the
// grid to the stored result itself: a sum of parts in f64, which begins as a value that is at hand when the
// kernel starts. In f32 each of hundreds of groups would take its rounding from the sum.
bool AddsInPlace(const Graph& graph, const Node& reduction, const NodeSet& kernel);

// Disjoint fusion implementations that together compute the graph, in an order in which they can run.
struct Cover {
  std::vector<int> members;  // positions in the list of fusion implementations, in schedule order
  double predicted_seconds = 0;
};

}  // namespace fusion
