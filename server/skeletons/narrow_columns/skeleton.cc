#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/skeletons/narrow_columns/narrow_columns.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/shared/description.h"
#include "server/skeletons/shared/loop_features.h"
#include "server/skeletons/shared/variant_text.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

// Row panels have a warp or more for each row of wider matrices.
constexpr int64_t kMostColumns = 64;
// A block puts its lanes' parts together once, so each must have many rows.
constexpr int64_t kFewestRows = 16384;

// The nodes of a row panel go through matrices and columns alone, and end in reductions over the rows.
bool ReducesColumnsAlone(const FusionShape& shape) {
  bool reduces = false;
  for (size_t i = 0; i < shape.members.size(); ++i) {
    const Node& node = shape.node(shape.members[i]);
    const std::vector<int>& roles = shape.roles.roles[i];
    if (shape.roles.phases[i] == kFinishPhase || node.dimensions.empty()) continue;
    if (node.dimensions.size() != 2) return false;
    for (const auto& map : node.operand_maps)
      if (map.size() == 1 && roles[map[0]] == 0) return false;  // an operand over the rows
    if (!node.is_reduction()) continue;
    if (node.result_map.size() != 1 || roles[node.result_map[0]] != 1) return false;
    reduces = true;
  }
  const auto matrix = [&](ValueId id) { return shape.graph.value(id).type.extents.size() == 2; };
  return reduces && std::none_of(shape.stores.begin(), shape.stores.end(), matrix) &&
         std::none_of(shape.loads.begin(), shape.loads.end(), [&](ValueId id) {
           return matrix(id) && shape.graph.value(id).leading_dimension.has_value();
         });
}

class NarrowColumns final : public SkeletonOf<NarrowColumnsParameters> {
 public:
  const char* name() const override { return "narrow_columns"; }

  LoopRoles Roles(const Graph& graph, const NodeSet& nodes) const override {
    return RowPanelSkeleton().Roles(graph, nodes);
  }

  void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                 NearestMiss*) const override {
    if (!problem.loop || problem.loop->skeleton != &RowPanelSkeleton()) return;
    const FusionShape& shape = *problem.loop;
    if (!shape.simt() || shape.roles.phase_count > 1 || !ReducesColumnsAlone(shape)) return;
    const int64_t rows = shape.Size(shape.roles.rows), columns = shape.Size(shape.roles.columns);
    if (columns < 1 || columns > kMostColumns || rows < kFewestRows) return;
    for (int width : {16 / shape.entry_bytes, 1})
      for (int threads : {256, 512, 128})
        for (int unroll : {4, 8, 2})
          Add(shape, {.threads = threads, .vector_width = width, .unroll = unroll}, out);
  }

  absl::StatusOr<FusionCode> Lower(LoweringContext& context) const override {
    return LowerNarrowColumns(context);
  }
  ResidualFeatures Features(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<NarrowColumnsParameters>();
    ResidualFeatures features = LoopFeatures(kernel.estimate, p.threads, p.vector_width, false);
    features[kVectorsAThread] = FeatureLogarithm(p.unroll, 1) / 2;
    features[kIssueOfVectors] = LoopTerms(kernel.estimate, p.threads, p.vector_width).issue;
    return features;
  }
  std::vector<int> Structure(const FusionImplementation& kernel) const override {
    return {kernel.As<NarrowColumnsParameters>().vector_width > 1};
  }
  std::string Describe(const Graph& graph, const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<NarrowColumnsParameters>();
    return absl::StrCat(DescriptionStart(graph, kernel, p.threads), WordIfSeveral("V", p.vector_width),
                        WordIfSeveral("U", p.unroll), BlocksWord(p.blocks_per_multiprocessor));
  }
  std::string Variant(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<NarrowColumnsParameters>();
    return VariantText(*this, {.threads = p.threads,
                               .vector_width = p.vector_width,
                               .unroll = p.unroll,
                               .blocks_per_multiprocessor = p.blocks_per_multiprocessor}) +
           OrderText(kernel);
  }

 private:
  static void Add(const FusionShape& shape, NarrowColumnsParameters parameters,
                  std::vector<FusionImplementation>* out) {
    const DeviceDescription& device = shape.model.device();
    const double rows = double(shape.Size(shape.roles.rows)),
                 columns = double(shape.Size(shape.roles.columns)), entries = rows * columns;
    const int width = parameters.vector_width, threads = parameters.threads, unroll = parameters.unroll;
    int matrices = 0, accumulators = 0;
    for (ValueId value : shape.loads) matrices += shape.graph.value(value).type.extents.size() == 2;
    for (size_t i = 0; i < shape.members.size(); ++i) accumulators += shape.IsGridReduction(i);
    KernelTraits traits = shape.Traits();
    traits.threads = threads;
    // Accumulators with their long sums, and the vectors that are loaded ahead.
    traits.registers =
        28 + width * shape.entry_bytes / 4 * (3 * accumulators + matrices * unroll + MostLiveVectors(shape));
    const int64_t block_entries = int64_t{threads} * width;
    traits.shared_bytes = block_entries * 8;
    if (traits.registers > 255) return;
    const int resident = ResidentBlocks(device, threads, traits.registers, traits.shared_bytes);
    if (resident == 0) return;
    parameters.blocks_per_multiprocessor = resident;
    parameters.roles = shape.roles;
    // Lanes behind the last whole row of a step idle.
    const double used = std::floor(double(block_entries) / columns) * columns / double(block_entries);
    const double steps = std::ceil(entries / (double(block_entries) * used * unroll));
    traits.blocks =
        static_cast<int64_t>(std::max(1.0, std::min(steps, double(device.multiprocessors()) * resident)));
    traits.compute_efficiency = kLoopComputeEfficiency;
    traits.access_efficiency = width > 1 ? 1 : 0.7;  // assumed
    traits.bytes_in_flight_per_block =
        0.5 * used * double(block_entries) * unroll * matrices * shape.entry_bytes;
    traits.instructions = (shape.instructions + entries * 2.0 * matrices / width) / used;
    traits.issue_overlap = IssueOverlap(resident, 1);
    // Each block leaves a part of each result.
    const double parts = double(traits.blocks) * columns * accumulators * 8;
    traits.bytes_read += parts;
    traits.bytes_written += parts;
    traits.barrier_seconds = 2 * accumulators * shape.profile().block_barrier_seconds().value();
    FusionImplementation implementation = shape.Base();
    implementation.skeleton = &NarrowColumnsSkeleton();
    implementation.parameters = std::move(parameters);
    implementation.estimate = shape.model.Estimate(traits);
    out->push_back(std::move(implementation));
  }
};

}  // namespace

const Skeleton& NarrowColumnsSkeleton() {
  static const NarrowColumns kSkeleton;
  return kSkeleton;
}

}  // namespace fusion
