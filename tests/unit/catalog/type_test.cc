#include "library/catalog/type.h"

#include <gtest/gtest.h>

#include <limits>

namespace fusion {
namespace {

const Extent kRows{.name = "m"};
const Extent kColumns{.name = "n"};

TEST(TypeTest, PrintsAsDeclared) {
  EXPECT_EQ(Type::Scalar(v1::F32).ToString(), "scalar");
  EXPECT_EQ(Type::Matrix(v1::F32, kRows, kColumns).ToString(), "matrix[m,n]");
  EXPECT_EQ(Type::Vector(v1::F64, kColumns).ToString(), "f64 vector[n]");
  EXPECT_EQ(Type::Vector(v1::F32, {"", 512}).ToString(), "vector[512]");
  EXPECT_EQ(Type::Element(v1::F32, {}).ToString(), "SCALAR");
  EXPECT_EQ(Type::Element(v1::F32, {3}).ToString(), "VECTOR3");
  EXPECT_EQ(Type::Element(v1::F64, {3, 12}).ToString(), "f64 MATRIX3x12");
}

TEST(TypeTest, CountsEntriesAndBytes) {
  SizeValues sizes = {{"m", 3}, {"n", 5}, {kElementsSize, 100}};
  EXPECT_EQ(Type::Scalar(v1::F32).Entries(sizes), 1);
  EXPECT_EQ(Type::Matrix(v1::F64, kRows, kColumns).Entries(sizes), 15);
  EXPECT_EQ(Type::Matrix(v1::F64, kRows, kColumns).Bytes(sizes), 120);
  EXPECT_EQ(Type::Matrix(v1::F32, {"", 7}, kColumns).Bytes(sizes), 140);
  EXPECT_EQ(Type::Element(v1::F32, {3, 2}).element_entries(), 6);
  EXPECT_EQ(Type::Element(v1::F32, {3, 2}).Entries(sizes), 600);
  EXPECT_EQ(Type::Element(v1::F32, {}).Entries(sizes), 100);
}

TEST(TypeTest, EntriesSaturateInsteadOfOverflowing) {
  SizeValues sizes = {{"m", int64_t{1} << 40}, {"n", int64_t{1} << 40}};
  EXPECT_EQ(Type::Matrix(v1::F32, kRows, kColumns).Entries(sizes), std::numeric_limits<int64_t>::max());
}

TEST(TypeTest, Equality) {
  EXPECT_EQ(Type::Vector(v1::F32, kColumns), Type::Vector(v1::F32, kColumns));
  EXPECT_NE(Type::Vector(v1::F32, kColumns), Type::Vector(v1::F64, kColumns));
  EXPECT_NE(Type::Vector(v1::F32, kColumns), Type::Vector(v1::F32, kRows));
  EXPECT_NE(Type::Scalar(v1::F32), Type::Element(v1::F32, {}));
}

TEST(TypeTest, DataTypes) {
  EXPECT_EQ(DataTypeBytes(v1::F32), 4);
  EXPECT_EQ(DataTypeBytes(v1::F64), 8);
  EXPECT_STREQ(DataTypeCName(v1::F32), "float");
  EXPECT_STREQ(DataTypeCName(v1::F64), "double");
}

}  // namespace
}  // namespace fusion
