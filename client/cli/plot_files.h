// The plots of `model report` and `tune show` on the user's disk.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"

namespace fusion {

inline constexpr char kMeasuredPlotName[] = "predicted_vs_measured.svg";
inline constexpr char kConvergencePlotName[] = "convergence.svg";

// Ok when WritePlots(report, directory) may write: the folder is absent, or what it has under the two names
// are SVG or XML documents, which are replaced. InvalidArgument otherwise; the message says what to do.
absl::Status CheckPlotFolder(const std::string& directory);

struct PlotPaths {
  std::string measured, convergence;
};
// Writes both plots into the folder, which is created with its parents. InvalidArgument: as CheckPlotFolder;
// nothing is written then. Unavailable: the report has no plots, or the disk refuses.
absl::StatusOr<PlotPaths> WritePlots(const v1::ReportModelResponse& report, const std::string& directory);

// These do the same for the plots of `tune show`.
inline constexpr char kLandscapePlotName[] = "landscape.svg";
absl::Status CheckTuningPlotFolder(const std::string& directory);
absl::StatusOr<PlotPaths> WriteTuningPlots(const std::string& landscape, const std::string& convergence,
                                           const std::string& directory);

}  // namespace fusion
