#include "server/upkeep/data_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "db/store/database_file.h"

namespace fusion {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string DefaultDataDirectory() {
  if (std::string directory = Environment("FUSION_DATA_DIR"); !directory.empty()) return directory;
  if (std::string directory = Environment("XDG_DATA_HOME"); !directory.empty())
    return absl::StrCat(directory, "/fusion");
  if (std::string home = Environment("HOME"); !home.empty())
    return absl::StrCat(home, "/.local/share/fusion");
  std::error_code error;
  std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  return absl::StrCat(error ? "/tmp" : temporary.string(), "/fusion-", getuid());
}

absl::Status PrepareDataDirectory(const std::string& directory) {
  constexpr char kAdvice[] = "; choose another with --data or FUSION_DATA_DIR";
  std::error_code error;
  const bool created = std::filesystem::create_directories(directory, error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat("cannot create the data directory ", directory, ": ", error.message(), kAdvice));
  if (created) std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  if (access(directory.c_str(), R_OK | W_OK | X_OK) != 0)
    return absl::UnavailableError(
        absl::StrCat("cannot use the data directory ", directory, ": ", std::strerror(errno), kAdvice));
  return absl::OkStatus();
}

absl::Status PrepareDumpDirectory(const std::string& directory) {
  if (directory.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error && access(directory.c_str(), W_OK | X_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  return error ? absl::InvalidArgumentError(
                     absl::StrCat("--dump-dir: ", directory, " cannot be written to: ", error.message()))
               : absl::OkStatus();
}

bool DataDirectoryInUse(const std::string& directory) { return DatabaseInUse(DatabasePath(directory)); }

std::string DatabasePath(const std::string& directory) { return absl::StrCat(directory, "/fusion.db"); }

}  // namespace fusion
