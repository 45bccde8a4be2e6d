#include "server/optimize/artifact_stage.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/simulated_device.h"
#include "base/status_macros.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/loadable_program.h"
#include "server/optimize/submission.h"
#include "server/target/target.h"

namespace fusion {
namespace {

// The candidate as it was measured: the same program, of the same binaries.
absl::Status AddMeasuredProgram(const v1::CandidateSet& set, const v1::PlannedCandidate& planned,
                                const v1::BuiltCode& built, const DeviceDescription& device,
                                const PipelineContext& context, v1::Artifact* artifact) {
  v1::LoadableProgram loadable;
  loadable.set_device(device.name());
  loadable.set_arch(device.arch());
  loadable.set_multiprocessors(std::max(1, device.multiprocessors()));
  *loadable.mutable_sizes() = set.sizes();
  *loadable.mutable_inputs() = set.session().inputs();
  *loadable.mutable_outputs() = set.session().outputs();
  *loadable.mutable_tolerances() = set.session().tolerances();
  *loadable.mutable_program() = BuiltProgram(planned.program(), built);
  loadable.mutable_program()->set_name(set.name());
  loadable.set_pointer_alignment(planned.pointer_alignment());
  const auto read = [&](const std::string& digest) -> absl::StatusOr<std::string> {
    absl::StatusOr<std::string> binary = context.store.GetBlob(digest);
    if (!absl::IsDataLoss(binary.status()) && !absl::IsNotFound(binary.status())) return binary;
    if (absl::StatusOr<bool> rebuilt = RebuildWhatIsLost(set, built, context); !rebuilt.ok())
      return rebuilt.status();
    return context.store.GetBlob(digest);
  };
  return AddLoadableFiles(loadable, read, artifact);
}

std::string ErrorText(const v1::Candidate& candidate) {
  return absl::StrFormat("largest relative error %.2g, %.2g is allowed", candidate.max_relative_error(),
                         candidate.tolerance());
}

// Says where, when and how exactly the results were right.
std::string VerifiedText(const v1::Candidate& candidate, const DeviceDescription& device,
                         const std::string& sizes, Timestamp now) {
  if (device.driver_version() == kSimulatedDriver)
    return "SIMULATED: no kernel ran. The device is not there, the times that rank this code are invented "
           "and "
           "no result was verified.";
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(now)};
  return absl::StrFormat("Verified on %s (%s) at %s on %04d-%02u-%02u: %s.", device.name(), device.arch(),
                         sizes, static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                         static_cast<unsigned>(day.day()), ErrorText(candidate));
}

std::string PredictedText(const v1::Candidate& candidate) {
  return absl::StrCat(absl::StrFormat("PREDICTED: nothing was measured; the code should take %.4g us. ",
                                      candidate.predicted_seconds() * 1e6),
                      candidate.tolerance() > 0
                          ? absl::StrCat("Its kernels were computed on a processor at small sizes: ",
                                         ErrorText(candidate), ".")
                          : "No result was verified: run the example.");
}

}  // namespace

absl::Status StoreArtifacts(const v1::CandidateSet& set, const v1::BuiltCode& built, bool predicted,
                            const std::vector<v1::Candidate>& ranked, const DeviceDescription& device,
                            const ExportCandidate& export_candidate, const PipelineContext& context) {
  const std::string sizes = SizesText({set.sizes().begin(), set.sizes().end()});
  const auto now = TimeOfDay();
  for (const v1::Candidate& candidate : ranked) {
    if (candidate.outcome() != v1::OK) continue;
    const int position = candidate.predicted_rank() - 1;
    const std::string description =
        absl::StrCat(predicted ? "predicted rank " : "rank ", candidate.rank(), " on ", device.name(), " (",
                     device.arch(), ") at ", sizes, ": ", candidate.description());
    FUSION_ASSIGN_OR_RETURN(
        auto artifact,
        export_candidate(position, description,
                         predicted ? PredictedText(candidate) : VerifiedText(candidate, device, sizes, now)));
    if (!predicted && TargetOf(device.target()).exports_binaries())
      FUSION_RETURN_IF_ERROR(
          AddMeasuredProgram(set, set.candidates(position), built, device, context, &artifact));
    FUSION_ASSIGN_OR_RETURN(auto digest, context.store.PutBlob(artifact.SerializeAsString(), "", now));
    FUSION_RETURN_IF_ERROR(context.store.PutArtifact(context.job, candidate.rank(), digest));
  }
  return absl::OkStatus();
}

}  // namespace fusion
