#include "client/cli/artifact_folder.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
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

// The files of an earlier export and the digests of what was written, "" in old manifests. A line each,
// "DIGEST  PATH" or "PATH".
std::vector<std::pair<std::string, std::string>> EarlierFiles(const fs::path& directory) {
  std::ifstream manifest(directory / kManifestName);
  std::vector<std::pair<std::string, std::string>> files;
  for (std::string line; std::getline(manifest, line);) {
    constexpr size_t kDigest = 64;
    const bool has_digest = line.size() > kDigest + 2 && line.substr(kDigest, 2) == "  ";
    std::string path = has_digest ? line.substr(kDigest + 2) : line;
    if (StaysInside(path)) files.emplace_back(std::move(path), has_digest ? line.substr(0, kDigest) : "");
  }
  return files;
}

bool WasChanged(const fs::path& path, const std::string& digest) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  return !digest.empty() && file && (content << file.rdbuf()) && Sha256Hex(content.str()) != digest;
}

}  // namespace

absl::Status CheckArtifactFolder(const std::string& directory, bool force) {
  if (directory.empty()) return absl::InvalidArgumentError("the folder to write into has no name");
  std::error_code error;
  const fs::path path(directory);
  if (!fs::exists(path, error)) {
    // A folder that cannot be made is found out before a job has run for it.
    fs::create_directories(path, error);
    if (error)
      return absl::InvalidArgumentError(absl::StrCat(directory, ": cannot be made: ", error.message()));
    fs::remove(path, error);
    return absl::OkStatus();
  }
  if (!fs::is_directory(path, error))
    return absl::InvalidArgumentError(absl::StrCat(directory, ": is no folder"));
  if (force || fs::is_empty(path, error)) return absl::OkStatus();
  if (fs::exists(path / kManifestName, error)) {
    for (const auto& [file, digest] : EarlierFiles(path))
      if (WasChanged(path / file, digest))
        return absl::InvalidArgumentError(
            absl::StrCat(directory, ": ", file,
                         " was changed since fusion-client wrote it; choose another folder, or --force"));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      directory, ": is not empty and was not written by fusion-client; choose another folder, or --force"));
}

absl::Status WriteArtifact(const v1::Artifact& artifact, const std::string& report,
                           const std::string& directory, bool force) {
  FUSION_RETURN_IF_ERROR(CheckArtifactFolder(directory, force));
  bool has_report = false;
  for (const v1::ArtifactFile& file : artifact.files()) {
    if (!StaysInside(file.path()))
      return absl::InvalidArgumentError(absl::StrCat("the exported folder has a file outside of it, \"",
                                                     file.path(), "\"; nothing was written"));
    has_report = has_report || file.path() == kReportName;
  }
  const fs::path root(directory);
  std::error_code error;
  for (const auto& [path, digest] : EarlierFiles(root)) fs::remove(root / path, error);
  std::string manifest;
  for (const v1::ArtifactFile& file : artifact.files()) {
    FUSION_RETURN_IF_ERROR(WriteFile(root / file.path(), file.content()));
    absl::StrAppend(&manifest, Sha256Hex(file.content()), "  ", file.path(), "\n");
  }
  if (!has_report && !report.empty()) {
    FUSION_RETURN_IF_ERROR(WriteFile(root / kReportName, report));
    absl::StrAppend(&manifest, Sha256Hex(report), "  ", kReportName, "\n");
  }
  return WriteFile(root / kManifestName, manifest);
}

}  // namespace fusion
