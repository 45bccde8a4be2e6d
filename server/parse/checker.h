// The checker makes a graph from a source as written, by its names, types and structure.
#pragma once

#include <memory>
#include <string>

#include "library/catalog/catalog.h"
#include "server/graph/graph.h"
#include "server/parse/error_list.h"
#include "server/parse/syntax.h"

namespace fusion {

// Checks everything and reports everything that is wrong, each once: a variable whose call failed has its
// declared type, and names in statements that could not be read are left alone. Returns null when `errors` is
// not empty afterwards. Linear in the size of the tree, apart from suggestions for the first errors.
std::shared_ptr<const Graph> CheckGraph(const SyntaxTree& tree, const std::string& name,
                                        std::shared_ptr<const Catalog> catalog, ErrorList* errors);

}  // namespace fusion
