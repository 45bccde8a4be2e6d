#include <string>

#include "base/rpc/status_conversion.h"
#include "base/simulated_device.h"
#include "client/cli/render.h"

namespace fusion {
namespace {

Json StatisticsJson(const v1::Statistics& statistics) {
  return {{"median", statistics.median()},   {"low", statistics.low()},     {"high", statistics.high()},
          {"samples", statistics.samples()}, {"quick", statistics.quick()}, {"spread", statistics.spread()}};
}

Json SizesJson(const v1::GraphSummary& graph) {
  Json sizes = Json::object();
  for (const auto& [name, value] :
       std::map<std::string, int64_t>(graph.size_values().begin(), graph.size_values().end()))
    sizes[name] = value;
  return sizes;
}

Json GraphJson(const v1::GraphSummary& graph) {
  return {
      {"name", graph.name()}, {"nodes", graph.nodes()}, {"hash", graph.hash()}, {"sizes", SizesJson(graph)}};
}

Json DeviceJson(const v1::DeviceDescription& device) {
  return {{"name", device.name()},
          {"target", TargetName(device.target())},
          {"arch", device.arch()},
          {"copy_bytes_per_second", device.copy_bytes_per_second()}};
}

Json SearchJson(const v1::SearchSummary& search) {
  Json json = {{"fusions", search.fusions()},
               {"fusion_implementations", search.fusion_implementations()},
               {"covers", search.covers()},
               {"proved_optimal", search.proved_optimal()},
               {"gap", search.gap()},
               {"seconds", search.seconds()},
               {"best_predicted_seconds", search.best_predicted_seconds()},
               {"bound_seconds", search.bound_seconds()},
               {"complete", search.complete()},
               {"listed_gap", search.listed_gap()},
               {"fusions_by_size",
                std::vector<int64_t>(search.fusions_by_size().begin(), search.fusions_by_size().end())},
               {"prediction",
                {{"jobs", search.prediction().jobs()},
                 {"candidates", search.prediction().candidates()},
                 {"deviation", search.prediction().deviation()}}}};
  if (search.timed() > 0) {
    json["timed"] = search.timed();
    json["possible_gain"] = search.possible_gain();
  }
  json["notes"] = Json::array();
  for (const std::string& note : search.notes()) json["notes"].push_back(note);
  return json;
}

Json KernelsJson(const v1::Candidate& candidate) {
  Json kernels = Json::array();
  for (const v1::KernelSummary& kernel : candidate.kernels()) {
    kernels.push_back({{"name", kernel.name()},
                       {"skeleton", kernel.skeleton()},
                       {"threads", kernel.threads()},
                       {"blocks", kernel.blocks()},
                       {"shared_bytes", kernel.shared_bytes()},
                       {"registers", kernel.registers()},
                       {"spill_bytes", kernel.spill_bytes()}});
  }
  return kernels;
}

Json FusionsJson(const v1::Candidate& candidate) {
  Json fusions = Json::array();
  for (const v1::FusionSummary& fusion : candidate.fusions()) {
    Json results = Json::array();
    for (const std::string& result : fusion.results()) results.push_back(result);
    fusions.push_back(std::move(results));
  }
  return fusions;
}

// A measured value is null for a candidate that has no such measurement.
Json MeasuredCandidateJson(const v1::Candidate& candidate) {
  const bool ok = candidate.outcome() == v1::OK;
  Json json = {
      {"rank", candidate.rank()},
      {"outcome", v1::Outcome_Name(candidate.outcome())},
      {"fusions", FusionsJson(candidate)},
      {"predicted_rank", candidate.predicted_rank()},
      {"predicted_seconds", candidate.predicted_seconds()},
      {"measured_seconds", ok && candidate.has_measured() ? StatisticsJson(candidate.measured()) : Json()},
      {"speedup", ok && candidate.has_measured() ? Json(candidate.speedup()) : Json()},
      {"tie", candidate.tie()},
      {"max_relative_error", ok ? Json(candidate.max_relative_error()) : Json()},
      {"kernels", KernelsJson(candidate)},
      {"warm_seconds", ok && candidate.has_warm() ? StatisticsJson(candidate.warm()) : Json()},
      {"cold_seconds", ok && candidate.has_cold() ? StatisticsJson(candidate.cold()) : Json()},
      {"tolerance", candidate.tolerance()},
      {"below_floor", candidate.below_floor()},
      {"key", candidate.key()},
      {"description", candidate.description()},
      {"steady", ok ? Json(candidate.steady()) : Json()}};
  if (!candidate.message().empty()) json["message"] = candidate.message();
  if (!candidate.asserted().empty()) json["asserted"] = candidate.asserted();
  for (const auto& [name, value] : candidate.parameters()) json["parameters"][name] = value;
  return json;
}

Json StatusJson(const absl::Status& status) {
  Json violations = Json::array();
  for (const auto& violation : FieldViolations(status))
    violations.push_back({{"field", violation.field()}, {"description", violation.description()}});
  return {{"code", absl::StatusCodeToString(status.code())},
          {"message", std::string(status.message())},
          {"violations", std::move(violations)}};
}

void AddResult(const v1::JobResult& result, Json* json) {
  // Absent where both are false: then all times are measured, on a device that is there.
  if (result.predicted()) (*json)["predicted"] = true;
  if (result.device().driver_version() == kSimulatedDriver) (*json)["simulated"] = true;
  (*json)["device"] = DeviceJson(result.device());
  (*json)["device"]["copy_spread"] = result.device().copy_spread();
  (*json)["graph"] = GraphJson(result.graph());
  (*json)["search"] = SearchJson(result.search());
  (*json)["floor"] = {{"bytes", result.floor_bytes()}, {"seconds", result.floor_seconds()}};
  (*json)["unfused"] = {
      {"measured_seconds", StatisticsJson(result.unfused())},
      {"warm_seconds", result.has_unfused_warm() ? StatisticsJson(result.unfused_warm()) : Json()},
      {"cold_seconds", result.has_unfused_cold() ? StatisticsJson(result.unfused_cold()) : Json()}};
  (*json)["candidates"] = Json::array();
  for (const v1::Candidate& candidate : result.candidates())
    (*json)["candidates"].push_back(MeasuredCandidateJson(candidate));
}

void AddRun(const v1::JobResult& result, Json* json) {
  const v1::MeasurementConditions& conditions = result.conditions();
  // measured_seconds and speedup hold for this state of the caches.
  (*json)["cache"] = result.cache() == v1::WARM ? "warm" : "cold";
  (*json)["builds"] = result.builds();
  (*json)["builds_reused"] = result.builds_reused();
  (*json)["seconds"] = result.seconds();
  if (result.has_routines())
    (*json)["routines"] = {{"known", result.routines().known()},
                           {"measured", result.routines().measured()},
                           {"seconds", result.routines().seconds()}};
  (*json)["conditions"] = {{"driver_version", conditions.driver_version()},
                           {"sm_clock_mhz", conditions.sm_clock_mhz()},
                           {"memory_clock_mhz", conditions.memory_clock_mhz()},
                           {"throttle_reasons", conditions.throttle_reasons()},
                           {"temperature_celsius", conditions.temperature_celsius()},
                           {"processor_mhz", conditions.processor_mhz()},
                           {"load", conditions.load()},
                           {"stolen_share", conditions.stolen_share()}};
  (*json)["unreliable"] = result.unreliable();
  (*json)["remarks"] = Json::array();
  for (const std::string& remark : result.remarks()) (*json)["remarks"].push_back(remark);
}

Json JobHeader(const v1::Job& job) {
  Json header = {{"job", job.name()},
                 {"state", v1::JobState_Name(job.state())},
                 {"target", TargetName(job.target())},
                 {"create_time", TimeText(job.create_time())},
                 {"update_time", TimeText(job.update_time())},
                 {"graph", GraphJson(job.graph())}};
  if (!job.stage().empty()) header["stage"] = job.stage();
  if (!job.waits_for().empty()) header["waits_for"] = job.waits_for();
  if (job.best().seconds() > 0)
    header["best"] = {{"seconds", job.best().seconds()},
                      {"speedup", job.best().predicted() ? Json() : Json(job.best().speedup())},
                      {"predicted", job.best().predicted()}};
  return header;
}

}  // namespace

Json SubmitJson(const v1::Job& job, const std::string& artifact) {
  Json json = {{"schema", "fusion.submit/1"}, {"job", job.name()}, {"state", v1::JobState_Name(job.state())}};
  if (!job.waits_for().empty()) json["waits_for"] = job.waits_for();
  if (job.has_error()) {
    json["error"] = StatusJson(FromRpcStatus(job.error()));
  } else if (job.has_result()) {
    AddResult(job.result(), &json);
    json["artifact"] = artifact.empty() ? Json() : Json(artifact);
    AddRun(job.result(), &json);
  }
  return json;
}

Json JobJson(const v1::Job& job) {
  Json json = {{"schema", "fusion.job/1"}};
  json.update(JobHeader(job));
  if (job.has_error()) json["error"] = StatusJson(FromRpcStatus(job.error()));
  if (job.has_result() && IsBenchmark(job.result())) {
    json["benchmark"] = BenchmarkJson(job);
  } else if (job.has_result()) {
    AddResult(job.result(), &json);
    AddRun(job.result(), &json);
  }
  return json;
}

Json JobListJson(const v1::ListJobsResponse& response) {
  Json jobs = Json::array();
  for (const v1::Job& job : response.jobs()) {
    jobs.push_back(JobHeader(job));
    if (job.has_error()) jobs.back()["error"] = StatusJson(FromRpcStatus(job.error()));
  }
  return {{"schema", "fusion.jobs/1"}, {"jobs", std::move(jobs)}};
}

Json EstimatesJson(const v1::Candidate& candidate) {
  Json estimates = Json::array();
  for (const v1::KernelEstimate& kernel : candidate.estimates())
    estimates.push_back({{"description", kernel.description()},
                         {"seconds", kernel.seconds()},
                         {"memory_seconds", kernel.memory_seconds()},
                         {"compute_seconds", kernel.compute_seconds()},
                         {"alone_seconds", kernel.alone_seconds()},
                         {"waiting_seconds", kernel.waiting_seconds()},
                         {"barrier_seconds", kernel.barrier_seconds()},
                         {"launch_seconds", kernel.launch_seconds()},
                         {"correction", kernel.correction()},
                         {"measured", kernel.measured()},
                         {"bytes", kernel.bytes()},
                         {"flops", kernel.flops()},
                         {"occupancy", kernel.occupancy()},
                         {"waves", kernel.waves()},
                         {"load", kernel.load()},
                         {"registers", kernel.registers()},
                         {"shared_bytes", kernel.shared_bytes()},
                         {"measured_routines", kernel.measured_routines()},
                         {"extended_routines", kernel.extended_routines()}});
  return estimates;
}

Json ExplainJson(const v1::ExplainResponse& response) {
  Json candidates = Json::array();
  for (const v1::Candidate& candidate : response.candidates()) {
    candidates.push_back({{"predicted_rank", candidate.predicted_rank()},
                          {"predicted_seconds", candidate.predicted_seconds()},
                          {"fusions", FusionsJson(candidate)},
                          {"kernels", KernelsJson(candidate)},
                          {"key", candidate.key()},
                          {"description", candidate.description()},
                          {"start_seconds", candidate.start_seconds()},
                          {"estimates", EstimatesJson(candidate)}});
  }
  Json json = {{"schema", "fusion.explain/1"},
               {"graph", GraphJson(response.graph())},
               {"device", DeviceJson(response.device())},
               {"search", SearchJson(response.search())},
               {"floor", {{"bytes", response.floor_bytes()}, {"seconds", response.floor_seconds()}}},
               {"candidates", std::move(candidates)}};
  if (!response.source().empty()) json["source"] = response.source();
  if (response.has_pair()) {
    const v1::PairExplanation& pair = response.pair();
    json["why"] = {{"values", {pair.values(0), pair.values(1)}},
                   {"together", pair.together()},
                   {"text", pair.text()},
                   {"best_seconds", pair.best_seconds()},
                   {"together_seconds", pair.together_seconds() > 0 ? Json(pair.together_seconds()) : Json()},
                   {"fusion", pair.fusion()}};
  }
  return json;
}

Json CheckJson(const v1::CheckResponse& response) {
  return {{"schema", "fusion.check/1"}, {"ok", true}, {"graph", GraphJson(response.graph())}};
}

Json WorkerListJson(const v1::ListWorkersResponse& response) {
  Json workers = Json::array();
  for (const v1::Worker& worker : response.workers()) {
    Json devices = Json::array(), builds = Json::array(), problems = Json::array();
    for (const v1::DeviceDescription& device : worker.devices()) {
      devices.push_back(DeviceJson(device));
      devices.back()["uuid"] = device.uuid();  // what problems name a device by
    }
    for (const v1::BuildCapability& build : worker.builds())
      builds.push_back({{"target", TargetName(build.target())}, {"arch", build.arch()}});
    for (const v1::DeviceProblem& problem : worker.problems())
      problems.push_back({{"device_uuid", problem.device_uuid()},
                          {"reason", problem.reason()},
                          {"seconds", problem.seconds()}});
    const v1::Confinement& confinement = worker.confinement();
    workers.push_back({{"worker", worker.name()},
                       {"connected", worker.connected()},
                       {"draining", worker.draining()},
                       {"running_tasks", worker.running_tasks()},
                       {"last_contact", TimeText(worker.last_contact())},
                       {"devices", std::move(devices)},
                       {"version", worker.version()},
                       {"builds", std::move(builds)},
                       {"confinement",
                        {{"runner", confinement.runner()},
                         {"host_code", confinement.host_code()},
                         {"compiler", confinement.compiler()}}},
                       {"problems", std::move(problems)}});
  }
  return {{"schema", "fusion.workers/1"}, {"workers", std::move(workers)}};
}

Json FunctionJson(const v1::FunctionDefinition& function, const std::string& library_hash) {
  Json overloads = Json::array();
  for (const v1::OverloadDefinition& overload : function.overloads()) {
    Json operands = Json::array();
    for (const v1::OperandDefinition& operand : overload.operands())
      operands.push_back({{"name", operand.name()}, {"type", operand.type()}});
    Json implementations = Json::array();
    for (const v1::ImplementationDefinition& implementation : overload.implementations())
      implementations.push_back(v1::Granularity_Name(implementation.granularity()));
    overloads.push_back({{"form", v1::Form_Name(overload.form())},
                         {"operands", std::move(operands)},
                         {"result", overload.result()},
                         {"formula", overload.formula()},
                         {"flops", overload.flops()},
                         {"implementations", std::move(implementations)}});
  }
  return {{"schema", "fusion.function/1"},     {"name", function.name()},
          {"domain", function.domain()},       {"documentation", function.documentation()},
          {"overloads", std::move(overloads)}, {"library_hash", library_hash}};
}

Json FunctionListJson(const v1::ListFunctionsResponse& response) {
  Json functions = Json::array();
  for (const v1::FunctionDefinition& function : response.functions()) {
    Json json = FunctionJson(function, response.library_hash());
    json.erase("schema");
    json.erase("library_hash");
    functions.push_back(std::move(json));
  }
  return {{"schema", "fusion.library/1"},
          {"library_hash", response.library_hash()},
          {"functions", std::move(functions)}};
}

Json ErrorJson(const absl::Status& status) {
  return {{"schema", "fusion.error/1"}, {"error", StatusJson(status)}};
}

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

}  // namespace fusion
