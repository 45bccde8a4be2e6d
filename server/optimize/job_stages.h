// The stages of the pipeline that need more than one line: what optimize_pipeline.cc calls, in its order.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/codegen/code_library.h"
#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/optimize/optimize_pipeline.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"

namespace fusion {

// InvalidArgument when the inputs, outputs, intermediate results and the f64 reference cannot all be in the
// device's memory; says what is needed and what there is. Checked before anything is built.
absl::Status CheckDeviceMemory(const Submission& submission, const DeviceDescription& device);

// A cover with its code, and what will be reported of it.
struct PlannedCandidate {
  std::vector<const CodeUnit*> units;  // in schedule order
  v1::Candidate candidate;             // with everything known before it is built
};
// The code of all covers, of the unfused cover and of the reference.
struct GeneratedCode {
  std::unique_ptr<CodeLibrary> library;
  std::vector<PlannedCandidate> candidates;
  // Ways to compute the graph node by node: the best predicted implementations, the second best ... The
  // fastest measured one is the unfused cover that speed-ups are relative to.
  std::vector<std::vector<const CodeUnit*>> unfused;
  std::vector<const CodeUnit*> reference;
};
absl::StatusOr<GeneratedCode> GenerateCode(const Submission& submission, const CostModel& model,
                                           const Plans& plans);

// The code of one cover; predicted_rank: from 1.
absl::StatusOr<PlannedCandidate> PlanCandidate(const Submission& submission, const CostModel& model,
                                               const SearchSpace& space, const CoverSolution& cover,
                                               int predicted_rank, CodeLibrary& library);
// What was built so far.
struct BuiltCode;

// Candidates that wait after a later search.
struct Waiting {
  std::vector<WaitingCandidate> candidates;
  double unseen_seconds =
      0;  // predicted time of the best cover that is none of them, or less; infinite: there is none
};
// Of `again`, a search of the same submission by a model that knows more, `most` covers that were not timed
// and whose kernels build: those that may be the fastest, less two standard deviations of what the model says
// of each. Those that are no candidates yet are added to both, as found by search number `search`.
absl::StatusOr<Waiting> AddCandidates(const Submission& submission, const CostModel& model,
                                      const Plans& again, int most, int search, const BuiltCode& built,
                                      Plans* plans, GeneratedCode* code);

struct BuiltCode {
  std::map<const CodeUnit*, std::string> binaries;  // digests
  std::map<const CodeUnit*, v1::BuildResult> failed;
  int builds = 0;
  int reused = 0;
};
// What runs on the device: as it is measured there, and as it is taken away to be run on one like it.
v1::Program ProgramOfUnits(const Submission& submission, const DeviceDescription& device,
                           const BuiltCode& built, const std::vector<const CodeUnit*>& units,
                           const std::string& name, bool force_f64 = false);
// Into the figures of the build cache; metrics may be null.
void CountBuild(const BuildOutcome& outcome, ServerMetrics* metrics);

// Each build of the units once: units that only their launches set apart have the same one.
struct DistinctBuilds {
  std::vector<v1::BuildTask> tasks;
  std::vector<size_t> of_unit;  // position in `tasks`, of each unit
};
DistinctBuilds DistinctBuildsOf(const std::vector<const CodeUnit*>& units);

// Builds the candidates at these positions; before the first of them the reference and the unfused covers.
// Failed builds mark their candidates COMPILE_ERROR and take back unfused covers. FailedPrecondition, with
// the compiler's log, when the reference or every unfused cover does not build.
absl::Status BuildCandidates(const std::vector<int>& positions, GeneratedCode* code,
                             const PipelineContext& context, BuiltCode* built);

// Whether binaries of the job were not in the store any more, because they were damaged, and all are there
// again: builds what is lost. Where one is not what it was, this job's programs cannot run; the next one
// finds the new one.
absl::StatusOr<bool> RebuildWhatIsLost(const BuiltCode& built, const PipelineContext& context);

// Raise when the meaning of a measured time changes: it is part of the key of stored measurements.
inline constexpr int kMethodVersion = 3;
// What programs for the submission are measured with: data, the reference in f64 and the unfused cover. Of
// one job always the same.
v1::Session SessionOf(const Submission& submission, v1::Program reference, v1::Program unfused,
                      const std::string& job);

// Times and verifies candidates that were built; fills them, and the figures of the unfused cover in *result.
class CandidateTimer {
 public:
  virtual ~CandidateTimer() = default;
  // The candidates at these positions, a few at a time, with the fastest unfused cover; a bad one harms no
  // other.
  virtual absl::Status TimeRound(const std::vector<int>& positions) = 0;
  // After the last round: the fastest ones and the unfused cover again, in turn in one process, so that they
  // meet the same conditions. All measurements go to the store. FailedPrecondition when nothing could be
  // measured.
  virtual absl::Status Finish() = 0;
};
// All arguments must outlive it; the reference and the unfused covers must be built before the first round.
std::unique_ptr<CandidateTimer> MakeCandidateTimer(const Submission& submission,
                                                   const DeviceDescription& device, const BuiltCode& built,
                                                   const PipelineContext& context, GeneratedCode* code,
                                                   v1::JobResult* result);

// The tables of routine times for the device that the store has. *notes: those that were refused, and why.
absl::StatusOr<RoutineTables> StoredRoutineTables(const DeviceDescription& device, const Catalog& catalog,
                                                  Store& store, std::vector<std::string>* notes);
// Measures the routines of the graph's element functions that are not `known`, and stores their tables. Notes
// say what could not be measured; errors are those of the dispatcher and the store.
absl::StatusOr<v1::RoutineTables> MeasureRoutines(const Submission& submission,
                                                  const DeviceDescription& device, const RoutineTables& known,
                                                  const PipelineContext& context);

// What earlier jobs taught of predictions for the device, and `candidates` of this job. *note: why nothing,
// where that is a fault.
absl::StatusOr<Residual> LearnedResidual(const DeviceDescription& device, v1::CacheState cache,
                                         const PipelineContext& context,
                                         const std::vector<ResidualObservation>& candidates,
                                         std::string* note);
// The kernels that earlier jobs measured on devices of the class; reads the store as it is asked. Null: none.
absl::StatusOr<std::shared_ptr<const KernelMemory>> RememberedKernels(const DeviceDescription& device,
                                                                      v1::CacheState cache,
                                                                      const PipelineContext& context);
// The model with what the candidates that were timed so far say of it and of their kernels, which is not
// stored yet: a job that is run again after a restart is to find what it found before.
absl::StatusOr<CostModel> TaughtModel(const Submission& submission, const CostModel& model,
                                      v1::CacheState cache, const Plans& plans, const GeneratedCode& code,
                                      const PipelineContext& context);
// Stores what the candidates that were timed say, and what is known of their kernels since.
absl::Status LearnFromCandidates(const Submission& submission, const CostModel& model, v1::CacheState cache,
                                 const Plans& plans, const GeneratedCode& code,
                                 const PipelineContext& context);

// Stores the exported folder of each OK candidate under its rank; for CUDA with its device code, for loading
// without a compiler. `code` and `built` are those the candidates were measured with.
absl::Status StoreArtifacts(const Submission& submission, const DeviceDescription& device, const Plans& plans,
                            const GeneratedCode& code, const BuiltCode& built,
                            const std::vector<v1::Candidate>& ranked, const PipelineContext& context);

// The kernels of a candidate, one text.
std::string PrintCandidateSource(const PlannedCandidate& candidate, v1::Target target);
// Kernel IR and sources of every unit into the dump directory.
void DumpCode(const PipelineContext& context, const GeneratedCode& code);

// "m=4093,n=5001"
std::string SizesText(const SizeValues& sizes);

// Writes text into the dump directory, if there is one.
void Dump(const PipelineContext& context, const std::string& file_name, const std::string& text);

}  // namespace fusion
