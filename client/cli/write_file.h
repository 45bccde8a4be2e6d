// Files on the user's disk.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace fusion {

// Replaces the file; its folder is created with its parents. Unavailable: the disk refuses; the message names
// the path.
absl::Status WriteFile(const std::filesystem::path& path, const std::string& content);

}  // namespace fusion
