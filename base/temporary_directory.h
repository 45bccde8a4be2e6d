// Folders that go with their contents.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// A new folder for temporary files that is removed with everything in it by the destructor.
class TemporaryDirectory {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryDirectory>> Create();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path);
  const std::string path_;
};

}  // namespace fusion
