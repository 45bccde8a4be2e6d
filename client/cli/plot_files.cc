#include "client/cli/plot_files.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/write_file.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

bool HoldsSvg(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string beginning(5, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  return absl::StartsWith(beginning, "<svg") || absl::StartsWith(beginning, "<?xml");
}

absl::Status CheckFolder(const std::string& directory, const char* first, const char* second) {
  std::error_code error;
  const fs::path folder(directory);
  if (!fs::exists(folder, error)) return absl::OkStatus();
  if (!fs::is_directory(folder, error))
    return absl::InvalidArgumentError(absl::StrCat(directory, ": is no folder"));
  for (const char* name : {first, second}) {
    const fs::path path = folder / name;
    if (fs::exists(path, error) && !(fs::is_regular_file(path, error) && HoldsSvg(path)))
      return absl::InvalidArgumentError(absl::StrCat(
          path.string(), ": is no plot, and would be replaced by one; move it, or choose another folder"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlotPaths> Write(const std::string& directory, const char* first,
                                const std::string& first_plot, const char* second,
                                const std::string& second_plot) {
  FUSION_RETURN_IF_ERROR(CheckFolder(directory, first, second));
  const fs::path one = fs::path(directory) / first, other = fs::path(directory) / second;
  FUSION_RETURN_IF_ERROR(WriteFile(one, first_plot));
  FUSION_RETURN_IF_ERROR(WriteFile(other, second_plot));
  return PlotPaths{one.string(), other.string()};
}

}  // namespace

absl::Status CheckPlotFolder(const std::string& directory) {
  return CheckFolder(directory, kMeasuredPlotName, kConvergencePlotName);
}

absl::StatusOr<PlotPaths> WritePlots(const v1::ReportModelResponse& report, const std::string& directory) {
  if (report.measured_plot().empty() || report.convergence_plot().empty())
    return absl::UnavailableError("the server sent no plots");
  return Write(directory, kMeasuredPlotName, report.measured_plot(), kConvergencePlotName,
               report.convergence_plot());
}

absl::Status CheckTuningPlotFolder(const std::string& directory) {
  return CheckFolder(directory, kLandscapePlotName, kConvergencePlotName);
}

absl::StatusOr<PlotPaths> WriteTuningPlots(const std::string& landscape, const std::string& convergence,
                                           const std::string& directory) {
  return Write(directory, kLandscapePlotName, landscape, kConvergencePlotName, convergence);
}

}  // namespace fusion
