// What the choices for each skeleton share. Internal to server/search.
#pragma once

#include <vector>

#include "server/search/implementation_choice.h"
#include "server/search/skeleton_rules.h"

namespace fusion {

// A feasible fusion with everything that does not depend on parameters.
struct FusionShape {
  const Graph& graph;
  const SizeValues& sizes;
  const CostModel& model;
  NodeSet nodes;
  std::vector<int> members;
  SkeletonAnswer skeleton;
  std::vector<ValueId> loads, stores;
  double bytes_read = 0, bytes_written = 0, flops = 0;
  int entry_bytes = 4;          // of the widest data type
  int grid_reductions = 0;      // reductions that the finish kernel completes

  bool cuda() const { return model.device().target() == v1::CUDA; }
  int64_t Size(const Extent& extent) const { return extent.name.empty() ? extent.constant : sizes.at(extent.name); }
  const Node& node(int member) const { return graph.node(NodeId{member}); }
  // An implementation with all but parameters, placement and estimate; nodes in ascending order.
  FusionImplementation Base() const;
  KernelTraits Traits() const;
};

FusionShape ShapeOfFusion(const Graph& graph, const NodeSet& nodes, const SizeValues& sizes, const CostModel& model,
                          SkeletonAnswer skeleton);

// Append every legal choice of parameters to *out; *reason says what did not fit when there is none.
void ChooseElement(const FusionShape& shape, int max_combinations, std::vector<FusionImplementation>* out,
                   std::string* reason);
void ChooseVector(const FusionShape& shape, std::vector<FusionImplementation>* out);
void ChooseRowPanel(const FusionShape& shape, std::vector<FusionImplementation>* out, std::string* reason);

// Places the values of an element fusion for given implementations and load path (order, implementations and
// parameters.load_path are set). Returns the registers that a thread needs for values, in 32-bit words.
int PlaceElementValues(const FusionShape& shape, FusionImplementation* implementation);

}  // namespace fusion
