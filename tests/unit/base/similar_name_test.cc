#include "base/similar_name.h"

#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

TEST(SimilarName, WithinAThirdOfTheLength) {
  EXPECT_EQ(SimilarName("gemvt", {"gemv", "gemtv", "ger"}), "gemv");
  EXPECT_EQ(SimilarName("alhpa", {"alpha", "beta"}), "alpha");
  EXPECT_EQ(SimilarName("coulmns", {"rows", "columns"}), "columns");
  EXPECT_EQ(SimilarName("rows", {"r", "columns", "elements"}), "");
}

TEST(SimilarName, ShortNamesDifferByCaseAlone) {
  EXPECT_EQ(SimilarName("M4", {"M1", "M2", "M3"}), "");
  EXPECT_EQ(SimilarName("m1", {"M2", "M1"}), "M1");
  EXPECT_EQ(SimilarName("x", {"y", "X"}), "X");
}

TEST(SimilarName, IsNotTheNameItself) { EXPECT_EQ(SimilarName("alpha", {"alpha"}), ""); }

TEST(SimilarName, TheFirstOfEquallyNear) { EXPECT_EQ(SimilarName("abcdef", {"abcdeg", "abcdeh"}), "abcdeg"); }

TEST(SimilarName, LongNamesHaveNone) {
  const std::string name(65, 'a'), other(64, 'a');
  EXPECT_EQ(SimilarName(name, {other}), "");
  EXPECT_EQ(SimilarName(other, {name}), "");
}

TEST(Shown, StaysALine) {
  EXPECT_EQ(Shown("a\nb\x01"), "a?b?");
  EXPECT_EQ(Shown(std::string(60, 'a')), std::string(60, 'a'));
  EXPECT_EQ(Shown(std::string(61, 'a')), std::string(57, 'a') + "...");
  EXPECT_EQ(Shown(std::string(56, 'a') + "éé" + std::string(9, 'b')), std::string(56, 'a') + "...");
}

TEST(DidYouMean, IsEmptyWithoutSuggestion) {
  EXPECT_EQ(DidYouMean(""), "");
  EXPECT_EQ(DidYouMean("gemv"), " (did you mean gemv?)");
}

}  // namespace
}  // namespace fusion
