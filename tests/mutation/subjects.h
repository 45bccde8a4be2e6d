// The subjects of mutations: kernels of every skeleton, of graphs in the users' language at small sizes that
// show every part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/graph/graph.h"
#include "server/lowering/fusion_code.h"
#include "server/plan/plan.h"

namespace fusion::testing {

// The multiprocessors of the device that kernels are launched for: few, so that groups have several tiles or
// rows each at small sizes.
inline constexpr int kMultiprocessors = 3;

// A right kernel.
struct Subject {
  std::string row;  // of the table: "row_panel warp"
  std::shared_ptr<const Graph> graph;
  SizeValues sizes;
  FusionImplementation implementation;
  FusionCode code;
  size_t first_launch = 0, last_launch = 1;  // launches that are mutated
};

// Names of the rows, in the order of the table.
const std::vector<std::string>& RowNames();

// Up to `most` subjects of each row. Kernels are those that the search offers for a GPU; both printers print
// them.
absl::StatusOr<std::vector<Subject>> MakeSubjects(size_t most);

}  // namespace fusion::testing
