// The graphs of examples/, as a client submits them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "library/catalog/catalog.h"
#include "server/service/submission.h"

namespace fusion::testing {

// Names without ".fuse", sorted.
inline std::vector<std::string> ExampleNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(FUSION_SOURCE_DIR "/examples"))
    if (entry.path().extension() == ".fuse") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// At the sizes of the file. `folder`: in the source tree.
inline absl::StatusOr<CheckedSource> CheckExample(const std::string& name, const std::string& folder = "examples") {
  std::ostringstream text;
  text << std::ifstream(FUSION_SOURCE_DIR "/" + folder + "/" + name + ".fuse").rdbuf();
  v1::GraphSource source;
  source.set_fuse(text.str());
  source.set_file_name(name + ".fuse");
  absl::StatusOr<std::shared_ptr<const Catalog>> catalog = Catalog::BuiltIn();
  if (!catalog.ok()) return catalog.status();
  return CheckSource(source, *catalog);
}

// For INSTANTIATE_TEST_SUITE_P.
inline std::string ExampleTestName(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace fusion::testing
