// A graph must not have cycles among its calls.
#pragma once

#include <string>
#include <vector>

#include "server/parse/graph_builder.h"
#include "server/parse/symbol_table.h"
#include "server/parse/syntax.h"

namespace fusion {

// Finds the strongly connected components of "needs the result of" (Tarjan, SIAM J. Comput. 1(2), 1972),
// iteratively and in linear time.
class Recursion {
 public:
  // The arguments must outlive it.
  Recursion(const SyntaxTree& tree, const std::vector<Symbol>& symbols,
            const std::vector<CheckedCall>& calls);

  // True: both calls lie on a common cycle; or they are one call, which needs its own result.
  bool SameCycle(int a, int b) const { return components_[a] == components_[b]; }

  // Describes a cycle through `call` and `needed`, whose result `call` needs: "x needs y, y needs x". Returns
  // "" from the second time on for calls of one component. Long cycles are cut.
  std::string DescribeOnce(int call, int needed);

 private:
  // Returns the positions of the calls whose results call `index` needs.
  std::vector<int> Needs(int index) const;
  void FindComponents();

  const SyntaxTree& tree_;
  const std::vector<Symbol>& symbols_;
  const std::vector<CheckedCall>& calls_;
  std::vector<int> components_;
  std::vector<bool> described_;  // by component
};

}  // namespace fusion
