#include "server/skeletons/shared/variant_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/skeletons/skeleton.h"

namespace fusion {

std::string VariantText(const Skeleton& skeleton, const VariantNumbers& n) {
  return absl::StrCat(skeleton.name(), " T", n.threads, " E", n.elements_per_block, " V", n.vector_width,
                      " C", n.chunks, " R", n.threads_per_row, " cluster", n.cluster_blocks, " S", n.stages,
                      " U", n.unroll, " B", n.blocks_per_multiprocessor, " bound", n.resident_blocks, " path",
                      static_cast<int>(n.load_path), " M", n.rows_per_step);
}

std::string OrderText(const FusionImplementation& kernel) {
  std::vector<int> ids;
  for (NodeId id : kernel.order) ids.push_back(id.value);
  std::vector<int> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  if (ids == sorted) return "";
  std::string text = " order";
  for (int id : ids)
    absl::StrAppend(&text, " ", std::lower_bound(sorted.begin(), sorted.end(), id) - sorted.begin());
  return text;
}

}  // namespace fusion
