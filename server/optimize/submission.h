// Checks what clients send, before anything is stored or searched.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "library/catalog/catalog.h"
#include "server/graph/graph.h"
#include "server/target/device_description.h"

namespace fusion {

// A source that parses and type checks, with its sizes.
struct Submission {
  std::shared_ptr<const Graph> graph;
  SizeValues sizes;
  v1::GraphSummary summary;
  std::map<std::string, double> tolerances;  // those asked for, by output
  std::string code_name;                     // of the exported code; "": ExportedNames::kDefault
};

// InvalidArgument has a google.rpc.BadRequest payload: every error of the source, or else every error of the
// sizes.
absl::StatusOr<Submission> CheckSource(const v1::GraphSource& source, std::shared_ptr<const Catalog> catalog);

// Checks a submission likewise, with the tolerances that it asks for. InvalidArgument lists all tolerances
// that are no numbers above 0, or of no output.
absl::StatusOr<Submission> CheckSubmission(const v1::SubmitRequest& request,
                                           std::shared_ptr<const Catalog> catalog);

// Returns bounds on the relative errors of the outputs, in their order: as asked, else as they follow from
// the graph.
std::vector<double> TolerancesOf(const Submission& submission);

// Returns what was asked of the data and of the tolerances, for people who read the result, a line each.
std::vector<std::string> RemarksOf(const Submission& submission);

// The largest graph that is submitted has so many nodes. Beside the candidates each node is built by itself,
// as the reference and to be the unfused cover; the search alone (explain) takes kMaxSearchedNodes.
inline constexpr int kMaxSubmittedNodes = 2000;
// Returns InvalidArgument when the graph has more, at once instead of by a failed job.
absl::Status CheckBuildable(const Graph& graph);

// Returns whether any function of the graph is of elements: only these have tables of routine times.
bool HasElements(const Graph& graph);
// Returns InvalidArgument when none is.
absl::Status CheckBenchmark(const Graph& graph);

inline constexpr int kMaximumCandidates = 1000;

// Returns InvalidArgument naming the field: candidates out of range, time limit that is negative or no
// number, cache that is no state, arch that is no name of an architecture of the target (it becomes a
// compiler option), request_id too long.
absl::Status CheckRequestFields(const v1::SubmitRequest& request);
absl::Status CheckRequestFields(const v1::ExplainRequest& request);

// Returns InvalidArgument when the inputs, outputs, intermediate results and the f64 reference cannot all be
// in the device's memory; it says what is needed and what there is. This is checked before anything is built.
absl::Status CheckDeviceMemory(const Submission& submission, const DeviceDescription& device);

// Returns the sizes as in "m=4093,n=5001".
std::string SizesText(const SizeValues& sizes);

}  // namespace fusion
