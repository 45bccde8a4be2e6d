#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "server/skeletons/cooperative/cooperative.h"
#include "server/skeletons/cooperative/joined_launch.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/shared/loop_features.h"
#include "server/skeletons/shared/variant_text.h"
#include "server/skeletons/skeletons.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

bool IsRowPanelSweep(const FusionImplementation& sweep) { return sweep.skeleton == &RowPanelSkeleton(); }

class Cooperative final : public SkeletonOf<CooperativeParameters> {
 public:
  const char* name() const override { return "cooperative"; }

  void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                 NearestMiss* miss) const override {
    if (!problem.sweeps.empty()) ConfigureCooperative(problem, out, miss);
  }

  absl::StatusOr<FusionCode> Lower(LoweringContext& context) const override {
    const FusionImplementation& implementation = context.implementation;
    std::vector<FusionCode> parts;
    int workspace = 0;
    for (const FusionImplementation& sweep : Sweeps(implementation)) {
      LoweringContext own(implementation, context.graph, sweep, context.options, workspace);
      FUSION_ASSIGN_OR_RETURN(FusionCode code, LowerLoop(own));
      workspace += static_cast<int>(code.workspace.size());
      parts.push_back(std::move(code));
    }
    return JoinLaunches(std::move(parts), context.kernel_name(""), context.comment(),
                        implementation.As<CooperativeParameters>().blocks_per_multiprocessor);
  }

  ResidualFeatures Features(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<CooperativeParameters>();
    // The first sweep has what the whole has not.
    const FusionImplementation& first = p.sweeps.front();
    RowPanelParameters rows;
    if (IsRowPanelSweep(first))
      rows = first.As<RowPanelParameters>();
    else
      rows = {.threads = first.As<VectorParameters>().threads,
              .vector_width = first.As<VectorParameters>().vector_width,
              .threads_per_row = p.threads};
    ResidualFeatures features = LoopFeatures(kernel.estimate, rows.threads, rows.vector_width, false);
    SetRowFeatures(kernel.estimate, rows, false, false, &features);
    features[kCooperativeKernels] = 1;
    features[kRowsKept] = std::any_of(p.sweeps.begin(), p.sweeps.end(), KeepsRows);
    features[kAtomicSums] = p.atomic;
    features[kPartialResults] = !p.atomic;
    features[kShareKeptInL2] = p.l2_percent / 100.0;
    return features;
  }
  std::vector<int> Structure(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<CooperativeParameters>();
    const bool in_batches = p.stages == 0 && p.rows_per_step > 1,
               keeps_rows = std::any_of(p.sweeps.begin(), p.sweeps.end(), KeepsRows),
               in_both = std::any_of(p.sweeps.begin(), p.sweeps.end(), KeepsRowsInBoth);
    return {static_cast<int>(p.load_path), in_batches, keeps_rows, in_both, p.atomic, p.l2_percent > 0};
  }

  std::string Describe(const Graph& graph, const FusionImplementation& kernel) const override {
    std::vector<std::string> parts;
    for (const FusionImplementation& sweep : Sweeps(kernel))
      parts.push_back(sweep.skeleton->Describe(graph, sweep));
    return absl::StrCat("cooperative (", absl::StrJoin(parts, " | "), ")");
  }
  std::string Variant(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<CooperativeParameters>();
    std::string text = VariantText(*this, {.threads = p.threads,
                                           .stages = p.stages,
                                           .blocks_per_multiprocessor = p.blocks_per_multiprocessor,
                                           .load_path = p.load_path,
                                           .rows_per_step = p.rows_per_step});
    if (p.atomic) text += " atomic";
    if (p.l2_percent > 0) absl::StrAppend(&text, " L2 ", p.l2_percent, " others first");
    text += OrderText(kernel);
    for (const FusionImplementation& sweep : p.sweeps) {
      std::string own = sweep.skeleton->Variant(sweep);
      // Loops over vectors have the threads of a row here, too.
      if (!IsRowPanelSweep(sweep))
        own = absl::StrReplaceAll(own, {{" R0 ", absl::StrCat(" R", p.threads, " ")}});
      absl::StrAppend(&text, " | ", sweep.order.size(), " of ", kernel.fusion.nodes.Size(), ": ", own);
    }
    return text;
  }
  const std::vector<FusionImplementation>& Sweeps(const FusionImplementation& kernel) const override {
    return kernel.As<CooperativeParameters>().sweeps;
  }

 private:
  static bool KeepsRows(const FusionImplementation& sweep) {
    return IsRowPanelSweep(sweep) && sweep.As<RowPanelParameters>().kept.any();
  }
  static bool KeepsRowsInBoth(const FusionImplementation& sweep) {
    if (!IsRowPanelSweep(sweep)) return false;
    const KeptRows& kept = sweep.As<RowPanelParameters>().kept;
    return kept.register_rows > 0 && kept.shared_rows > 0;
  }
};

}  // namespace

const Skeleton& CooperativeSkeleton() {
  static const Cooperative kSkeleton;
  return kSkeleton;
}

}  // namespace fusion
