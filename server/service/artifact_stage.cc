// The folders that can be fetched.
#include "absl/strings/str_cat.h"
#include "server/codegen/exported_folder.h"
#include "server/codegen/program.h"
#include "server/parse/parse.h"
#include "server/service/job_stages.h"

namespace fusion {

absl::Status StoreArtifacts(const Submission& submission, const DeviceDescription& device, const Plans& plans,
                            const std::vector<v1::Candidate>& ranked, const PipelineContext& context) {
  const Graph& graph = *submission.graph;
  const bool cuda = device.target() == v1::CUDA;
  // The reference of the example runs on the host, whatever the device is.
  const CostModel host(DescribedDevice(v1::HOST));
  std::vector<FusionCode> reference;
  for (const Node& node : graph.nodes()) {
    auto code = LowerFusion(graph, ReferenceImplementation(graph, node.id, submission.sizes, host),
                            {.force_f64 = true, .cuda = false});
    if (!code.ok()) return code.status();
    reference.push_back(*std::move(code));
  }
  v1::Session buffers;
  DescribeBuffers(graph, submission.sizes, &buffers);
  const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  for (const v1::Candidate& candidate : ranked) {
    if (candidate.outcome() != v1::OK) continue;
    std::vector<FusionCode> fusions;
    for (int member : plans.covers.covers[candidate.predicted_rank() - 1].columns) {
      auto code = LowerFusion(graph, plans.space.implementations[member], {.cuda = cuda});
      if (!code.ok()) return code.status();
      fusions.push_back(*std::move(code));
    }
    ExportRequest request{.language = cuda ? Language::kCuda : Language::kHost,
                          .sizes = submission.sizes,
                          .tolerances = OutputTolerances(graph, submission.sizes)};
    for (const FusionCode& code : fusions) request.fusions.push_back(&code);
    for (const FusionCode& code : reference) request.reference.push_back(&code);
    for (const v1::Buffer& input : buffers.inputs()) request.positive_inputs.push_back(input.domain() != v1::REAL);
    request.description = absl::StrCat("rank ", candidate.rank(), " on ", device.name(), " (", device.arch(), ") at ",
                                       SizesText(submission.sizes), ": ", candidate.description());
    v1::Artifact artifact = ExportFolder(graph, request);
    v1::ArtifactFile* file = artifact.add_files();
    file->set_path("graph.fuse");
    file->set_content(PrintFuse(graph));
    auto digest = context.store.PutBlob(artifact.SerializeAsString(), "", now);
    if (!digest.ok()) return digest.status();
    if (auto status = context.store.PutArtifact(context.job, candidate.rank(), *digest); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace fusion
