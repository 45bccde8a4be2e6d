#include "server/tuner/warm_start.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/tuner/declared_section.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::SectionDeclaration Declaration(const std::string& rest) {
  v1::SectionDeclaration declaration;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "program: 'p' section: 's' device_class: 'd' " + rest, &declaration))
      << rest;
  return declaration;
}

std::shared_ptr<const ParameterSpace> Space(const std::string& rest) {
  auto space = ParameterSpace::Create(Declaration(rest));
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

TEST(ContextDistanceTest, SumOfLogarithms) {
  const auto a = Declaration("context { name: 'm' value: 100 } context { name: 'n' value: 10 }");
  const auto b = Declaration("context { name: 'n' value: 20 } context { name: 'm' value: 50 }");
  EXPECT_NEAR(ContextDistance(a, b), 2 * std::log(2), 1e-12);
  EXPECT_EQ(ContextDistance(a, a), 0);
  EXPECT_TRUE(std::isinf(ContextDistance(a, Declaration("context { name: 'm' value: 100 }"))));
  EXPECT_TRUE(std::isinf(
      ContextDistance(a, Declaration("context { name: 'm' value: 100 } context { name: 'k' value: 10 }"))));
  EXPECT_EQ(ContextDistance(Declaration("context { name: 'm' value: 0 }"),
                            Declaration("context { name: 'm' value: 9 }")),
            1);
}

TEST(MapPointTest, APartitionKeepsItsShare) {
  const auto small = Space("parameters { name: 'part' integer { lower: 0 upper: 1000 step: 1 } }");
  const auto large = Space("parameters { name: 'part' integer { lower: 0 upper: 50000 step: 10 } }");
  EXPECT_THAT(MapPoint(*small, {250}, *large), ElementsAre(12500));
  EXPECT_THAT(MapPoint(*large, {12500}, *small), ElementsAre(250));
}

TEST(MapPointTest, NamesAndKindsDecide) {
  const auto from = Space(
      "parameters { name: 'order' enumeration { values: 'a' values: 'b' values: 'c' } }"
      "parameters { name: 'tile' power_of_two { lower: 1 upper: 64 } }");
  const auto to = Space(
      "parameters { name: 'tile' power_of_two { lower: 1 upper: 64 } default_value: 2 }"
      "parameters { name: 'order' enumeration { values: 'c' values: 'a' } }"
      "parameters { name: 'new' integer { lower: 1 upper: 9 step: 1 } default_value: 4 }");
  EXPECT_THAT(MapPoint(*from, {2, 32}, *to), ElementsAre(32, 0, 4));
  EXPECT_THAT(MapPoint(*from, {1, 32}, *to), ElementsAre(32, 0, 4));  // there is no b: the default
  const auto other_kind =
      Space("parameters { name: 'order' integer { lower: 1 upper: 9 step: 1 } default_value: 3 }");
  EXPECT_THAT(MapPoint(*from, {2, 32}, *other_kind), ElementsAre(3));
}

TEST(MapPointTest, WhatBreaksConstraintsIsNothing) {
  const auto from = Space("parameters { name: 'tile' integer { lower: 1 upper: 64 step: 1 } }");
  const auto to =
      Space("parameters { name: 'tile' integer { lower: 1 upper: 64 step: 1 } } constraints: 'tile <= 10'");
  EXPECT_THAT(MapPoint(*from, {64}, *to), IsEmpty());
}

TEST(DeclaredSectionTest, KeysHaveSizesInOrder) {
  const auto key = KeyOf(Declaration("context { name: 'n' value: 2 } context { name: 'm' value: -3 }"));
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->context, "m=-3,n=2");
  for (const char* wrong : {"context { name: 'n' value: 2 } context { name: 'n' value: 3 }",
                            "context { name: '' value: 2 }", "context { name: 'a=1,b' value: 2 }"})
    EXPECT_TRUE(absl::IsInvalidArgument(KeyOf(Declaration(wrong)).status())) << wrong;
  auto none = Declaration("");
  none.set_section(std::string(1000, 's'));
  EXPECT_TRUE(absl::IsInvalidArgument(KeyOf(none).status()));
  none.set_section("a\nb");
  EXPECT_TRUE(absl::IsInvalidArgument(KeyOf(none).status()));
}

TEST(DeclaredSectionTest, PointsAsBytes) {
  EXPECT_THAT(DecodePoint(EncodePoint({1.5, -2}), 2), ElementsAre(1.5, -2));
  EXPECT_EQ(EncodePoint({-0.0}), EncodePoint({0.0}));
  EXPECT_THAT(DecodePoint(EncodePoint({1.5}), 2), IsEmpty());
  EXPECT_THAT(DecodePoint("abc", 1), IsEmpty());
}

TEST(DeclaredSectionTest, DifferencesAreNamed) {
  const auto known = Declaration(
      "parameters { name: 'a' integer { lower: 1 upper: 9 step: 1 } } parameters { name: 'b' real { lower: 0 "
      "upper: 1 } }"
      "constraints: 'a < 5'");
  EXPECT_EQ(SpaceDifference(known, known), "");
  EXPECT_THAT(
      SpaceDifference(known, Declaration("parameters { name: 'a' integer { lower: 1 upper: 8 step: 1 } }")),
      HasSubstr("parameter a: 1..9 step 1 there, 1..8 step 1 here; parameter b: not here; constraints: [a < "
                "5] there, [] here"));
  auto objective = known;
  objective.mutable_objective()->set_maximize(true);
  EXPECT_THAT(SpaceDifference(known, objective), HasSubstr("objective"));
}

}  // namespace
}  // namespace fusion
