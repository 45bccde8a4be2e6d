#include "tests/property/codegen/kernel_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/any_parameters.h"

namespace fusion::testing {
namespace {

std::string KindOf(const Graph& graph, const FusionImplementation& implementation) {
  bool maps = false, rows = false, reductions = false;
  for (size_t i = 0; i < implementation.order.size(); ++i) {
    const Node& node = graph.node(implementation.order[i]);
    const bool to_rows = implementation.skeleton == &RowPanelSkeleton() && node.dimensions.size() == 2 &&
                         !node.result_map.empty() &&
                         ParametersOf(implementation).roles.roles[i][node.result_map[0]] == 0;
    (!node.is_reduction() ? maps : to_rows ? rows : reductions) = true;
  }
  return absl::StrCat(maps ? "map" : "", rows ? "rows" : "", reductions ? "sums" : "");
}

std::string PathOf(const AnyParameters& p) {
  switch (p.load_path) {
    case LoadPath::kDirect:
      return "direct";
    case LoadPath::kStaged:
      return "staged";
    case LoadPath::kBulk:
      return "bulk";
    case LoadPath::kExchanged:
      return "exchanged";
  }
  return "";
}

std::string LanesOf(const AnyParameters& p) {
  if (p.cluster_blocks > 1) return "cluster";
  if (p.threads_per_row == p.threads) return "block";
  return p.threads_per_row == 32 ? "warp" : p.threads_per_row < 32 ? "few lanes" : "part of a block";
}

void AddOf(const Graph& graph, const FusionImplementation& implementation, const std::string& prefix,
           std::set<std::string>* labels) {
  const AnyParameters p = ParametersOf(implementation);
  const auto add = [&](bool has, const std::string& option) {
    if (has) labels->insert(absl::StrCat(prefix, implementation.skeleton->name(), " ", option));
  };
  const bool panel = implementation.skeleton == &RowPanelSkeleton(),
             element = implementation.skeleton == &ElementSkeleton();
  const std::string kind = KindOf(graph, implementation), path = PathOf(p);
  add(!element, kind);
  add(!element, absl::StrCat(kind, p.vector_width > 1 ? " vectors" : " entries"));
  add(true, path);
  add(true, p.blocks_per_multiprocessor == 0 ? "one-shot" : "persistent");
  add(p.unroll > 1, "unrolled");
  add(p.chunks > 0 && !panel, "in one block");
  add(p.reversed, "reversed");
  add(p.l2_percent > 0, "in L2");
  add(ParametersOf(implementation).kept.shared_rows > 0, "keeps in shared memory");
  add(ParametersOf(implementation).kept.register_rows > 0, "keeps in registers");
  if (panel) {
    const std::string lanes = LanesOf(p);
    add(true, absl::StrCat(path, " ", lanes));
    add(true, absl::StrCat(path, p.chunks > 0 ? " chunks" : " loop", p.vector_width > 1 ? " vectors" : ""));
    add(p.ragged, absl::StrCat("ragged ", path));
    add(p.hold_columns, "holds");
    add(p.rows_per_step > 1, absl::StrCat("steps of rows ", path));
    add(p.column_tiles, p.tile_rows > 0 ? "tiles of rows" : "column tiles");
  }
  if (element) {
    for (size_t i = 0; i < implementation.order.size(); ++i) {
      const Node& node = graph.node(implementation.order[i]);
      add(true,
          absl::StrCat(path, " ",
                       node.overload->implementations[ParametersOf(implementation).choices[i]].routine));
    }
    for (const PlacedValue& placed : ParametersOf(implementation).placement)
      add(true, placed.storage == StorageClass::kRegisters ? "in registers"
                : placed.storage == StorageClass::kShared  ? "in shared memory"
                                                           : "in place");
    add(p.elements_per_block == 1, "one element a block");
  }
}

}  // namespace

std::set<std::string> OptionLabels(const Graph& graph, const FusionImplementation& implementation) {
  std::set<std::string> labels;
  if (implementation.skeleton != &CooperativeSkeleton()) {
    AddOf(graph, implementation, "", &labels);
    return labels;
  }
  for (const FusionImplementation& sweep : SweepsOf(implementation))
    AddOf(graph, sweep, "cooperative: ", &labels);
  labels.insert(ParametersOf(implementation).atomic ? "cooperative atomic" : "cooperative in order");
  labels.insert(absl::StrCat("cooperative of ", SweepsOf(implementation).size()));
  return labels;
}

std::vector<FusionImplementation> WithAllOptions(const Graph& graph,
                                                 const std::vector<FusionImplementation>& implementations,
                                                 std::set<std::string>* seen) {
  std::vector<std::set<std::string>> labels;
  for (const FusionImplementation& implementation : implementations)
    labels.push_back(OptionLabels(graph, implementation));
  std::vector<FusionImplementation> chosen;
  while (true) {
    size_t best = 0;
    ptrdiff_t most = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      const ptrdiff_t fresh = std::count_if(labels[i].begin(), labels[i].end(),
                                            [&](const std::string& label) { return !seen->count(label); });
      if (fresh > most) best = i, most = fresh;
    }
    if (most == 0) return chosen;
    seen->insert(labels[best].begin(), labels[best].end());
    chosen.push_back(implementations[best]);
  }
}

}  // namespace fusion::testing
