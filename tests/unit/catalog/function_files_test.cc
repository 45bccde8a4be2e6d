#include "library/catalog/function_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "library/catalog/embedded_files.h"
#include "tests/folders.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kDescription[] = R"(name: "twice"
domain: "mine"
documentation: "Two times x."
overloads {
  form: ENTRYWISE
  operands { name: "x" type: "any" }
  result: "any"
  formula: "y = 2 * x"
  routine: "twice_map"
  flops: "1"
}
)";
constexpr char kSource[] = "template <class T>\nFUSION_FN T twice_map(T x) {\n  return T(2) * x;\n}\n";

std::string ErrorOfChange(std::string description, const std::string& from, const std::string& to,
                          const std::string& folder = "functions/mine/twice") {
  size_t at = description.find(from);
  EXPECT_NE(at, std::string::npos);
  description.replace(at, from.size(), to);
  absl::StatusOr<v1::FunctionDefinition> definition = ParseFunctionFiles({folder, description, kSource});
  EXPECT_EQ(definition.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(definition.status().message());
}

TEST(ParseFunctionFilesTest, PutsTheRoutinesIntoTheDefinition) {
  absl::StatusOr<v1::FunctionDefinition> definition =
      ParseFunctionFiles({"functions/mine/twice", kDescription, kSource});
  ASSERT_TRUE(definition.ok()) << definition.status();
  EXPECT_EQ(definition->name(), "twice");
  EXPECT_EQ(definition->source(), kSource);
}

// Lines and columns count from 1.
TEST(ParseFunctionFilesTest, ErrorsNameFileLineAndColumn) {
  EXPECT_THAT(ErrorOfChange(kDescription, "form: ENTRYWISE", "form: \"ENTRYWISE\""),
              StartsWith("functions/mine/twice/function.textproto:5:9: "));
  EXPECT_THAT(ErrorOfChange(kDescription, "flops:", "flop:"),
              StartsWith("functions/mine/twice/function.textproto:10:7: "));
  EXPECT_EQ(ErrorOfChange(kDescription, "\"twice_map\"", "\"thrice_map\""),
            "functions/mine/twice/function.textproto:9:3: function \"twice\", overload 1: routine "
            "\"thrice_map\" is not "
            "defined in the source (routines.h)");
  EXPECT_THAT(
      ErrorOfChange(kDescription, "type: \"any\"", "type: \"vector[i]\""),
      StartsWith("functions/mine/twice/function.textproto:6:3: function \"twice\", overload 1: operand x"));
  // Where a field is missing, the place of what should contain it.
  EXPECT_THAT(
      ErrorOfChange(kDescription, "flops: \"1\"", ""),
      StartsWith("functions/mine/twice/function.textproto:4:1: function \"twice\", overload 1: flops"));
}

TEST(ParseFunctionFilesTest, FolderNamesMustFit) {
  EXPECT_THAT(ErrorOfChange(kDescription, "twice", "twice", "functions/mine/double"),
              HasSubstr(":1:1: the name must be that of the folder, \"double\", but it is \"twice\""));
  EXPECT_THAT(ErrorOfChange(kDescription, "twice", "twice", "functions/yours/twice"),
              HasSubstr(":2:1: the domain must be that of the folder, \"yours\", but it is \"mine\""));
}

TEST(ParseFunctionFilesTest, SourceBelongsIntoItsOwnFile) {
  EXPECT_THAT(ErrorOfChange(kDescription, "domain:", "source: \"int x;\"\ndomain:"),
              HasSubstr(":2:1: in the library folder the source stands in routines.h"));
}

TEST(ReadFunctionDirectoryTest, ReadsWhatIsEmbedded) {
  absl::StatusOr<std::vector<FunctionFiles>> read =
      ReadFunctionDirectory(testing::SourceFolder() + "/library/functions");
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<FunctionFiles> embedded = EmbeddedFunctionFiles();
  ASSERT_EQ(read->size(), embedded.size());
  EXPECT_GT(embedded.size(), 70u);
  for (size_t i = 0; i < embedded.size(); ++i) {
    EXPECT_EQ((*read)[i].description, embedded[i].description);
    EXPECT_EQ((*read)[i].source, embedded[i].source);
    EXPECT_THAT((*read)[i].folder, ::testing::EndsWith(embedded[i].folder));
  }
}

TEST(ReadFunctionDirectoryTest, MissingDirectory) {
  EXPECT_EQ(ReadFunctionDirectory("/nonexistent/functions").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fusion
