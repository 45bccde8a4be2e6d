// Which skeleton, if any, can compute a set of nodes in one kernel, and where the barriers fall (design,
// section 6.2). The search asks this; it assumes nothing of what a kernel can do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/graph/graph.h"
#include "server/plan/plan.h"

namespace fusion {

// What the rules say of a set of nodes.
struct SkeletonAnswer {
  bool feasible = false;
  std::string reason;  // why not, for people: "x is complete only after all rows, and w reads it"
  Skeleton skeleton = Skeleton::kElement;
  RowPanelRoles row_panel;  // kRowPanel; roles and phases follow the ascending order of the nodes
};

// Requires a convex set. Rules:
//  element    every node works on mapped elements (or on scalars known before the kernel)
//  vector     one dimension (or full matrices entry by entry); a reduction's result is complete after the
//  kernel's main
//             loop, so only scalars may follow it
//  row panel  rows x columns; a row reduction is complete for its row one phase later; a column reduction, or
//  a reduction
//             to a scalar, only after all rows (finish phase), where maps over columns and scalars may follow
//             it
//  scalar     scalars alone
SkeletonAnswer ChooseSkeleton(const Graph& graph, const NodeSet& nodes);

// The nodes as sweeps of one cooperative kernel: each a set that one skeleton without mapped elements
// computes, in an order in which they can run with a barrier of the grid between them. Each node is in the
// first sweep that can take it. Empty when there is none, or when it takes more than kMaxSweeps; one sweep
// when a plain kernel does.
inline constexpr int kMaxSweeps = 4;
std::vector<std::pair<NodeSet, SkeletonAnswer>> SplitIntoSweeps(const Graph& graph, const NodeSet& nodes);

// Values that a kernel for these nodes reads from and writes to device memory; ascending.
void FindLoadsAndStores(const Graph& graph, const NodeSet& nodes, std::vector<ValueId>* loads,
                        std::vector<ValueId>* stores);

}  // namespace fusion
