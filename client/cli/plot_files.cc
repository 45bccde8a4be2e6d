#include "client/cli/plot_files.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

}  // namespace

absl::Status CheckPlotFolder(const std::string& directory) {
  std::error_code error;
  const fs::path folder(directory);
  if (!fs::exists(folder, error)) return absl::OkStatus();
  if (!fs::is_directory(folder, error)) return absl::InvalidArgumentError(absl::StrCat(directory, ": is no folder"));
  for (const char* name : {kMeasuredPlotName, kConvergencePlotName}) {
    const fs::path path = folder / name;
    if (fs::exists(path, error) && !(fs::is_regular_file(path, error) && HoldsSvg(path)))
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), ": is no plot, and would be replaced by one; move it, or choose another folder"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlotPaths> WritePlots(const v1::ReportModelResponse& report, const std::string& directory) {
  if (report.measured_plot().empty() || report.convergence_plot().empty())
    return absl::UnavailableError("the server sent no plots");
  if (absl::Status status = CheckPlotFolder(directory); !status.ok()) return status;
  const fs::path folder(directory);
  const fs::path measured = folder / kMeasuredPlotName, convergence = folder / kConvergencePlotName;
  if (absl::Status status = WriteFile(measured, report.measured_plot()); !status.ok()) return status;
  if (absl::Status status = WriteFile(convergence, report.convergence_plot()); !status.ok()) return status;
  return PlotPaths{measured.string(), convergence.string()};
}

}  // namespace fusion
