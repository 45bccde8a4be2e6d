// A graph from the text of a .fuse file, as the tests of the search need it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/parse/parse.h"
#include "tests/example_source.h"

namespace fusion::testing {

inline std::shared_ptr<const Graph> ParsedText(const std::string& text) {
  auto graph = ParseSource(TextSource(text), *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status() << text;
  return *graph;
}

}  // namespace fusion::testing
