#include "server/optimize/library_source.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/optimize/submission.h"

namespace fusion {
namespace {

TEST(LibrarySource, HasAllFunctionsOfElements) {
  const auto catalog = *Catalog::BuiltIn();
  v1::GraphSource source;
  source.set_fuse(LibrarySource(catalog));
  const auto checked = CheckSource(source, catalog);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_TRUE(CheckBuildable(*checked->graph).ok());
  std::set<std::string> wanted, present;
  for (const v1::FunctionDefinition& function : catalog->definitions())
    for (const v1::OverloadDefinition& overload : function.overloads())
      if (overload.form() == v1::ELEMENT) wanted.insert(function.name());
  for (const Node& node : checked->graph->nodes()) present.insert(node.function->name);
  EXPECT_EQ(present, wanted);
}

}  // namespace
}  // namespace fusion
