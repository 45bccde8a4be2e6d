// The host code of an exported folder: workspace layout, argument checks, launches. Internal to
// server/codegen.
#pragma once

#include <string>
#include <vector>

#include "server/graph/graph.h"
#include "server/lowering/fusion_code.h"
#include "server/target/exported_names.h"
#include "server/target/target.h"

namespace fusion {

struct LaunchCodeOptions {
  const Target& target;
  bool force_f64 = false;
  bool reference = false;  // fused_reference: static kernels called reference_*, workspace allocated inside
  ExportedNames names;
};

// Returns the code of fused_error_string, fused_workspace_bytes, fused_launch and, where the target has one,
// fused_graph; or of fused_reference.
std::string PrintLaunchCode(const Graph& graph, const std::vector<const FusionCode*>& fusions,
                            const LaunchCodeOptions& options);

// Returns "const float* A, float alpha, float* F, int64_t n_m, void* workspace, size_t workspace_bytes": the
// parameters of fused_launch but for the last (ExportedWords::last_parameter).
std::string LaunchParameters(const Graph& graph);
// Returns those of fused_reference: in f64, and the trial (library/verification/exported_checks.h).
std::string ReferenceParameters(const Graph& graph);
// Returns "int64_t n_m, int64_t n_n" where `before` each is "int64_t ".
std::string SizeList(const Graph& graph, const std::string& before = "");
// Returns the name of an input or output as a parameter that is declared in fused.h: with an underscore
// behind it where C, C++ or a macro has a meaning for it or another parameter is called so. Definitions have
// parameters of other names, all of which begin with v_, n_ or another prefix of their kind, so that nothing
// that a person calls something hides a name that the code needs.
std::string ParameterName(const Value& value);
// Returns "n_m", or a constant.
std::string ExtentText(const Extent& extent);
// Returns the entries of a value as text over n_<size>: "n_m * n_n", "n_elements * 9", "1".
std::string EntriesText(const Value& value);
// Returns the conditions by which leading dimensions are too small: "n_lda < n_n", each once.
std::vector<std::string> ShortRows(const Graph& graph);

}  // namespace fusion
