#include "server/optimize/artifact_stage.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/program.h"
#include "server/codegen/verification.h"
#include "server/optimize/cover_export.h"
#include "server/optimize/loadable_program.h"

namespace fusion {
namespace {

// The candidate as it was measured: the same program, of the same binaries.
absl::Status AddMeasuredProgram(const Submission& submission, const DeviceDescription& device,
                                const PlannedCandidate& planned, const BuiltCode& built,
                                const v1::Session& buffers, const PipelineContext& context,
                                v1::Artifact* artifact) {
  v1::LoadableProgram loadable;
  loadable.set_device(device.name());
  loadable.set_arch(device.arch());
  loadable.set_multiprocessors(std::max(1, device.multiprocessors()));
  loadable.mutable_sizes()->insert(submission.sizes.begin(), submission.sizes.end());
  *loadable.mutable_inputs() = buffers.inputs();
  *loadable.mutable_outputs() = buffers.outputs();
  for (double tolerance : TolerancesOf(submission)) loadable.add_tolerances(tolerance);
  *loadable.mutable_program() =
      ProgramOfUnits(submission, device, built, planned.units, submission.graph->name());
  for (const CodeUnit* unit : planned.units)
    for (const KernelLaunch& launch : unit->code.launches)
      if (NeedsAlignment(launch, submission.sizes)) loadable.set_pointer_alignment(kPointerAlignment);
  const auto read = [&](const std::string& digest) -> absl::StatusOr<std::string> {
    absl::StatusOr<std::string> binary = context.store.GetBlob(digest);
    if (!absl::IsDataLoss(binary.status()) && !absl::IsNotFound(binary.status())) return binary;
    if (absl::StatusOr<bool> rebuilt = RebuildWhatIsLost(built, context); !rebuilt.ok())
      return rebuilt.status();
    return context.store.GetBlob(digest);
  };
  return AddLoadableFiles(loadable, read, artifact);
}

// Says where, when and how exactly the results were right.
std::string VerifiedText(const v1::Candidate& candidate, const DeviceDescription& device,
                         const SizeValues& sizes, Timestamp now) {
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(now)};
  return absl::StrFormat(
      "Verified on %s (%s) at %s on %04d-%02u-%02u: largest relative error %.2g, %.2g is allowed.",
      device.name(), device.arch(), SizesText(sizes), static_cast<int>(day.year()),
      static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()), candidate.max_relative_error(),
      candidate.tolerance());
}

}  // namespace

absl::Status StoreArtifacts(const Submission& submission, const DeviceDescription& device, const Plans& plans,
                            const GeneratedCode& code, const BuiltCode& built,
                            const std::vector<v1::Candidate>& ranked, const PipelineContext& context) {
  const Graph& graph = *submission.graph;
  FUSION_ASSIGN_OR_RETURN(auto exporter, CoverExporter::Create(submission));
  v1::Session buffers;
  DescribeBuffers(graph, submission.sizes, &buffers);
  const auto now = TimeOfDay();
  for (const v1::Candidate& candidate : ranked) {
    if (candidate.outcome() != v1::OK) continue;
    const int position = candidate.predicted_rank() - 1;
    std::vector<const FusionImplementation*> fusions;
    for (int member : plans.covers.covers[position].columns)
      fusions.push_back(&plans.space.implementations[member]);
    const std::string description =
        absl::StrCat("rank ", candidate.rank(), " on ", device.name(), " (", device.arch(), ") at ",
                     SizesText(submission.sizes), ": ", candidate.description());
    FUSION_ASSIGN_OR_RETURN(auto artifact,
                            exporter.Export(device, fusions, description,
                                            VerifiedText(candidate, device, submission.sizes, now)));
    if (TargetOf(device.target()).exports_binaries())
      FUSION_RETURN_IF_ERROR(AddMeasuredProgram(submission, device, code.candidates[position], built, buffers,
                                                context, &artifact));
    FUSION_ASSIGN_OR_RETURN(auto digest, context.store.PutBlob(artifact.SerializeAsString(), "", now));
    FUSION_RETURN_IF_ERROR(context.store.PutArtifact(context.job, candidate.rank(), digest));
  }
  return absl::OkStatus();
}

}  // namespace fusion
