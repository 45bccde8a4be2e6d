#include "client/cli/artifact_folder.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/write_file.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

constexpr char kReportName[] = "report.json";

// Relative, without "..", and not the manifest.
bool StaysInside(const std::string& path) {
  const fs::path relative(path);
  if (path.empty() || relative.is_absolute() || path == kManifestName) return false;
  for (const fs::path& part : relative)
    if (part == ".." || part.empty()) return false;
  return true;
}

void RemoveEarlierExport(const fs::path& directory) {
  std::ifstream manifest(directory / kManifestName);
  std::error_code error;
  for (std::string path; std::getline(manifest, path);)
    if (StaysInside(path)) fs::remove(directory / path, error);
}

}  // namespace

absl::Status CheckArtifactFolder(const std::string& directory, bool force) {
  std::error_code error;
  const fs::path path(directory);
  if (!fs::exists(path, error)) return absl::OkStatus();
  if (!fs::is_directory(path, error))
    return absl::InvalidArgumentError(absl::StrCat(directory, ": is no folder"));
  if (force || fs::exists(path / kManifestName, error) || fs::is_empty(path, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      directory, ": is not empty and was not written by fusion-client; choose another folder, or --force"));
}

absl::Status WriteArtifact(const v1::Artifact& artifact, const std::string& report,
                           const std::string& directory, bool force) {
  if (absl::Status status = CheckArtifactFolder(directory, force); !status.ok()) return status;
  bool has_report = false;
  for (const v1::ArtifactFile& file : artifact.files()) {
    if (!StaysInside(file.path()))
      return absl::InvalidArgumentError(absl::StrCat("the exported folder has a file outside of it, \"",
                                                     file.path(), "\"; nothing was written"));
    has_report = has_report || file.path() == kReportName;
  }
  const fs::path root(directory);
  RemoveEarlierExport(root);
  std::string manifest;
  for (const v1::ArtifactFile& file : artifact.files()) {
    if (absl::Status status = WriteFile(root / file.path(), file.content()); !status.ok()) return status;
    absl::StrAppend(&manifest, file.path(), "\n");
  }
  if (!has_report && !report.empty()) {
    if (absl::Status status = WriteFile(root / kReportName, report); !status.ok()) return status;
    absl::StrAppend(&manifest, kReportName, "\n");
  }
  return WriteFile(root / kManifestName, manifest);
}

}  // namespace fusion
