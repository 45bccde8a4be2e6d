#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

std::string BadByteAt(const std::string& text) {
  const auto bad = FindBadByte(text);
  return bad ? absl::StrCat(bad->position.line, ":", bad->position.column, " ", absl::Hex(bad->byte))
             : "none";
}

TEST(FindBadByte, AcceptsAllLengths) {
  EXPECT_EQ(BadByteAt(""), "none");
  EXPECT_EQ(BadByteAt("a\x7F"), "none");
  EXPECT_EQ(
      BadByteAt("\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"),
      "none");
}

TEST(FindBadByte, PositionOfTheFirst) {
  EXPECT_EQ(BadByteAt("ab\n\xC3\xA9\xE9"), "2:2 e9");
  EXPECT_EQ(BadByteAt("\x80"), "1:1 80");
  EXPECT_EQ(BadByteAt("a\xC0\x80"), "1:2 c0");         // overlong
  EXPECT_EQ(BadByteAt("\xE0\x9F\xBF"), "1:1 e0");      // overlong
  EXPECT_EQ(BadByteAt("\xF0\x8F\xBF\xBF"), "1:1 f0");  // overlong
  EXPECT_EQ(BadByteAt("\xED\xA0\x80"), "1:1 ed");      // surrogate
  EXPECT_EQ(BadByteAt("\xF4\x90\x80\x80"), "1:1 f4");  // over U+10FFFF
  EXPECT_EQ(BadByteAt("\xF5\x80\x80\x80"), "1:1 f5");
  EXPECT_EQ(BadByteAt("ab\xE2\x82"), "1:3 e2");  // cut off
  EXPECT_EQ(BadByteAt("\xE2\x82z"), "1:1 e2");
}

}  // namespace
}  // namespace fusion
