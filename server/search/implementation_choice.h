// The implementations of one fusion: skeleton parameters and implementations of its functions, with predicted
// times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/plan/plan.h"

namespace fusion {

struct ImplementationOptions {
  int keep = 8;                // the best predicted ones of each fusion
  int max_combinations = 64;   // of function implementations within one fusion
  bool deterministic = false;  // nothing whose last bits differ from run to run (sums by atomic additions)
  // Set: of fusions of several nodes only those for which it holds; of single nodes, which must remain, those
  // beside the others.
  std::function<bool(const FusionImplementation&)> wanted;
  // Set: what is known of measured kernels that compute the nodes.
  std::function<FamilyTimes(const NodeSet&)> measured;
};

// What sets implementations of one fusion apart beyond numbers: predictions of one structure are wrong
// together.
struct Structure {
  Skeleton skeleton = Skeleton::kElement;
  LoadPath load_path = LoadPath::kDirect;
  bool one_shot = false;
  bool reads_again = false;  // rows in a run-time loop, from memory or the caches in each phase
  bool in_groups = false;    // a row by a part of a block's threads, with more of it in the registers of each
  bool in_batches = false;   // rows of matrices, several at once into registers
  bool keeps_rows = false;
  bool in_both = false;  // these in registers and in shared memory
  bool in_clusters = false;
  // Of elements: 0 when a thread computes each; else which of its ways, if all functions have several threads
  // for an element; else 1.
  int several_threads = 0;
  bool in_tiles = false;      // blocks with a part of the columns of some rows
  bool in_one_block = false;  // vectors, in the registers of one block
  bool atomic = false;
  bool in_l2 = false;  // asks the L2 cache to keep inputs
  friend auto operator<=>(const Structure&, const Structure&) = default;
};
Structure StructureOf(const FusionImplementation& implementation);

// All that fits the device, best predicted first, at most `keep`; those predicted more than four times as
// slow as the best are dropped. Deterministic. Empty when no skeleton can compute the fusion or nothing fits;
// then *reason says why.
std::vector<FusionImplementation> ImplementFusion(const Graph& graph, const NodeSet& nodes,
                                                  const SizeValues& sizes, const CostModel& model,
                                                  const ImplementationOptions& options, std::string* reason);

// The simplest implementation of one node, in f64: what the reference of a measurement is made of. Slow and
// of any size.
FusionImplementation ReferenceImplementation(const Graph& graph, NodeId node, const SizeValues& sizes,
                                             const CostModel& model);

// Floating-point operations of one node at the given sizes.
double NodeFlops(const Graph& graph, const Node& node, const SizeValues& sizes);

}  // namespace fusion
