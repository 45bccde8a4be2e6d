// The memory of measured times calls a kernel the same in every graph that has it.
#pragma once

#include <string>

#include "server/graph/graph.h"
#include "server/model/kernel_memory.h"
#include "server/plan/plan.h"

namespace fusion {

// The names of the kernels of one graph at given sizes; both must outlive the object.
class KernelNames {
 public:
  KernelNames(const Graph& graph, const SizeValues& sizes) : graph_(graph), sizes_(sizes) {}
  // Returns `family` and `sizes` of the kernels that compute the nodes. The family covers functions with
  // their routines, types, what is read from and written to memory, and which extents are equal; values are
  // numbered in the order in which the nodes, ascending, name them.
  KernelIdentity Of(const NodeSet& nodes) const;
  // Returns them with `variant`.
  KernelIdentity Of(const FusionImplementation& implementation) const;

 private:
  const Graph& graph_;
  const SizeValues& sizes_;
};

// Returns how the implementation computes its nodes: every parameter, implementation and order that its code
// is made from, and which of its loads are of other kernels' results.
std::string VariantOf(const Graph& graph, const FusionImplementation& implementation);

}  // namespace fusion
