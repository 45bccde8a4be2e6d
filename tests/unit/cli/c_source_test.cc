#include "client/cli/c_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/temporary_directory.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class CSourceTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(folder_->path(), "/", name);
    std::ofstream(path) << text;
    return path;
  }
  const std::unique_ptr<TemporaryDirectory> folder_ = TemporaryDirectory::Create().value();
};

TEST_F(CSourceTest, TextsWithoutMacrosStayAsTheyAre) {
  const std::string text = "#include <math.h>\n#define N 2048\n#pragma omp parallel for\nfor (;;) ;\n";
  EXPECT_EQ(ReadC(Write("a.c", text)).value(), text);
}

TEST_F(CSourceTest, MacrosAndIncludesAreReplacedAndLinesKeepTheirNumbers) {
  Write("sizes.h", "#define N 64\nint elsewhere;\n");
  const std::string path =
      Write("a.c",
            "#include \"sizes.h\"\n#include <stdio.h>\n#define AT(i, j) a[(i) * N + (j)]\n#ifdef "
            "NEVER\nnothing here\n#endif\n"
            "float a[N * N];\n#pragma omp parallel for\nfor (int i = 0; i < N; i++) AT(i, 0) = 1;\n");
  const std::string text = ReadC(path).value();
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_GE(lines.size(), 9u);
  for (std::string& line : lines) absl::StripAsciiWhitespace(&line);
  EXPECT_EQ(lines[6], "float a[64 * 64];");
  EXPECT_EQ(lines[7], "#pragma omp parallel for");
  EXPECT_EQ(lines[8], "for (int i = 0; i < 64; i++) a[(i) * 64 + (0)] = 1;");
  EXPECT_THAT(text, ::testing::Not(HasSubstr("elsewhere")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("printf")));
}

TEST_F(CSourceTest, ErrorsAreThoseOfTheCompiler) {
  EXPECT_THAT(ReadC(Write("a.c", "#include \"missing.h\"\n")).status().message(), HasSubstr("missing.h"));
  EXPECT_THAT(ReadC(folder_->path() + "/none.c").status().message(),
              HasSubstr("none.c: cannot be read: No such file"));
}

}  // namespace
}  // namespace fusion
