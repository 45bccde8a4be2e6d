// Compares every implementation of every fusion of a graph with the reference.
#pragma once

#include <string>

#include "server/graph/graph.h"

namespace fusion::testing {

// Fails the test unless implementations of all structures, of all fusions, lowered for the target and run on
// the host, compute what the unfused f64 reference computes, at ragged and at tiny sizes. `name` is for
// messages.
void ExpectEveryImplementationIsRight(const Graph& graph, const std::string& name, v1::Target target);

}  // namespace fusion::testing
