// The text of a graph or of an example, as a client submits it.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "fusion/v1/graph.pb.h"
#include "tests/folders.h"

namespace fusion::testing {

inline v1::GraphSource TextSource(const std::string& fuse, const std::string& file_name = "test.fuse") {
  v1::GraphSource source;
  source.set_fuse(fuse);
  source.set_file_name(file_name);
  return source;
}

// `folder`: in the source tree.
inline v1::GraphSource ExampleSource(const std::string& name, const std::string& folder = "examples") {
  std::ostringstream text;
  text << std::ifstream(testing::SourceFolder() + "/" + folder + "/" + name + ".fuse", std::ios::binary)
              .rdbuf();
  return TextSource(text.str(), name + ".fuse");
}

}  // namespace fusion::testing
