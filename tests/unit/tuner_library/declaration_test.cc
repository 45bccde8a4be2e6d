// Parameters and sections: what can be said, and what is answered to what cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/tuner_library/tuner_fixture.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;

class DeclarationTest : public TunerTest {
 protected:
  DeclarationTest() { Create(); }
  fusion_tuner_section* Section(const char* name) {
    fusion_tuner_section* section = nullptr;
    EXPECT_EQ(fusion_tuner_section_create(tuner_, name, &section), FUSION_TUNER_OK) << fusion_tuner_message();
    return section;
  }
};

TEST_F(DeclarationTest, WrongBoundsAreSaidAtOnce) {
  fusion_tuner_parameter* parameter = nullptr;
  EXPECT_EQ(fusion_tuner_integer_range(tuner_, "tile", 10, 1, 1, &parameter), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_tuner_message(),
              HasSubstr("parameter tile: the lower bound 10 is above the upper bound 1"));
  EXPECT_EQ(fusion_tuner_integer_range(tuner_, "tile", 1, 10, 0, &parameter), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("the step is 0"));
  EXPECT_EQ(fusion_tuner_power_of_two(tuner_, "warps", 3, 8, &parameter), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_enumeration(tuner_, "order", nullptr, 0, &parameter), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_real_range(tuner_, "omega", 0, std::nan(""), 0, &parameter),
            FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_real_range(tuner_, "omega", 0, 1, 1, &parameter), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_integer_range(tuner_, "no name", 1, 2, 1, &parameter),
            FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_integer_range(nullptr, "tile", 1, 2, 1, &parameter), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(parameter, nullptr);
  parameter = Range("tile", 1, 9);
  EXPECT_EQ(fusion_tuner_parameter_default(parameter, 10), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_parameter_default(parameter, std::nan("")), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_parameter_default(parameter, 3), FUSION_TUNER_OK) << fusion_tuner_message();
}

TEST_F(DeclarationTest, EveryKindOfParameterHasItsDefault) {
  fusion_tuner_section* section = Section("kinds");
  fusion_tuner_parameter *warps, *order, *omega, *tile = Range("tile", 10, 30, 5);
  const char* orders[] = {"rows", "columns"};
  ASSERT_EQ(fusion_tuner_power_of_two(tuner_, "warps", 1, 16, &warps), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_enumeration(tuner_, "order", orders, 2, &order), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_real_range(tuner_, "omega", 1, 100, 1, &omega), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_parameter_condition(omega, "order == columns"), FUSION_TUNER_OK);
  for (fusion_tuner_parameter* parameter : {tile, warps, order, omega})
    ASSERT_EQ(fusion_tuner_section_parameter(section, parameter), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_OK) << fusion_tuner_message();
  const fusion_tuner_value* values = fusion_tuner_next(section);
  EXPECT_EQ(values[0].integer, 20);
  EXPECT_EQ(values[1].integer, 4);
  EXPECT_EQ(values[2].integer, 0);
  EXPECT_NEAR(values[3].real, 10, 1e-9);
  fusion_tuner_value best[2];
  EXPECT_EQ(fusion_tuner_best(section, best, 2), FUSION_TUNER_OK);
  EXPECT_EQ(best[1].integer, 4);
  EXPECT_EQ(fusion_tuner_converged(section), 0);
}

TEST_F(DeclarationTest, AConstraintThatNothingSatisfies) {
  fusion_tuner_section* section = Section("loop");
  ASSERT_EQ(fusion_tuner_section_parameter(section, Range("tile", 1, 8)), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_constraint(section, "tile > 8"), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("section loop: "));
  EXPECT_EQ(fusion_tuner_next(section), nullptr);
}

TEST_F(DeclarationTest, TextThatIsNotUtf8IsRefusedAtOnce) {
  fusion_tuner_section* section = nullptr;
  fusion_tuner_parameter* parameter = nullptr;
  for (const char* name : {"caf\xe9", "\xff\xfe", "", "tab\t"}) {
    EXPECT_EQ(fusion_tuner_section_create(tuner_, name, &section), FUSION_TUNER_INVALID_ARGUMENT);
    EXPECT_THAT(fusion_tuner_message(), HasSubstr("UTF-8"));
  }
  EXPECT_EQ(fusion_tuner_section_create(tuner_, std::string(100'000, 'x').c_str(), &section),
            FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_LT(std::string(fusion_tuner_message()).size(), 1000u);
  const char* const values[] = {"a\xe9", "b"};
  EXPECT_EQ(fusion_tuner_enumeration(tuner_, "order", values, 2, &parameter), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_integer_range(tuner_, "t\xc3", 1, 2, 1, &parameter), FUSION_TUNER_INVALID_ARGUMENT);
  section = Section("good \xc3\xa9");
  EXPECT_EQ(fusion_tuner_section_parameter(section, Range("tile", 0, 9)), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_section_constraint(section, "tile != '\xe9'"), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_section_objective(section, "loss", "\xb5m", 0), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("unit of the objective"));
}

TEST_F(DeclarationTest, WhatIsDeclaredIsNotChanged) {
  fusion_tuner_section* section = TileSection("loop");
  EXPECT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_EQ(fusion_tuner_section_constraint(section, "tile > 1"), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_EQ(fusion_tuner_section_size(section, "n", 1), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_EQ(fusion_tuner_section_parameter(section, Range("other", 1, 2)), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("section loop is declared already"));
}

TEST_F(DeclarationTest, OneParameterInTwoSections) {
  fusion_tuner_parameter* tile = Range("tile", 1, 2);
  ASSERT_EQ(fusion_tuner_section_parameter(Section("first"), tile), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_section_parameter(Section("second"), tile), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("parameter tile is in section first already"));
  EXPECT_EQ(fusion_tuner_parameter_default(tile, 1), FUSION_TUNER_FAILED_PRECONDITION);
}

TEST_F(DeclarationTest, SectionsAreFoundByName) {
  fusion_tuner_section* section = TileSection("transpose");
  fusion_tuner_section* found = nullptr;
  EXPECT_EQ(fusion_tuner_section_find(tuner_, "transpose", &found), FUSION_TUNER_OK);
  EXPECT_EQ(found, section);
  EXPECT_EQ(fusion_tuner_section_find(tuner_, "transpsoe", &found), FUSION_TUNER_NOT_FOUND);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("did you mean transpose?"));
  EXPECT_EQ(fusion_tuner_section_create(tuner_, "transpose", &found), FUSION_TUNER_ALREADY_EXISTS);
  EXPECT_EQ(fusion_tuner_section_create(tuner_, "", &found), FUSION_TUNER_INVALID_ARGUMENT);
}

TEST_F(DeclarationTest, OtherSizesAreOtherSectionsWithTheSameName) {
  fusion_tuner_section* section = Section("product");
  ASSERT_EQ(fusion_tuner_section_parameter(section, Range("tile", 1, 64)), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_size(section, "n", 100), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_size(section, "m", 10), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_constraint(section, "tile <= m"), FUSION_TUNER_OK);
  fusion_tuner_section *other = nullptr, *again = nullptr, *own = nullptr;
  const int64_t sizes[] = {100, 20}, small[] = {100, 0}, original[] = {100, 10};
  EXPECT_EQ(fusion_tuner_section_with_sizes(section, sizes, 2, &other), FUSION_TUNER_FAILED_PRECONDITION);
  ASSERT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_OK) << fusion_tuner_message();
  EXPECT_EQ(fusion_tuner_section_with_sizes(section, sizes, 1, &other), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("2 sizes (n, m); given are 1"));
  EXPECT_EQ(fusion_tuner_section_with_sizes(section, small, 2, &other), FUSION_TUNER_INVALID_ARGUMENT);
  ASSERT_EQ(fusion_tuner_section_with_sizes(section, sizes, 2, &other), FUSION_TUNER_OK)
      << fusion_tuner_message();
  EXPECT_NE(other, section);
  EXPECT_EQ(fusion_tuner_section_with_sizes(other, sizes, 2, &again), FUSION_TUNER_OK);
  EXPECT_EQ(again, other);
  EXPECT_EQ(fusion_tuner_section_with_sizes(other, original, 2, &own), FUSION_TUNER_OK);
  EXPECT_EQ(own, section);
  // Both run, one in the other.
  ASSERT_EQ(fusion_tuner_start(section), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_start(other), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_stop(other), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_stop(section), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  EXPECT_EQ(server_.Runs(), 2u);
}

TEST_F(DeclarationTest, ThereAreNotAsManySectionsAsInputs) {
  fusion_tuner_section* section = Section("product");
  ASSERT_EQ(fusion_tuner_section_parameter(section, Range("tile", 1, 2)), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_size(section, "n", 0), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_OK) << fusion_tuner_message();
  int64_t n = 1;
  for (int code = FUSION_TUNER_OK; code == FUSION_TUNER_OK; ++n) {
    fusion_tuner_section* with_sizes = nullptr;
    code = fusion_tuner_section_with_sizes(section, &n, 1, &with_sizes);
    // Runs of each at once, while the background thread meets it.
    if (code == FUSION_TUNER_OK) {
      EXPECT_EQ(fusion_tuner_report(with_sizes, 1), FUSION_TUNER_OK);
    }
  }
  EXPECT_EQ(n, 10'001);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("round the sizes"));
  EXPECT_EQ(fusion_tuner_report(section, 1), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_flush(tuner_, 20), FUSION_TUNER_OK);
  EXPECT_EQ(Counters().acknowledged + Counters().dropped, 10'000u);
}

}  // namespace
}  // namespace fusion::testing
