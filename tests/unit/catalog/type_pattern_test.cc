#include "library/catalog/type_pattern.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

const std::vector<Dimension> kDimensions = {{"i", v1::PARALLEL}, {"j", v1::REDUCTION}};

TEST(TypePatternTest, RoundTrip) {
  for (const char* text : {"any", "scalar", "vector[i]", "vector[j]", "matrix[i,j]", "matrix[j,i]", "SCALAR",
                           "VECTOR<n>", "MATRIX<r,c>", "MATRIX<3,3>", "VECTOR<32>"}) {
    absl::StatusOr<TypePattern> pattern = ParseTypePattern(text, kDimensions);
    ASSERT_TRUE(pattern.ok()) << pattern.status();
    EXPECT_EQ(TypePatternToString(*pattern, kDimensions), text);
  }
}

TEST(TypePatternTest, Kinds) {
  EXPECT_EQ(ParseTypePattern("any", {})->kind, TypePattern::Kind::kAny);
  EXPECT_EQ(ParseTypePattern("scalar", {})->kind, TypePattern::Kind::kCollection);
  EXPECT_EQ(ParseTypePattern("SCALAR", {})->kind, TypePattern::Kind::kElement);
  EXPECT_EQ(ParseTypePattern("matrix[j,i]", kDimensions)->dimensions, (std::vector<int>{1, 0}));
  EXPECT_EQ(ParseTypePattern("MATRIX< r, 3 >", {})->shape, (std::vector<std::string>{"r", "3"}));
}

TEST(TypePatternTest, Errors) {
  for (const char* text : {"", "vector", "vector[]", "vector[q]", "vector[i,j]", "matrix[i]", "matrix[i,i]",
                           "vector<i>", "VECTOR[3]", "VECTOR<>", "VECTOR<0>", "VECTOR<33>", "VECTOR<-1>",
                           "VECTOR<1x>", "MATRIX<3>", "vector[i", "vectori]", "Any", "tensor[i,j]"}) {
    absl::StatusOr<TypePattern> pattern = ParseTypePattern(text, kDimensions);
    EXPECT_EQ(pattern.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(
      ParseTypePattern("vector[q]", kDimensions).status().message(),
      "type \"vector[q]\": \"q\" is not one of the dimensions of the overload; write any, scalar, vector[i], "
      "matrix[i,j], SCALAR, VECTOR<n> or MATRIX<r,c>");
}

TEST(IsIdentifierTest, LettersDigitsUnderscores) {
  EXPECT_TRUE(IsIdentifier("mmul_thread2"));
  EXPECT_TRUE(IsIdentifier("_x"));
  for (const char* text : {"", "2x", "a b", "a-b", "a(", "caf\xc3\xa9"})
    EXPECT_FALSE(IsIdentifier(text)) << text;
}

}  // namespace
}  // namespace fusion
