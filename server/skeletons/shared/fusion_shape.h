// A fusion that one loop computes, with everything that does not depend on parameters: what skeletons make
// their kernels from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/plan/l2_use.h"
#include "server/plan/plan.h"
#include "server/skeletons/shared/loop_roles.h"

namespace fusion {

// A skeleton's rules say this of a set of nodes.
struct SkeletonAnswer {
  bool feasible = false;
  std::string reason;  // why not, for people: "x is complete only after all rows, and w reads it"
  const Skeleton* skeleton = nullptr;
  LoopRoles roles = {};  // in the ascending order of the nodes
};

struct FusionShape {
  const Graph& graph;
  const SizeValues& sizes;
  const CostModel& model;
  NodeSet nodes;
  std::vector<int> members;  // in the order in which a kernel computes them (member_order.h)
  const Skeleton* skeleton = nullptr;
  LoopRoles roles = {};  // in the order of the members
  std::vector<ValueId> loads, stores;
  double bytes_read = 0, bytes_written = 0, flops = 0;
  double instructions = 0;  // of the computations, without loads and stores
  int entry_bytes = 4;      // of the widest data type
  int grid_reductions = 0;  // reductions that the finish kernel completes

  bool simt() const { return model.target().simt(); }
  const v1::TargetProfile& profile() const { return model.target().profile(); }
  const DeviceFeatures& features() const { return model.features(); }
  int64_t Size(const Extent& extent) const { return extent.Size(sizes); }
  const Node& node(int member) const { return graph.node(NodeId{member}); }
  // The reduction members[i] is complete only when the whole grid is done; one of a row is complete before.
  bool IsGridReduction(size_t i) const;
  // The node takes this part of `instructions` for all that it computes, without loads and stores.
  double InstructionsOf(const Node& node) const;
  // An implementation with all but parameters and estimate.
  FusionImplementation Base() const;
  KernelTraits Traits() const;
};

FusionShape ShapeOfFusion(const Graph& graph, const NodeSet& nodes, const SizeValues& sizes,
                          const CostModel& model, SkeletonAnswer answer);

// Values that a kernel for these nodes reads from and writes to device memory; ascending.
void FindLoadsAndStores(const Graph& graph, const NodeSet& nodes, std::vector<ValueId>* loads,
                        std::vector<ValueId>* stores);

// Floating-point operations of one node at the given sizes.
double NodeFlops(const Graph& graph, const Node& node, const SizeValues& sizes);

// L2Use::percent for kernels of the graph that may use it; 0: asking the cache is of no use. `vectors`: as
// L2Use has it for the kernel.
int L2Percent(const FusionShape& shape, bool vectors);
// Moves to the cache what a kernel that asks for that finds there.
void ReadFromL2(const FusionShape& shape, const L2Use& use, KernelTraits* traits);

// Compute efficiency of loops of fused multiply-adds with loads between, as a share of the peak: assumed.
inline constexpr double kLoopComputeEfficiency = 0.5;

// Stands for blocks_per_multiprocessor where a grid may have as many blocks as fit.
inline constexpr int kAllThatFit = 1 << 20;

// Registers that a thread may have where so many threads are on a multiprocessor, at least one: they are
// given by eights. Estimates are coarse, and the compiler keeps to the limit of the launch bounds whatever
// they are: up to kRegisterSlack more may fit without spilling (RMS norm: 60 estimated, 59 used) or not, and
// what spills loses when it is timed.
int MostRegisters(const DeviceDescription& device, int threads);
inline constexpr int kRegisterSlack = 16;

// Bytes of static shared memory with which the threads of a block reduce `count` values at once.
inline constexpr int64_t ReductionScratchBytes(int count) { return int64_t{1024} * count; }

// `blocks` blocks that all add to the same `bytes` take these seconds: additions to one line of the cache
// wait for each other, and all lines together take no more than so much. Of entries of 8 bytes half as many
// are added in the same time (2048 f64 with 132 blocks: 4 to 6 us in kernels of sgemvt written by hand, 3.6
// by this).
double AtomicSeconds(const v1::TargetProfile& profile, double blocks, double bytes, int entry_bytes);

}  // namespace fusion
