// Outputs that take the memory of inputs, and what a kernel may then do.
#pragma once

#include <string>

#include "server/graph/graph.h"
#include "server/graph/node_set.h"

namespace fusion {

// Says why one kernel cannot compute these nodes, since a result would take the memory of an input before all
// of the input is read; "": it can.
//
// A kernel writes an entry when it has read all that it needs of that entry, whichever thread does it, if the
// loop runs over the entries of the result alone, each reader reads entry by entry, and nothing comes back to
// an entry later: no reduction in the kernel is used in it, or the result is the last of all that depends on
// the input.
std::string WhyNotInPlace(const Graph& graph, const NodeSet& nodes);

}  // namespace fusion
