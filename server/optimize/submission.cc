#include "server/optimize/submission.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/rpc/status_details.h"
#include "base/sha256.h"
#include "base/similar_name.h"
#include "base/status_macros.h"
#include "server/codegen/verification.h"
#include "server/parse/error_list.h"
#include "server/parse/input_values.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/target/exported_names.h"
#include "server/target/target.h"

namespace fusion {
namespace {

// Memory that the driver, the code and the runner's own buffers take.
constexpr int64_t kReservedBytes = int64_t{512} << 20;

constexpr size_t kMaximumRequestIdBytes = 128;
constexpr size_t kMaximumDeviceBytes = 200;
constexpr int kMaximumPriority = 100;
constexpr int kMaximumLimitSeconds = 86400;
constexpr size_t kMostRemarkBytes = 1000;  // of names and kinds, which are ASCII

absl::Status CheckArch(v1::Target target, const std::string& arch) {
  absl::StatusOr<ArchChoice> choice = ChooseArch(target, arch);
  return choice.ok() ? absl::OkStatus() : InvalidField("arch", std::string(choice.status().message()));
}

absl::Status CheckCandidates(int candidates) {
  if (candidates >= 0 && candidates <= kMaximumCandidates) return absl::OkStatus();
  return InvalidField(
      "candidates", absl::StrCat("must be between 1 and ", kMaximumCandidates, " (0: 30), not ", candidates));
}

// Returns the digest of what is asked of the values of inputs; "" for nothing. Names of inputs do not matter.
std::string InputValuesDigest(const Graph& graph) {
  std::string text;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const v1::InputValues& values = graph.value(graph.inputs()[i]).values;
    if (values.kind() != v1::InputValues::DEFAULT)
      absl::StrAppend(&text, i, InputValuesText(values), values.blob(), "\n");
  }
  return text.empty() ? "" : absl::StrCat("sha256:", Sha256Hex(text).substr(0, 16));
}

absl::Status CheckDeviceName(const std::string& device) {
  if (device.size() <= kMaximumDeviceBytes) return absl::OkStatus();
  return InvalidField("device", absl::StrCat("must be at most ", kMaximumDeviceBytes, " bytes"));
}

}  // namespace

absl::StatusOr<Submission> CheckSource(const v1::GraphSource& source,
                                       std::shared_ptr<const Catalog> catalog) {
  FUSION_ASSIGN_OR_RETURN(std::shared_ptr<const Graph> graph,
                          ParseSource(source, std::move(catalog), ParseOptions()));
  FUSION_ASSIGN_OR_RETURN(SizeValues sizes, ResolveSizes(*graph, source.size_values(), source.file_name()));
  Submission checked{graph, sizes, {}, {}};
  checked.summary.set_name(graph->name());
  checked.summary.set_nodes(graph->node_count());
  checked.summary.set_hash(GraphHash(*graph));
  checked.summary.set_input_values(InputValuesDigest(*graph));
  for (const auto& [name, value] : sizes) (*checked.summary.mutable_size_values())[name] = value;
  return checked;
}

absl::StatusOr<Submission> CheckSubmission(const v1::SubmitRequest& request,
                                           std::shared_ptr<const Catalog> catalog) {
  absl::StatusOr<Submission> checked = CheckSource(request.source(), std::move(catalog));
  if (!checked.ok()) return checked;
  checked->tolerances = {request.tolerances().begin(), request.tolerances().end()};
  std::vector<absl::string_view> outputs;
  for (ValueId id : checked->graph->outputs()) outputs.push_back(checked->graph->value(id).name);
  ErrorList errors(request.source().file_name());
  for (const auto& [name, tolerance] : checked->tolerances) {
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) {
      const std::string similar = errors.MaySuggest() ? SimilarName(name, outputs) : "";
      errors.Add(Location{},
                 absl::StrCat("tolerances: the graph has no output ", Shown(name), DidYouMean(similar)));
    } else if (!std::isfinite(tolerance) || tolerance <= 0) {
      errors.Add(Location{}, absl::StrCat("tolerances: that of ", Shown(name),
                                          " must be a finite number greater than 0, but is ", tolerance));
    }
  }
  checked->code_name = request.code_name();
  if (absl::Status named = ExportedNames::Check(request.code_name());
      !request.code_name().empty() && !named.ok())
    errors.Add(Location{}, std::string(named.message()));
  if (!errors.empty()) return errors.ToStatus();
  return checked;
}

std::vector<double> TolerancesOf(const Submission& submission) {
  std::vector<double> tolerances = OutputTolerances(*submission.graph, submission.sizes);
  for (size_t i = 0; i < tolerances.size(); ++i) {
    const auto asked =
        submission.tolerances.find(submission.graph->value(submission.graph->outputs()[i]).name);
    if (asked != submission.tolerances.end()) tolerances[i] = asked->second;
  }
  return tolerances;
}

std::vector<std::string> RemarksOf(const Submission& submission) {
  std::vector<std::string> remarks;
  std::string values;
  for (ValueId id : submission.graph->inputs()) {
    const Value& input = submission.graph->value(id);
    if (input.values.kind() == v1::InputValues::DEFAULT) continue;
    absl::StrAppend(
        &values, values.empty() ? "" : ", ", input.name,
        input.values.kind() == v1::InputValues::FILE ? " from a file" : InputValuesText(input.values));
  }
  if (values.size() > kMostRemarkBytes) values = absl::StrCat(values.substr(0, kMostRemarkBytes), "...");
  if (!values.empty()) remarks.push_back(absl::StrCat("values of inputs: ", values, ", as asked"));
  for (const auto& [name, tolerance] : submission.tolerances)
    remarks.push_back(absl::StrCat("tolerance of ", name, ": ", tolerance, ", as asked"));
  return remarks;
}

absl::Status CheckBuildable(const Graph& graph) {
  if (graph.node_count() <= kMaxSubmittedNodes) return absl::OkStatus();
  return InvalidField(
      "source", absl::StrCat("the graph has ", graph.node_count(), " nodes; a submission takes at most ",
                             kMaxSubmittedNodes, ", since each is also built by itself, and explain at most ",
                             kMaxSearchedNodes, "; split it where few variables cross"));
}

bool HasElements(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.mapped(); });
}

absl::Status CheckBenchmark(const Graph& graph) {
  if (HasElements(graph)) return absl::OkStatus();
  return InvalidField("source",
                      "the graph has no functions of small matrices, vectors or scalars in lists; only the "
                      "routines of these are "
                      "measured");
}

absl::Status CheckFusionLimit(const v1::JobLimits& limits) {
  if (limits.fusions() >= 0 && limits.fusions() <= kMostFusions) return absl::OkStatus();
  return InvalidField("limits.fusions", absl::StrCat("must be a number of fusible sets, at most ",
                                                     kMostFusions, ", or 0 for the server's own"));
}

absl::Status CheckRequestFields(const v1::SubmitRequest& request) {
  FUSION_RETURN_IF_ERROR(CheckCandidates(request.candidates()));
  if (!std::isfinite(request.time_limit_seconds()) || request.time_limit_seconds() < 0)
    return InvalidField("time_limit_seconds", "must be a number of seconds, or 0 for none");
  if (request.priority() < -kMaximumPriority || request.priority() > kMaximumPriority)
    return InvalidField("priority",
                        absl::StrCat("must be between -", kMaximumPriority, " and ", kMaximumPriority));
  const v1::JobLimits& limits = request.limits();
  for (const auto& [name, seconds] : {std::pair("limits.queue_seconds", limits.queue_seconds()),
                                      std::pair("limits.build_seconds", limits.build_seconds()),
                                      std::pair("limits.run_seconds", limits.run_seconds())})
    if (!std::isfinite(seconds) || seconds < 0 || seconds > kMaximumLimitSeconds)
      return InvalidField(
          name, absl::StrCat("must be a number of seconds, at most ", kMaximumLimitSeconds, ", or 0"));
  FUSION_RETURN_IF_ERROR(CheckFusionLimit(limits));
  if (request.request_id().size() > kMaximumRequestIdBytes)
    return InvalidField("request_id", absl::StrCat("must be at most ", kMaximumRequestIdBytes, " bytes"));
  FUSION_RETURN_IF_ERROR(CheckDeviceName(request.device()));
  if (!v1::Target_IsValid(request.target()))
    return InvalidField("target", "must be TARGET_AUTO, CUDA or HOST");
  if (!v1::CacheState_IsValid(request.cache())) return InvalidField("cache", "must be COLD or WARM");
  if (request.no_measure() && (request.measure_all() || request.quick() || request.has_benchmark()))
    return InvalidField("no_measure", "says that nothing is measured, and other fields how that is done");
  return CheckArch(request.target(), request.arch());
}

absl::Status CheckRequestFields(const v1::ExplainRequest& request) {
  FUSION_RETURN_IF_ERROR(CheckCandidates(request.candidates()));
  if (!v1::Target_IsValid(request.target()))
    return InvalidField("target", "must be TARGET_AUTO, CUDA or HOST");
  if (!v1::CacheState_IsValid(request.cache())) return InvalidField("cache", "must be COLD or WARM");
  FUSION_RETURN_IF_ERROR(CheckFusionLimit(request.limits()));
  if (request.why_size() != 0 && request.why_size() != 2)
    return InvalidField("why", "must be two values, or none");
  FUSION_RETURN_IF_ERROR(CheckDeviceName(request.device()));
  return CheckArch(request.target(), request.arch());
}

absl::Status CheckDeviceMemory(const Submission& submission, const DeviceDescription& device) {
  const Graph& graph = *submission.graph;
  double values = 0, wide = 0;
  for (const Value& value : graph.values()) {
    if (value.literal) continue;
    const double bytes = static_cast<double>(StorageBytes(value, submission.sizes));
    values += bytes;
    wide += bytes * 8 / DataTypeBytes(value.type.data_type);
  }
  const double needed = values + wide + kReservedBytes;
  if (device.memory_bytes() <= 0 || needed <= device.memory_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the data does not fit the device %s: inputs, outputs and intermediate results need "
                      "%.1f GB, the f64 reference %.1f GB "
                      "more; the device has %.1f GB; submit smaller sizes",
                      device.name(), values / 1e9, wide / 1e9, device.memory_bytes() / 1e9));
}

std::string SizesText(const SizeValues& sizes) { return absl::StrJoin(sizes, ",", absl::PairFormatter("=")); }

}  // namespace fusion
