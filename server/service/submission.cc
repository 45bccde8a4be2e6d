#include "server/service/submission.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/model/architecture.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/service/status_conversion.h"

namespace fusion {
namespace {

constexpr size_t kMaximumRequestIdBytes = 128;
constexpr size_t kMaximumDeviceBytes = 200;
constexpr int kMaximumPriority = 100;
constexpr int kMaximumLimitSeconds = 86400;

absl::Status CheckArch(v1::Target target, const std::string& arch) {
  absl::StatusOr<ArchChoice> choice = ChooseArch(target, arch);
  return choice.ok() ? absl::OkStatus() : InvalidField("arch", std::string(choice.status().message()));
}

absl::Status CheckCandidates(int candidates) {
  if (candidates >= 0 && candidates <= kMaximumCandidates) return absl::OkStatus();
  return InvalidField(
      "candidates", absl::StrCat("must be between 1 and ", kMaximumCandidates, " (0: 30), not ", candidates));
}

}  // namespace

absl::StatusOr<CheckedSource> CheckSource(const v1::GraphSource& source,
                                          std::shared_ptr<const Catalog> catalog) {
  absl::StatusOr<std::shared_ptr<const Graph>> graph =
      ParseSource(source, std::move(catalog), ParseOptions());
  if (!graph.ok()) return graph.status();
  absl::StatusOr<SizeValues> sizes = ResolveSizes(**graph, source.size_values(), source.file_name());
  if (!sizes.ok()) return sizes.status();
  CheckedSource checked{*graph, *sizes, {}};
  checked.summary.set_name((*graph)->name());
  checked.summary.set_nodes((*graph)->node_count());
  checked.summary.set_hash(GraphHash(**graph));
  for (const auto& [name, value] : *sizes) (*checked.summary.mutable_size_values())[name] = value;
  return checked;
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
  if (absl::Status status = CheckCandidates(request.candidates()); !status.ok()) return status;
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
  if (absl::Status status = CheckFusionLimit(limits); !status.ok()) return status;
  if (request.request_id().size() > kMaximumRequestIdBytes)
    return InvalidField("request_id", absl::StrCat("must be at most ", kMaximumRequestIdBytes, " bytes"));
  if (request.device().size() > kMaximumDeviceBytes)
    return InvalidField("device", absl::StrCat("must be at most ", kMaximumDeviceBytes, " bytes"));
  if (!v1::Target_IsValid(request.target()))
    return InvalidField("target", "must be TARGET_AUTO, CUDA or HOST");
  if (!v1::CacheState_IsValid(request.cache())) return InvalidField("cache", "must be COLD or WARM");
  return CheckArch(request.target(), request.arch());
}

absl::Status CheckRequestFields(const v1::ExplainRequest& request) {
  if (absl::Status status = CheckCandidates(request.candidates()); !status.ok()) return status;
  if (!v1::Target_IsValid(request.target()))
    return InvalidField("target", "must be TARGET_AUTO, CUDA or HOST");
  if (!v1::CacheState_IsValid(request.cache())) return InvalidField("cache", "must be COLD or WARM");
  if (absl::Status status = CheckFusionLimit(request.limits()); !status.ok()) return status;
  if (request.why_size() != 0 && request.why_size() != 2)
    return InvalidField("why", "must be two values, or none");
  return CheckArch(request.target(), request.arch());
}

}  // namespace fusion
