#include "client/cli/write_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace fusion {

absl::Status WriteFile(const std::filesystem::path& path, const std::string& content) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat(path.parent_path().string(), ": cannot be created: ", error.message()));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file)
    return absl::UnavailableError(absl::StrCat(path.string(), ": cannot be written: ", std::strerror(errno)));
  return absl::OkStatus();
}

}  // namespace fusion
