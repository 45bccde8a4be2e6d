#include "server/tuner/parameter_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/tuner/space.h"

namespace fusion {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOfDeclaration(const std::string& rest) {
  const auto space = ParameterSpace::Create(Declaration(rest));
  EXPECT_TRUE(absl::IsInvalidArgument(space.status())) << rest << ": " << space.status();
  return std::string(space.status().message());
}

constexpr char kFour[] =
    "parameters { name: 'n' integer { lower: 3 upper: 20 step: 4 } }"
    "parameters { name: 'tile' power_of_two { lower: 4 upper: 64 } }"
    "parameters { name: 'order' enumeration { values: 'rows' values: 'columns' values: 'z-curve' } }"
    "parameters { name: 'alpha' real { lower: 0.01 upper: 100 logarithmic: true } }";

TEST(ParameterSpaceTest, ValuesAndDefaults) {
  const auto space = Space(kFour);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->axis(0).count, 5u);  // 3 7 11 15 19
  EXPECT_EQ(space->axis(0).upper, 19);
  EXPECT_EQ(space->axis(1).count, 5u);
  EXPECT_EQ(space->axis(2).count, 3u);
  EXPECT_EQ(space->grid_points(), ParameterSpace::kUncountable);
  EXPECT_THAT(space->defaults(), ElementsAre(11, 16, 0, DoubleEq(1)));
  EXPECT_EQ(space->Text({11, 16, 2, 1}), "n=11 tile=16 order=z-curve alpha=1");
}

TEST(ParameterSpaceTest, TheNearestValue) {
  const auto space = Space(kFour);
  ASSERT_TRUE(space);
  EXPECT_THAT(space->Canonical({12.9, 100, 1.4, 1e6}), ElementsAre(11, 64, 1, 100));
  EXPECT_THAT(space->Canonical({-5, 0.5, -1, std::nan("")}), ElementsAre(3, 4, 0, DoubleEq(1)));
  EXPECT_TRUE(space->Check({11, 16, 2, 0.5}).ok());
  EXPECT_THAT(std::string(space->Check({12, 16, 2, 0.5}).message()),
              HasSubstr("parameter n cannot be 12 here; the nearest is 11"));
  EXPECT_THAT(std::string(space->Check({11, 16}).message()), HasSubstr("4 parameters has 2 values"));
  EXPECT_FALSE(space->Check({std::nan(""), 16, 2, 0.5}).ok());
}

TEST(ParameterSpaceTest, UnitCoordinatesAreEqualStepsOrEqualRatios) {
  const auto space = Space(kFour);
  ASSERT_TRUE(space);
  EXPECT_THAT(space->ToUnit(TuningPoint{7, 8, 1, 1}),
              ElementsAre(DoubleEq(0.25), DoubleEq(0.25), DoubleEq(0.5), DoubleEq(0.5)));
  for (double a : {0.0, 0.25, 0.5, 0.75, 1.0})
    EXPECT_THAT(space->ToUnit(0, space->FromUnit(0, a)), DoubleEq(a));
  EXPECT_EQ(space->FromUnit(3, 1), 100);
  EXPECT_EQ(space->FromUnit(3, 0), 0.01);
}

TEST(ParameterSpaceTest, AParameterWithoutAMeaningStaysAtItsDefault) {
  const auto space = Space(
      "parameters { name: 'algorithm' enumeration { values: 'plain' values: 'tiled' } }"
      "parameters { name: 'tile' integer { lower: 1 upper: 9 step: 1 } condition: 'algorithm == tiled && n > "
      "10' }"
      "context { name: 'n' value: 100 }");
  ASSERT_TRUE(space);
  EXPECT_THAT(space->Canonical({0, 9}), ElementsAre(0, 5));
  EXPECT_THAT(space->Canonical({1, 9}), ElementsAre(1, 9));
  EXPECT_FALSE(space->Active({0, 5}, 1));
  EXPECT_FALSE(space->Check({0, 9}).ok());
  EXPECT_EQ(space->Text({0, 5}), "algorithm=plain");
}

TEST(ParameterSpaceTest, ConstraintsMoveTheDefault) {
  const auto space = Space(
      "parameters { name: 'a' integer { lower: 1 upper: 10 step: 1 } }"
      "parameters { name: 'b' integer { lower: 1 upper: 10 step: 1 } }"
      "constraints: 'a * b <= n' constraints: 'a > b' context { name: 'n' value: 12 }");
  ASSERT_TRUE(space);
  EXPECT_TRUE(space->Satisfies(space->defaults())) << space->Text(space->defaults());
  EXPECT_EQ(space->declaration().parameters(0).default_value(), space->defaults()[0])
      << "people are shown it";
  EXPECT_EQ(space->declaration().parameters(1).default_value(), space->defaults()[1]);
  EXPECT_FALSE(space->Satisfies({5, 5}));
  EXPECT_TRUE(space->Satisfies({4, 3}));
  EXPECT_THAT(std::string(space->Check({5, 4}).message()), HasSubstr("breaks a constraint"));
}

TEST(ParameterSpaceTest, GridPoints) {
  const auto space = Space(
      "parameters { name: 'a' integer { lower: 1 upper: 3 step: 1 } }"
      "parameters { name: 'b' power_of_two { lower: 2 upper: 8 } }");
  ASSERT_TRUE(space);
  ASSERT_EQ(space->grid_points(), 9u);
  EXPECT_THAT(space->GridPoint(0), ElementsAre(1, 2));
  EXPECT_THAT(space->GridPoint(5), ElementsAre(2, 8));
  EXPECT_THAT(space->GridPoint(8), ElementsAre(3, 8));
}

TEST(ParameterSpaceTest, BadDeclarationsSayWhatIsWrong) {
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' integer { lower: 5 upper: 1 step: 1 } }"),
              HasSubstr("the lower bound 5 is above the upper bound 1"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' integer { lower: 1 upper: 5 step: 0 } }"),
              HasSubstr("the step is 0; it must be positive"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' integer { lower: 1 upper: 5 step: -1 } }"),
              HasSubstr("step is -1"));
  EXPECT_THAT(
      ErrorOfDeclaration("parameters { name: 'a' integer { lower: -9223372036854775808 upper: 5 step: 1 } }"),
      HasSubstr("2^53"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' power_of_two { lower: 3 upper: 8 } }"),
              HasSubstr("must be powers of two"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' power_of_two { lower: 8 upper: 4 } }"),
              HasSubstr("above"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' enumeration { } }"), HasSubstr("this one has 0"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' enumeration { values: 'x' values: 'x' } }"),
              HasSubstr("x is there twice"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' real { lower: nan upper: 1 } }"),
              HasSubstr("finite"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' real { lower: 2 upper: 1 } }"), HasSubstr("above"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' real { lower: 0 upper: 1 logarithmic: true } }"),
              HasSubstr("above 0"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' }"), HasSubstr("no values"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: '9a' real { upper: 1 } }"),
              HasSubstr("begins with no digit"));
  EXPECT_THAT(ErrorOfDeclaration(""), HasSubstr("this one has 0"));
  EXPECT_THAT(ErrorOfDeclaration(
                  "parameters { name: 'a' real { upper: 1 } } parameters { name: 'a' real { upper: 1 } }"),
              HasSubstr("there twice"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' real { upper: 1 } } context { name: 'a' value: 1 }"),
              HasSubstr("there twice"));
  EXPECT_THAT(
      ErrorOfDeclaration("parameters { name: 'a' integer { lower: 1 upper: 5 step: 2 } default_value: 2 }"),
      HasSubstr("the default 2 is none of its values"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' real { upper: 1 } default_value: nan }"),
              HasSubstr("none of its values"));
  EXPECT_THAT(ErrorOfDeclaration(
                  "parameters { name: 'a' real { upper: 1 } condition: 'b > 1' } parameters { name: 'b' "
                  "real { upper: 1 } }"),
              HasSubstr("only sizes and parameters before this one"));
}

TEST(ParameterSpaceTest, AConstraintThatNothingSatisfiesIsNamed) {
  EXPECT_THAT(ErrorOfDeclaration(
                  "parameters { name: 'a' integer { lower: 1 upper: 5 step: 1 } } constraints: 'a < 9' "
                  "constraints: 'a > 7'"),
              HasSubstr("no configuration satisfies \"a > 7\""));
  EXPECT_THAT(ErrorOfDeclaration(
                  "parameters { name: 'a' integer { lower: 1 upper: 5 step: 1 } } constraints: 'a < 3' "
                  "constraints: 'a > 3'"),
              HasSubstr("all constraints together"));
  EXPECT_THAT(ErrorOfDeclaration("parameters { name: 'a' real { lower: 1 upper: 5 } } constraints: 'a < 0'"),
              HasSubstr("no configuration satisfies \"a < 0\""))
      << "of reals, too";
  EXPECT_THAT(
      ErrorOfDeclaration("parameters { name: 'a' integer { lower: 1 upper: 5 step: 1 } default_value: 5 } "
                         "constraints: 'a < 3'"),
      HasSubstr("the defaults a=5 break a constraint"));
}

TEST(ParameterSpaceTest, WhatFewPointsSatisfyIsFound) {
  // Of 2^60 points 21, each found and none else.
  auto space = Space(
      "parameters { name: 'a' integer { lower: 1 upper: 1048576 step: 1 } }"
      "parameters { name: 'b' integer { lower: 1 upper: 1048576 step: 1 } }"
      "parameters { name: 'c' integer { lower: 1 upper: 1048576 step: 1 } }"
      "constraints: 'a * b == 1048576' constraints: 'c == a + b'");
  ASSERT_TRUE(space);
  EXPECT_TRUE(space->listed());
  // c = a + b is at most 2^20, so a and b are not 1.
  EXPECT_EQ(space->grid_points(), 19u);
  for (uint64_t i = 0; i < space->grid_points(); ++i) EXPECT_TRUE(space->Satisfies(space->GridPoint(i)));
  EXPECT_TRUE(space->Satisfies(space->defaults()));

  // Too many for a list, and still one of millions.
  space = Space(
      "parameters { name: 'a' integer { lower: 0 upper: 100000 step: 1 } }"
      "parameters { name: 'b' integer { lower: 0 upper: 100000 step: 1 } }"
      "parameters { name: 'c' integer { lower: 0 upper: 100000 step: 1 } }"
      "constraints: 'a + b + c == 100000'");
  ASSERT_TRUE(space);
  EXPECT_TRUE(space->sparse());
  EXPECT_FALSE(space->listed());
  const std::optional<TuningPoint> near = space->NearPoint({0.1, 0.2, 0.3});
  ASSERT_TRUE(near);
  EXPECT_TRUE(space->Satisfies(*near));

  // Real parameters.
  for (const char* constraint : {"x + y == 1", "abs(x - 0.123456789) < 1e-12",
                                 "x * x + y * y <= 1e-18 && x > 0 && y > 0", "x == 3 * y"}) {
    space = Space(std::string("parameters { name: 'x' real { lower: -10 upper: 10 } default_value: 7 }"
                              "parameters { name: 'y' real { lower: -10 upper: 10 } } constraints: '") +
                  constraint + "'");
    ASSERT_TRUE(space) << constraint;
    EXPECT_TRUE(space->Satisfies(space->defaults())) << constraint;
    const std::optional<TuningPoint> other = space->NearPoint({0.52, 0.51});
    ASSERT_TRUE(other) << constraint;
    EXPECT_TRUE(space->Satisfies(*other)) << constraint;
  }
}

TEST(ParameterSpaceTest, LogarithmicRangesOfAnyRatio) {
  for (const auto& [lower, upper] : {std::pair<double, double>{1e-300, 1e300},
                                     {5e-324, 1},
                                     {5e-324, 1.7976931348623157e308},
                                     {1e-3, 1e9}}) {
    ParameterSpace::Axis axis;
    axis.kind = ParameterSpace::Kind::kReal;
    axis.lower = lower;
    axis.upper = upper;
    axis.logarithmic = true;
    const double middle = (std::log10(lower) + std::log10(upper)) / 2;
    EXPECT_NEAR(std::log10(axis.FromUnit(0.5)), middle, 0.1) << lower;
    EXPECT_EQ(axis.FromUnit(0), lower);
    EXPECT_EQ(axis.FromUnit(1), upper);
    EXPECT_EQ(axis.ToUnit(lower), 0);
    EXPECT_EQ(axis.ToUnit(upper), 1);
    for (double unit = 0.05; unit < 1; unit += 0.05)
      EXPECT_NEAR(axis.ToUnit(axis.FromUnit(unit)), unit, 1e-3) << lower;
  }
  const auto space = Space("parameters { name: 'x' real { lower: 1e-300 upper: 1e300 logarithmic: true } }");
  EXPECT_NEAR(space->defaults()[0], 1, 1e-9);
  EXPECT_FALSE(space->Check({0}).ok());
  EXPECT_TRUE(space->Check({2e-300}).ok());
}

TEST(ParameterSpaceTest, RangesWhoseWidthIsNoNumber) {
  const auto space = Space("parameters { name: 'x' real { lower: -1.7e308 upper: 1.7e308 } }");
  ASSERT_TRUE(space);
  EXPECT_EQ(space->defaults()[0], 0);
  EXPECT_NEAR(space->FromUnit(0, 0.75), 0.85e308, 1e300);
  EXPECT_NEAR(space->ToUnit(0, 0.85e308), 0.75, 1e-12);
}

TEST(ParameterSpaceTest, IntegersAreExactAtAnyWidth) {
  const auto space = Space(
      "parameters { name: 'a' integer { lower: -9007199254740992 upper: 9007199254740992 step: 1 } }"
      "parameters { name: 'b' integer { lower: -9007199254740992 upper: 9007199254740991 step: 5 } }"
      "parameters { name: 'c' power_of_two { lower: 1 upper: 9007199254740992 } }");
  ASSERT_TRUE(space);
  EXPECT_EQ(space->defaults()[0], 0);
  for (const double value :
       {-9007199254740992.0, -9007199254740991.0, 9007199254740991.0, 9007199254740992.0, 7.0})
    EXPECT_TRUE(space->Check({value, space->defaults()[1], 1}).ok()) << value;
  const double b = -9007199254740992.0 + 5 * 1000;
  EXPECT_TRUE(space->Check({0, b, 1}).ok());
  EXPECT_FALSE(space->Check({0, b + 2, 1}).ok()) << "no value of a range with steps";
  EXPECT_EQ(space->Canonical({0, b + 2, 1})[1], b);
  EXPECT_EQ(space->axis(2).count, 54u);
  EXPECT_TRUE(space->Check({0, b, 9007199254740992.0}).ok());
  EXPECT_FALSE(space->Check({0, b, 9007199254740991.0}).ok());
}

TEST(ParameterSpaceTest, TextIsUtf8AndNotTooLong) {
  v1::SectionDeclaration declaration = Declaration("parameters { name: 'a' real { upper: 1 } }");
  const auto refused = [](const v1::SectionDeclaration& bad) {
    return absl::IsInvalidArgument(ParameterSpace::Create(bad).status());
  };
  for (const std::string& text :
       {std::string("caf\xe9"), std::string(100'000, 'x'), std::string("a\0b", 3)}) {
    v1::SectionDeclaration bad = declaration;
    bad.set_section(text);
    EXPECT_TRUE(refused(bad));
    bad = declaration;
    bad.mutable_objective()->set_unit(text);
    EXPECT_TRUE(refused(bad));
    bad = declaration;
    bad.mutable_parameters(0)->mutable_enumeration()->add_values(text);
    EXPECT_TRUE(refused(bad));
    bad = declaration;
    bad.mutable_parameters(0)->set_condition(text);
    EXPECT_TRUE(refused(bad));
    bad = declaration;
    bad.add_constraints("a != '" + text + "'");
    EXPECT_TRUE(refused(bad));
    bad = declaration;
    bad.add_context()->set_name(text);
    EXPECT_TRUE(refused(bad));
  }
  declaration.set_section("caf\xc3\xa9");
  EXPECT_FALSE(refused(declaration));
  for (int i = 0; i < 600; ++i)
    declaration.mutable_parameters(0)->mutable_enumeration()->add_values(std::string(150, 'v') +
                                                                         std::to_string(i));
  EXPECT_TRUE(refused(declaration)) << "more than a server takes";
}

TEST(ParameterSpaceTest, EverythingThatIsWrongIsSaidAtOnce) {
  const std::string error = ErrorOfDeclaration(
      "parameters { name: 'a' integer { lower: 5 upper: 1 step: 1 } }"
      "parameters { name: 'b' integer { lower: 1 upper: 5 step: 0 } }");
  EXPECT_THAT(error, HasSubstr("parameter a"));
  EXPECT_THAT(error, HasSubstr("\nparameter b"));
}

TEST(ParameterSpaceTest, ProgramsShareASearchWhenTheirSpacesAreTheSame) {
  const v1::SectionDeclaration a = Declaration("parameters { name: 'a' real { upper: 1 } }");
  EXPECT_TRUE(SameSpace(a, Declaration("parameters { name: 'a' real { upper: 1 } default_value: 0.3 }")));
  EXPECT_FALSE(SameSpace(a, Declaration("parameters { name: 'a' real { upper: 2 } }")));
  EXPECT_FALSE(SameSpace(a, Declaration("parameters { name: 'a' real { upper: 1 } } constraints: 'a > 0'")));
  EXPECT_FALSE(
      SameSpace(a, Declaration("parameters { name: 'a' real { upper: 1 } } objective { maximize: true }")));
}

}  // namespace
}  // namespace fusion
