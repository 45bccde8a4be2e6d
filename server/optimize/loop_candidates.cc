#include "server/optimize/loop_candidates.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/codegen/code_library.h"
#include "server/codegen/device_runtime.h"
#include "server/loop_kernels/launches.h"
#include "server/target/target.h"

namespace fusion {
namespace {

constexpr int64_t kCopyThreads = 256;
// Instructions of a thread, some seconds on a GPU.
constexpr double kMostWorkOfThread = 5e7;

std::string KernelsSource(const std::vector<ir::Kernel>& kernels, const Target& target) {
  std::string source = DeviceRuntime();
  for (const ir::Kernel& kernel : kernels) absl::StrAppend(&source, "\n", target.Print(kernel));
  return source;
}

// Adds the launches of the code; arrays that are written are meant by their outputs.
absl::Status AddLaunches(const LoopSubmission& submission, const LoopCode& code, const IntegerValues& values,
                         const std::string& build, bool reference, const DeviceDescription& device,
                         v1::Program* program) {
  std::set<std::string> written;
  for (const LoopArray& array : submission.interface.arrays)
    if (array.writes) written.insert(array.variable.name);
  const bool programmatic = TargetOf(device.target()).Features(device).overlapping_launches;
  std::map<std::string, int> workspaces;  // ids
  for (const CVariable& workspace : code.workspaces) {
    *program->add_temporaries() =
        BufferOf(workspace, values, TemporaryId(submission, static_cast<int>(workspaces.size())));
    v1::Buffer& added = *program->mutable_temporaries(program->temporaries_size() - 1);
    if (reference) added.set_data_type(v1::F64);
    workspaces[workspace.name] = added.id();
  }
  return ForEachLaunch(
      code, values, [&](int number, int64_t blocks, const IntegerValues& now) -> absl::Status {
        const LoopKernel& kernel = code.kernels[number];
        v1::Launch* launch = program->add_launches();
        launch->set_binary(build);
        launch->set_kernel(kernel.kernel.name);
        launch->set_grid(blocks);
        launch->set_threads(kernel.kernel.threads);
        launch->set_shared_bytes(kernel.shared_bytes);
        launch->set_programmatic(programmatic);
        for (const LoopArgument& argument : kernel.arguments) {
          v1::LaunchArgument* to = launch->add_arguments();
          switch (argument.kind) {
            case LoopArgument::Kind::kArray:
              to->set_buffer(written.count(argument.name) > 0 ? OutputId(submission, argument.name)
                                                              : InputId(submission, argument.name));
              if (reference && argument.writes && argument.type != CType::kInt)
                launch->add_results(OutputId(submission, argument.name));
              break;
            case LoopArgument::Kind::kWorkspace:
              to->set_buffer(workspaces.at(argument.name));
              break;
            case LoopArgument::Kind::kScalar:
              to->set_scalar_buffer(InputId(submission, argument.name));
              break;
            case LoopArgument::Kind::kInteger: {
              const auto value = now.find(argument.name);
              if (value == now.end())
                return absl::InvalidArgumentError(absl::StrCat(argument.name, " has no value at a launch"));
              to->set_integer(value->second);
              break;
            }
          }
        }
        return absl::OkStatus();
      });
}

// Outputs of the reference have memory of their own, which begins as their inputs are.
ir::Kernel CopyKernel() {
  ir::Kernel kernel;
  kernel.name = "fu_copy";
  kernel.comment = "Copies an array.";
  kernel.parameters = {
      {"double* FUSION_RESTRICT", "to"}, {"const double* FUSION_RESTRICT", "from"}, {"fu_index", "count"}};
  kernel.threads = kCopyThreads;
  kernel.sections.push_back({.group_threads = static_cast<int>(kCopyThreads),
                             .lane_variables = {},
                             .body = {ir::LanePhase({"const fu_index at = block * lanes + lane;",
                                                     "if (at < count) to[at] = from[at];"})}});
  return kernel;
}

IntegerValues With(IntegerValues values, const IntegerValues& more) {
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

std::vector<ir::Kernel> IrKernelsOf(const LoopCode& code) {
  std::vector<ir::Kernel> kernels;
  for (const LoopKernel& kernel : code.kernels) kernels.push_back(kernel.kernel);
  return kernels;
}

absl::Status AddReference(const LoopSubmission& submission, const DeviceDescription& device,
                          v1::CandidateSet* set) {
  CaseFinder written(submission, submission.reference, submission.reference_parameters, device);
  FUSION_ASSIGN_OR_RETURN(IntegerValues point, written.PlainPoint());
  FUSION_RETURN_IF_ERROR(written.Sample(submission.sizes, point));
  // The loops as they were written may leave all the work to few threads, which take too long.
  const bool turned = written.WorkOfThread(point) > kMostWorkOfThread;
  if (turned) {
    CaseFinder finder(submission, submission.turned_reference, submission.turned_parameters, device);
    FUSION_ASSIGN_OR_RETURN(point, finder.PlainPoint());
  }
  const MappedLoops& mapped = turned ? submission.turned_reference : submission.reference;
  ErrorList errors(submission.file_name);
  const LoopCode code = LowerLoops(
      mapped, {.constants = point, .reuse = false, .force_f64 = true, .prefix = "reference"}, &errors);
  if (!errors.empty()) return errors.ToStatus();
  std::vector<ir::Kernel> kernels = IrKernelsOf(code);
  kernels.push_back(CopyKernel());
  const v1::BuildTask build = BuildOf(KernelsSource(kernels, TargetOf(device.target())), device);
  v1::Program* program = set->mutable_reference();
  program->set_name("reference");
  for (const v1::Buffer& output : set->session().outputs()) {
    v1::Launch* launch = program->add_launches();
    launch->set_binary(build.key());
    launch->set_kernel("fu_copy");
    launch->set_grid((output.count() + kCopyThreads - 1) / kCopyThreads);
    launch->set_threads(kCopyThreads);
    launch->set_programmatic(TargetOf(device.target()).Features(device).overlapping_launches);
    launch->add_arguments()->set_buffer(output.id());
    launch->add_arguments()->set_buffer(output.memory_of());
    launch->add_arguments()->set_integer(output.count());
    if (output.data_type() != v1::I32) launch->add_results(output.id());
  }
  FUSION_RETURN_IF_ERROR(
      AddLaunches(submission, code, With(submission.sizes, point), build.key(), true, device, program));
  (*set->mutable_builds())[build.key()] = build;
  return absl::OkStatus();
}

}  // namespace

std::string CaseText(const LoopCase& one, const LoopCode& code) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : one.parameters) parts.push_back(absl::StrCat(name, "=", value));
  std::set<std::string> cached;
  for (const LoopKernel& kernel : code.kernels) cached.insert(kernel.cached.begin(), kernel.cached.end());
  std::string text = absl::StrJoin(parts, " ");
  if (!cached.empty())
    absl::StrAppend(&text, text.empty() ? "" : ", ", "shared ", absl::StrJoin(cached, " "));
  return text.empty() ? "no parameters" : text;
}

absl::StatusOr<LoopCandidates> GenerateLoopCode(const LoopSubmission& submission, std::vector<LoopCase> cases,
                                                const DeviceDescription& device) {
  LoopCandidates candidates;
  v1::CandidateSet& set = candidates.set;
  set.set_name(submission.summary.name());
  set.set_hash(submission.summary.hash());
  set.mutable_sizes()->insert(submission.sizes.begin(), submission.sizes.end());
  *set.mutable_session() = LoopSession(submission);
  FUSION_RETURN_IF_ERROR(AddReference(submission, device, &set));
  const Target& target = TargetOf(device.target());
  const auto lower = [&](const LoopCase& one, bool reuse, v1::Program* program) -> absl::StatusOr<LoopCode> {
    ErrorList errors(submission.file_name);
    LoopCode code = LowerLoops(
        submission.mapped,
        {.constants = one.parameters, .cached = one.cached, .reuse = reuse, .prefix = "loops"}, &errors);
    if (!errors.empty()) return errors.ToStatus();
    std::vector<ir::Kernel> kernels = IrKernelsOf(code);
    for (ir::Kernel& kernel : kernels) kernel.asserted = !submission.mapped.asserted.empty();
    const v1::BuildTask build = BuildOf(KernelsSource(kernels, target), device);
    FUSION_RETURN_IF_ERROR(AddLaunches(submission, code, With(submission.sizes, one.parameters), build.key(),
                                       false, device, program));
    (*set.mutable_builds())[build.key()] = build;
    return code;
  };
  FUSION_ASSIGN_OR_RETURN(
      const IntegerValues plain,
      CaseFinder(submission, submission.mapped, submission.parameters, device).PlainPoint());
  v1::Program* unfused = set.add_unfused();
  unfused->set_name("plain");
  FUSION_RETURN_IF_ERROR(lower({.parameters = plain}, false, unfused).status());
  std::vector<std::string> written;
  for (const LoopArray& array : submission.interface.arrays)
    if (array.writes) written.push_back(array.variable.name);
  for (size_t i = 0; i < cases.size(); ++i) {
    v1::PlannedCandidate* candidate = set.add_candidates();
    FUSION_ASSIGN_OR_RETURN(LoopCode code, lower(cases[i], true, candidate->mutable_program()));
    v1::Candidate* description = candidate->mutable_description();
    description->set_predicted_rank(static_cast<int>(i) + 1);
    description->set_predicted_seconds(cases[i].predicted_seconds);
    description->set_description(CaseText(cases[i], code));
    description->mutable_parameters()->insert(cases[i].parameters.begin(), cases[i].parameters.end());
    description->set_asserted(absl::StrJoin(submission.mapped.asserted, ", "));
    description->add_fusions()->mutable_results()->Add(written.begin(), written.end());
    std::set<std::string> told;
    for (const v1::Launch& launch : candidate->program().launches()) {
      if (!told.insert(launch.kernel()).second) continue;
      v1::KernelSummary* kernel = description->add_kernels();
      kernel->set_name(launch.kernel());
      kernel->set_skeleton("loops");
      kernel->set_threads(launch.threads());
      kernel->set_blocks(launch.grid());
      kernel->set_shared_bytes(launch.shared_bytes());
    }
    description->set_key("sha256:" + Sha256Hex(candidate->program().SerializeAsString()));
    candidate->mutable_program()->set_name(description->key());
    candidates.codes.push_back(std::move(code));
  }
  candidates.cases = std::move(cases);
  for (const CParameter& parameter : submission.parameters) candidates.least[parameter.name] = parameter.low;
  return candidates;
}

std::vector<WaitingCandidate> AllCandidates(const LoopCandidates& candidates) {
  std::vector<WaitingCandidate> waiting;
  for (size_t i = 0; i < candidates.cases.size(); ++i)
    waiting.push_back({.position = static_cast<int>(i),
                       .seconds = candidates.cases[i].predicted_seconds,
                       .group = candidates.cases[i].cached ? 1 : 0});
  return waiting;
}

}  // namespace fusion
