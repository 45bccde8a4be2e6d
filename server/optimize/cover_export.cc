#include "server/optimize/cover_export.h"

#include <utility>

#include "base/status_macros.h"
#include "server/codegen/exported_folder.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/program.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/implementation_choice.h"
#include "server/skeletons/skeletons.h"
#include "server/target/exported_names.h"

namespace fusion {

absl::StatusOr<CoverExporter> CoverExporter::Create(const Submission& submission) {
  CoverExporter exporter(submission);
  const Graph& graph = *submission.graph;
  const CostModel host(DescribedDevice(v1::HOST));
  for (const Node& node : graph.nodes()) {
    FUSION_ASSIGN_OR_RETURN(
        auto code, LowerFusion(graph, ReferenceImplementation(graph, node.id, submission.sizes, host),
                               {.force_f64 = true, .simt = false}));
    exporter.reference_.push_back(std::move(code));
  }
  NumberEqualNames(&exporter.reference_);
  return exporter;
}

absl::StatusOr<v1::Artifact> CoverExporter::Export(const DeviceDescription& device,
                                                   const std::vector<const FusionImplementation*>& fusions,
                                                   const std::string& description,
                                                   const std::string& verified) const {
  const Graph& graph = *submission_->graph;
  const Target& target = TargetOf(device.target());
  std::vector<FusionCode> codes;
  for (const FusionImplementation* fusion : fusions) {
    FUSION_ASSIGN_OR_RETURN(auto code, LowerFusion(graph, *fusion, {.simt = target.simt()}));
    codes.push_back(std::move(code));
  }
  NumberEqualNames(&codes);
  ExportRequest request{.target = target,
                        .arch = device.arch(),
                        .sizes = submission_->sizes,
                        .tolerances = TolerancesOf(*submission_),
                        .description = description,
                        .verified = verified,
                        .names = ExportedNames(submission_->code_name)};
  for (FusionCode& code : codes)
    for (KernelLaunch& launch : code.launches) launch.kernel.name = request.names.Kernel(launch.kernel.name);
  for (const FusionCode& code : codes) request.fusions.push_back(&code);
  for (const FusionCode& code : reference_) request.reference.push_back(&code);
  v1::Artifact artifact = ExportFolder(graph, request);
  v1::ArtifactFile* file = artifact.add_files();
  // In the form that comes back with all that it needs.
  const bool as_text = !HasInlineFunctions(graph);
  file->set_path(as_text ? "graph.fuse" : "graph.json");
  file->set_content(as_text ? PrintFuse(graph) : PrintJson(graph));
  return artifact;
}

}  // namespace fusion
