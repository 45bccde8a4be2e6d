// A kernel asks the L2 cache to keep some of its inputs for its next run (docs/decisions/0021).
#pragma once

#include "server/graph/graph.h"

namespace fusion {

struct L2Use {
  // The cache is asked to keep that share of the inputs for which Keeps holds. The rest of them, and results,
  // may be given up first. 0: nothing is asked.
  int percent = 0;
  // Kernels over vectors keep vectors too, and what they keep is given up last. Other kernels keep matrices
  // alone, and only what they do not keep is given up first.
  bool vectors = false;

  bool Keeps(const Value& value) const {
    const size_t least = vectors ? 1 : 2;
    return value.is_input && !value.type.mapped && value.type.extents.size() >= least;
  }
};

}  // namespace fusion
