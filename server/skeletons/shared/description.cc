#include "server/skeletons/shared/description.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/skeletons/skeleton.h"

namespace fusion {

std::string DescriptionStart(const Graph& graph, const FusionImplementation& kernel, int threads) {
  std::vector<std::string> names;
  for (NodeId id : kernel.order) names.push_back(graph.value(graph.node(id).result).name);
  return absl::StrCat("{", absl::StrJoin(names, " "), "} ", kernel.skeleton->name(), " T", threads);
}

std::string WordIfSeveral(const char* letter, int number) {
  return number > 1 ? absl::StrCat(" ", letter, number) : "";
}

std::string BlocksWord(int blocks_per_multiprocessor) {
  return blocks_per_multiprocessor == 0 ? " one-shot" : WordIfSeveral("B", blocks_per_multiprocessor);
}

std::string L2Word(int percent) { return percent > 0 ? absl::StrCat(" L2 ", percent, "%") : ""; }

}  // namespace fusion
