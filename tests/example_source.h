// The text of an example, as a client submits it.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "fusion/v1/graph.pb.h"

namespace fusion::testing {

// `folder`: in the source tree.
inline v1::GraphSource ExampleSource(const std::string& name, const std::string& folder = "examples") {
  std::ostringstream text;
  text << std::ifstream(FUSION_SOURCE_DIR "/" + folder + "/" + name + ".fuse", std::ios::binary).rdbuf();
  v1::GraphSource source;
  source.set_fuse(text.str());
  source.set_file_name(name + ".fuse");
  return source;
}

}  // namespace fusion::testing
