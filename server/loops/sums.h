// Sums over the iterations of a loop, and other values that may be combined in any order.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "server/loops/syntax.h"

namespace fusion {

// Loops of the host around a sum that nobody asks for: each run of it is two launches.
inline constexpr size_t kMostLoopsAroundSum = 1;

// Returns how an assignment combines its target with a value that is free of it: "+" (for += and -=, too),
// "*", or the function, such as fmin. Returns "" where it does not.
std::string CombinedBy(const CStatement& assignment);

// All iterations of a loop combine something with this entry.
struct LoopSum {
  CExpressionPtr target;  // of an array, the same in all iterations
  std::string operation;  // CombinedBy
  CType type = CType::kFloat;
};

// Returns what the iterations of a loop combine, where nothing else stands in the way of their running at the
// same time; nothing where there is no such sum, or where something does. `own`: scalars that each iteration
// has for itself. `apart`: but for sums, iterations are known to be independent.
std::vector<LoopSum> SumsOf(const CStatement& loop, const std::vector<CVariable>& scope,
                            const std::set<std::string>& own, bool apart);

struct SumKernels {
  CStatementPtr statement;  // both kernels
  // The first kernel leaves the sums of its blocks in these arrays, and the second one combines them.
  std::vector<CVariable> workspaces;
};

struct SumOptions {
  CExpressionPtr blocks, threads;  // of the first kernel
  // Iterations of loops that are inside of the loop alone may run in any order, too.
  bool any_order = false;
  // Returns the statement with declarations of what a thread has for itself.
  std::function<CStatementPtr(const CStatementPtr&)> own;
  std::function<std::string(const std::string&)> fresh;  // a name that nothing else has
};

// Returns kernels that compute the sums of a loop, to whose body nothing outside of it belongs but them.
SumKernels MakeSumKernels(const CStatement& loop, const std::vector<LoopSum>& sums,
                          const SumOptions& options);

}  // namespace fusion
