#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/shared/description.h"
#include "server/skeletons/shared/loop_features.h"
#include "server/skeletons/shared/variant_text.h"

namespace fusion {
namespace {

std::string KeptWords(const KeptRows& kept) {
  if (!kept.any()) return "";
  std::string words = absl::StrCat(" keeps ", kept.register_rows > 0 ? kept.register_rows : kept.shared_rows,
                                   " rows", kept.register_rows > 0 ? " in registers" : "");
  if (kept.register_rows > 0 && kept.shared_rows > 0)
    absl::StrAppend(&words, " and ", kept.shared_rows, " in shared memory");
  return words;
}

class RowPanel final : public SkeletonOf<RowPanelParameters> {
 public:
  const char* name() const override { return "row_panel"; }

  std::optional<SkeletonAnswer> Loop(const Graph& graph, const NodeSet& nodes) const override {
    const std::vector<int> members = nodes.Members();
    const bool matrix = std::any_of(members.begin(), members.end(), [&](int member) {
      const Node& node = graph.node(NodeId{member});
      return !node.mapped() && node.dimensions.size() == 2;
    });
    if (!matrix) return std::nullopt;
    return RowPanelAnswer(graph, nodes);
  }
  LoopRoles Roles(const Graph& graph, const NodeSet& nodes) const override {
    return RowPanelAnswer(graph, nodes).roles;
  }
  FusionImplementation Reference(const FusionShape& shape) const override {
    RowPanelParameters parameters{
        .threads = 256, .threads_per_row = 256, .blocks_per_multiprocessor = shape.simt() ? 8 : 4};
    // Column accumulators in shared memory; where they do not fit, in registers, of a part of the columns at
    // a time if that will do.
    const int64_t columns = shape.Size(shape.roles.columns);
    if (shape.grid_reductions > 0 && columns * 16 > shape.model.device().shared_bytes_per_block()) {
      parameters.threads = parameters.threads_per_row = 1024;
      parameters.blocks_per_multiprocessor = 1;
      parameters.column_tiles = NeedsOfRowPanel(shape).columns_alone;
      parameters.chunks = parameters.column_tiles ? 4 : static_cast<int>((columns + 1023) / 1024);
    }
    parameters.roles = shape.roles;
    FusionImplementation implementation = shape.Base();
    implementation.parameters = std::move(parameters);
    return implementation;
  }

  void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                 NearestMiss* miss) const override {
    if (problem.loop && IsRowPanel(*problem.loop)) ConfigureRowPanel(*problem.loop, out, miss);
  }
  absl::StatusOr<FusionCode> Lower(LoweringContext& context) const override { return LowerRowPanel(context); }

  ResidualFeatures Features(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<RowPanelParameters>();
    const bool one_tile = p.blocks_per_multiprocessor == 0;
    ResidualFeatures features = LoopFeatures(kernel.estimate, p.threads, p.vector_width, one_tile);
    SetRowFeatures(kernel.estimate, p, one_tile, p.chunks == 0, &features);
    features[kRowPanels] = 1;
    features[kAtomicSums] = p.atomic;
    features[kClusters] = p.cluster_blocks > 1;
    features[kRegistersBounded] = p.resident_blocks > 1;
    features[kRegistersOfBounded] = p.resident_blocks > 1 ? features[kRegisters] : 0;
    features[kShareKeptInL2] = p.l2_percent / 100.0;
    return features;
  }
  std::vector<int> Structure(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<RowPanelParameters>();
    const bool one_shot = p.blocks_per_multiprocessor == 0, reads_again = p.chunks == 0,
               in_groups = p.threads_per_row < p.threads, in_batches = p.stages == 0 && p.rows_per_step > 1;
    return {static_cast<int>(p.load_path), one_shot,        reads_again, in_groups,       in_batches,
            p.cluster_blocks > 1,          p.tile_rows > 0, p.atomic,    p.l2_percent > 0};
  }

  std::string Describe(const Graph& graph, const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<RowPanelParameters>();
    std::string text =
        absl::StrCat(DescriptionStart(graph, kernel, p.threads), WordIfSeveral("V", p.vector_width));
    if (p.chunks > 0) absl::StrAppend(&text, " C", p.chunks);
    if (p.cluster_blocks > 1)
      absl::StrAppend(&text, " cluster ", p.cluster_blocks);
    else if (p.threads_per_row != p.threads)
      absl::StrAppend(&text, " R", p.threads_per_row);
    text += WordIfSeveral("M", p.rows_per_step);
    if (p.stages > 0) absl::StrAppend(&text, " S", p.stages);
    if (p.column_tiles) text += " tiles";
    if (p.keeps_results) text += " keeps results";
    if (p.tile_rows > 0) absl::StrAppend(&text, " of ", p.tile_rows, " rows");
    absl::StrAppend(&text, LoadPathWord(p.load_path), p.hold_columns ? " holds" : "",
                    p.reversed ? " reversed" : "", p.atomic ? " atomic" : "", L2Word(p.l2_percent),
                    KeptWords(p.kept));
    if (p.blocks_per_multiprocessor == 0) text += " one-shot";
    absl::StrAppend(&text, WordIfSeveral("B", p.resident_blocks),
                    WordIfSeveral("B", p.blocks_per_multiprocessor));
    return text;
  }
  std::string Variant(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<RowPanelParameters>();
    std::string text = VariantText(*this, {.threads = p.threads,
                                           .vector_width = p.vector_width,
                                           .chunks = p.chunks,
                                           .threads_per_row = p.threads_per_row,
                                           .cluster_blocks = p.cluster_blocks,
                                           .stages = p.stages,
                                           .blocks_per_multiprocessor = p.blocks_per_multiprocessor,
                                           .resident_blocks = p.resident_blocks,
                                           .load_path = p.load_path,
                                           .rows_per_step = p.rows_per_step});
    if (p.hold_columns) text += " holds";
    if (p.ragged) text += " ragged";
    if (p.column_tiles) text += " tiles";
    if (p.keeps_results) text += " keeps results";
    if (p.tile_rows > 0) absl::StrAppend(&text, " of ", p.tile_rows);
    if (p.reversed) text += " reversed";
    if (p.atomic) text += " atomic";
    if (p.l2_percent > 0) absl::StrAppend(&text, " L2 ", p.l2_percent, " others first");
    for (const auto& [rows, where] :
         {std::pair(p.kept.shared_rows, ""), std::pair(p.kept.register_rows, "r")})
      if (rows > 0) absl::StrAppend(&text, " keeps ", rows, p.kept.filled ? "f" : "", where);
    return text + OrderText(kernel);
  }
};

}  // namespace

const Skeleton& RowPanelSkeleton() {
  static const RowPanel kSkeleton;
  return kSkeleton;
}

void SetRowFeatures(const RunTimeEstimate& estimate, const RowPanelParameters& rows, bool one_tile,
                    bool in_loop, ResidualFeatures* set) {
  ResidualFeatures& features = *set;
  const LoopTerms terms(estimate, rows.threads, rows.vector_width);
  const bool staged = rows.load_path == LoadPath::kStaged, bulk = rows.load_path == LoadPath::kBulk,
             together = rows.stages == 0 && rows.rows_per_step > 1, single = rows.vector_width == 1,
             plain = !in_loop && !together && rows.load_path == LoadPath::kDirect;
  const double several_rows = FeatureLogarithm(rows.rows_per_step, 1) / 3,
               chunks = FeatureLogarithm(rows.chunks, 4) / 3;
  features[kStagedCopies] = staged;
  features[kBulkCopies] = bulk;
  features[kRowsTogether] = together;
  features[kRowsReadAgain] = in_loop;
  features[kColumnsHeld] = rows.hold_columns;
  features[kRowsAStep] = several_rows;
  features[kStages] = rows.stages > 0 ? (rows.stages - 2) / 2.0 : 0;
  features[kChunksARow] = chunks;
  features[kBulkOfSingleEntries] = bulk && single;
  features[kTogetherOfSingleEntries] = together && single;
  features[kBulkOfSeveralRows] = bulk ? several_rows : 0;
  features[kIssueOfOneTile] = plain && one_tile ? terms.issue : 0;
  features[kIssueOfPersistent] = plain && !one_tile ? terms.issue : 0;
  features[kIssueOfStaged] = staged ? terms.issue : 0;
  features[kIssueOfBulk] = bulk ? terms.issue : 0;
  features[kIssueOfTogether] = together ? terms.issue : 0;
  features[kIssueOfReadAgain] = in_loop ? terms.issue : 0;
  features[kLittleUnderWay] = !bulk && !together ? terms.little : 0;
  features[kLittleUnderWayBulk] = bulk ? terms.little : 0;
  features[kLittleUnderWayTogether] = together ? terms.little : 0;
  features[kFewLoads] = plain || in_loop ? terms.few_loads : 0;
  features[kFewLoadsOfSingleEntries] = (plain || in_loop) && single ? terms.few_loads : 0;
  features[kOneTileOfSingleEntries] = one_tile && single;
  features[kStagedOfSingleEntries] = staged && single;
  features[kChunksOfSingleEntries] = single ? chunks : 0;
  features[kOneWarpARow] = rows.threads_per_row == 32;
  features[kThreadsOfBulk] = bulk ? terms.threads : 0;
  features[kThreadsOfBulkOfSingleEntries] = bulk && single ? terms.threads : 0;
  features[kBulkOfSeveralRowsOfSingleEntries] = bulk && single ? several_rows : 0;
}

}  // namespace fusion
