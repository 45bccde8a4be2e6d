// The graphs of examples/, as a client submits them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "library/catalog/catalog.h"
#include "server/optimize/submission.h"
#include "tests/example_source.h"
#include "tests/folders.h"

namespace fusion::testing {

// Names without ".fuse", sorted.
inline std::vector<std::string> ExampleNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(testing::SourceFolder() + "/examples"))
    if (entry.path().extension() == ".fuse") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// At the sizes of the file. `folder`: in the source tree.
inline absl::StatusOr<Submission> CheckExample(const std::string& name,
                                               const std::string& folder = "examples") {
  absl::StatusOr<std::shared_ptr<const Catalog>> catalog = Catalog::BuiltIn();
  if (!catalog.ok()) return catalog.status();
  return CheckSource(ExampleSource(name, folder), *catalog);
}

// For INSTANTIATE_TEST_SUITE_P.
inline std::string ExampleTestName(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace fusion::testing
