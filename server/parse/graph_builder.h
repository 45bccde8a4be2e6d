// The last step of reading a source makes a Graph from checked calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "library/catalog/resolve.h"
#include "server/graph/graph.h"
#include "server/parse/symbol_table.h"
#include "server/parse/syntax.h"

namespace fusion {

// A call whose names are looked up.
struct CheckedCall {
  int result = -1;             // position of the symbol; -1 when reported
  std::vector<int> arguments;  // positions of the symbols; -1 for literals and names reported
  const ElementaryFunction* function = nullptr;
  std::optional<ResolvedCall> resolved;
};

// Requires that nothing was reported. Values: inputs in order, then for each call its literals and its
// result.
std::shared_ptr<const Graph> BuildGraph(const SyntaxTree& tree, const std::string& name,
                                        std::shared_ptr<const Catalog> catalog, std::vector<Symbol>& symbols,
                                        std::vector<CheckedCall>& calls);

}  // namespace fusion
