// The example of an exported folder: runs the fused code on the kinds of data on which the worker verifies
// it, compares it with the f64 reference, and times it. Internal to server/codegen.
#pragma once

#include <string>

#include "server/codegen/exported_folder.h"
#include "server/graph/graph.h"

namespace fusion {

// Returns the text of example.cu, or what the target calls it.
std::string PrintExample(const Graph& graph, const ExportRequest& request);

}  // namespace fusion
