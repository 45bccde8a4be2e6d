#include "server/target/exported_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST(ExportedNamesTest, TheDefaultChangesNothing) {
  const ExportedNames names;
  EXPECT_EQ(names.name(), "fused");
  EXPECT_EQ(names.In("#include \"fused.h\" FUSED_OK"), "#include \"fused.h\" FUSED_OK");
  EXPECT_EQ(names.Kernel("fused_y_whole"), "fused_y_whole");
}

TEST(ExportedNamesTest, FilesFunctionsCodesAndTargetsHaveTheName) {
  const ExportedNames names("gelu");
  EXPECT_EQ(names.In("#include \"fused.h\"\nint fused_launch(int unfused_x);  // FUSED_OK, fused_launch."),
            "#include \"gelu.h\"\nint gelu_launch(int unfused_x);  // GELU_OK, gelu_launch.");
  EXPECT_EQ(names.In("add_library(fused STATIC fused.cc)\ntarget_link_libraries(example PRIVATE fused)"),
            "add_library(gelu STATIC gelu.cc)\ntarget_link_libraries(example PRIVATE gelu)");
  EXPECT_EQ(names.In("// Runs the fused code. FusedLayout is ours."),
            "// Runs the fused code. FusedLayout is ours.");
  EXPECT_EQ(names.Kernel("fused_y_whole"), "gelu_y_whole");
}

TEST(ExportedNamesTest, NamesBeginFunctionsAndFiles) {
  for (const char* name : {"a", "gelu", "gelu_bias2", "Gelu", "int"})
    EXPECT_TRUE(ExportedNames::Check(name).ok()) << name;
  for (const std::string& name :
       {std::string(""), std::string("2d"), std::string("_x"), std::string("x_"), std::string("a__b"),
        std::string("a b"), std::string("a.b"), std::string("../a"), std::string("\xc3\xa9t\xc3\xa9"),
        std::string(65, 'x'), std::string("example"), std::string("reference")}) {
    const absl::Status status = ExportedNames::Check(name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be called"));
  }
}

}  // namespace
}  // namespace fusion
