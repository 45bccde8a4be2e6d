#include "server/parse/recursion.h"

#include "absl/strings/str_cat.h"
#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::TextErrors;

TEST(Recursion, OfOneCall) {
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = add(y, x);\nreturn y;\n"),
            "f.fuse:3:9: error: recursion: y is used to compute itself; give the new value a new name");
}

TEST(Recursion, OfThreeCallsIsReportedOnce) {
  EXPECT_EQ(
      TextErrors("SCALAR x, a, b, c, d;\ninput x;\na = add(x, c);\nb = neg(a);\nc = add(b, d);\nd = neg(x);\n"
                 "return c;\n"),
      "f.fuse:3:12: error: recursion: a needs c, c needs b, b needs a\n"
      "f.fuse:5:12: error: d is used before it is computed at line 6; move its computation up");
}

TEST(Recursion, TwoCyclesAreTwoErrors) {
  EXPECT_EQ(
      TextErrors("SCALAR a, b, c, d;\na = neg(b);\nb = add(a, a);\nc = neg(d);\nd = add(c, b);\nreturn d;\n"),
      "f.fuse:2:9: error: recursion: a needs b, b needs a\n"
      "f.fuse:4:9: error: recursion: c needs d, d needs c");
}

TEST(Recursion, LongCyclesAreCut) {
  std::string text = "SCALAR x0";
  for (int i = 1; i < 20000; ++i) absl::StrAppend(&text, ", x", i);
  absl::StrAppend(&text, ";\n");
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&text, "x", i, " = neg(x", (i + 1) % 20000, ");\n");
  absl::StrAppend(&text, "return x0;\n");
  EXPECT_EQ(TextErrors(text),
            "f.fuse:2:10: error: recursion: x0 needs x1, x1 needs x2, x2 needs x3, x3 needs x4, x4 needs x5, "
            "x5 needs x6 and so on back to x0");
}

}  // namespace
}  // namespace fusion
