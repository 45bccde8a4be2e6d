// The list of skeletons, and questions to all of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/graph/graph.h"
#include "server/lowering/fusion_code.h"
#include "server/model/cost_model.h"
#include "server/plan/plan.h"
#include "server/skeletons/skeleton.h"

namespace fusion {

// Returns them in the order in which kernels that are predicted alike are preferred.
const std::vector<const Skeleton*>& Skeletons();

// Returns the loop that computes a convex set of nodes, or why there is none. The search asks this; it
// assumes nothing of what a kernel can do.
SkeletonAnswer ChooseSkeleton(const Graph& graph, const NodeSet& nodes);

// Returns the nodes as sweeps of one cooperative kernel: each a set that one loop without mapped elements
// computes, in an order in which they can run with a barrier of the grid between them. Each node is in the
// first sweep that can take it. The answer is empty when there is no such order, or when it takes more than
// kMaxSweeps; it is one sweep when a plain kernel does.
inline constexpr int kMaxSweeps = 4;
std::vector<std::pair<NodeSet, SkeletonAnswer>> SplitIntoSweeps(const Graph& graph, const NodeSet& nodes);

// Returns Skeleton::Structure, behind a number that orders skeletons of different names.
using Structure = std::vector<int>;
Structure StructureOf(const FusionImplementation& implementation);

// These ask the kernel's skeleton.
std::string Describe(const Graph& graph, const FusionImplementation& implementation);
ResidualFeatures FeaturesOf(const FusionImplementation& implementation);

// Says where the order of a kernel over vectors or rows, or of a sweep of it, is the best that was found but
// not proved: "21 values of an entry are live at once, in the best order found; no order has fewer than 17".
// The text is empty elsewhere.
std::string UnprovedOrderText(const Graph& graph, const FusionImplementation& implementation);

// Returns the simplest implementation of one node, in f64. The reference of a measurement is made of these.
// It is slow and of any size.
FusionImplementation ReferenceImplementation(const Graph& graph, NodeId node, const SizeValues& sizes,
                                             const CostModel& model);

// Lowers a fusion implementation; the names of kernels come from the results' names. Internal (a bug of the
// search) when the implementation does not fit its skeleton.
absl::StatusOr<FusionCode> LowerFusion(const Graph& graph, const FusionImplementation& implementation,
                                       const LoweringOptions& options);
// Does the same for one loop of a kernel, without what follows for the whole: for skeletons that are made of
// others.
absl::StatusOr<FusionCode> LowerLoop(LoweringContext& context);

}  // namespace fusion
