// Makes what the program prints from protocol messages: JSON objects and text for people. Pure functions: no
// input, no output, no clock. Thread safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "fusion/v1/admin.pb.h"
#include "fusion/v1/optimizer.pb.h"

namespace fusion {

using Json = nlohmann::ordered_json;

// --- JSON. Every object carries "schema": "fusion.<command>/1". Times are seconds, sizes bytes. ---

// The object of `submit --json`. `artifact`: the folder written, "" (printed as null) when there is none. A
// job that did not succeed has "error" {"code", "message", "violations"} and no results.
Json SubmitJson(const v1::Job& job, const std::string& artifact);
Json ExplainJson(const v1::ExplainResponse& response);
Json CheckJson(const v1::CheckResponse& response);
Json JobJson(const v1::Job& job);
Json JobListJson(const v1::ListJobsResponse& response);
Json WorkerListJson(const v1::ListWorkersResponse& response);
// {"schema": "fusion.tokens/1", "tokens": [...]}
Json TokenListJson(const v1::ListTokensResponse& response);
// {"schema": "fusion.token/1", ...}; with "secret" when it was just made.
Json TokenJson(const v1::Token& token, const std::string& secret);
// {"schema": "fusion.audit/1", "entries": [...]}
Json AuditJson(const v1::ListAuditEntriesResponse& response);
Json FunctionListJson(const v1::ListFunctionsResponse& response);
Json FunctionJson(const v1::FunctionDefinition& function, const std::string& library_hash);
Json ModelResetJson(const v1::ResetModelResponse& forgotten);
// The plots come as the paths of their files, "" (printed as null) when there are none.
Json ModelReportJson(const v1::ReportModelResponse& report, const std::string& measured_plot,
                     const std::string& convergence_plot);
// {"schema": "fusion.library_bench/1", ...} of a finished benchmark.
Json BenchmarkJson(const v1::Job& job);
// {"schema": "fusion.error/1", "error": {"code", "message", "violations": [{"field", "description"}]}}
Json ErrorJson(const absl::Status& status);
// Two spaces of indent, a line end at the end; bytes that are not UTF-8 are replaced.
std::string JsonText(const Json& json);

// --- Text ---

struct TextStyle {
  bool color = false;
  int width = 0;     // columns of the terminal; 0: unlimited
  bool all = false;  // every candidate, not the first ten
};

// Returns whether the result is that of a benchmark of routines.
bool IsBenchmark(const v1::JobResult& result);
// A line for each routine.
std::string BenchmarkText(const v1::JobResult& result, const TextStyle& style);
// Device, floor, search and the ranked table of a finished job; or BenchmarkText.
std::string ResultText(const v1::JobResult& result, const TextStyle& style);
// The line "jobs/x  SUCCEEDED ..." and what follows from the state: error or result.
std::string JobText(const v1::Job& job, const TextStyle& style);
std::string JobListText(const v1::ListJobsResponse& response, const TextStyle& style);
std::string WorkerListText(const v1::ListWorkersResponse& response, const TextStyle& style);
// "connected", "draining" or "lost"
std::string WorkerStateText(const v1::Worker& worker);
// "taken out for 95.00 s: its probe failed"; "": the device is in order.
std::string ProblemText(const v1::Worker& worker, const v1::DeviceDescription& device);
// Returns whether the worker has no compiler. Workers of an earlier version, which do not say theirs, build
// whatever their devices need.
bool BuildsNothing(const v1::Worker& worker);
// "builds cuda, host x86-64-avx512"; without a device "builds only: cuda".
std::string BuildsText(const v1::Worker& worker);
// States are judged at `now`, in seconds since 1970.
std::string TokenListText(const v1::ListTokensResponse& response, int64_t now, const TextStyle& style);
std::string AuditText(const v1::ListAuditEntriesResponse& response, const TextStyle& style);
std::string FunctionListText(const v1::ListFunctionsResponse& response, const TextStyle& style);
std::string FunctionText(const v1::FunctionDefinition& function);
std::string ModelResetText(const v1::ResetModelResponse& forgotten);
// A line for each graph, and what they say together in words.
std::string ModelReportText(const v1::ReportModelResponse& report, const TextStyle& style);
// "OK: function1, 9 nodes, elements = 31744, sha256:..."
std::string CheckText(const v1::CheckResponse& response);
// "NVIDIA H200 (cuda, sm_90), copies at 4.251 TB/s"
std::string DeviceText(const v1::DeviceDescription& device);
// "{M1 v1 s1}{M2 M3 F}"
std::string FusionsText(const v1::Candidate& candidate);
// "cuda", "host", "auto"
std::string TargetName(v1::Target target);
// "2024-05-01T12:00:00Z"; absent: "".
std::string TimeText(const google::protobuf::Timestamp& time);

}  // namespace fusion
