// Points found by propagation against a look at all points of small spaces, and expressions with bounds
// against their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/tuner/constraint_search.h"
#include "server/tuner/knowledge.h"
#include "server/tuner/parameter_space.h"

namespace fusion {
namespace {

std::string RandomOperand(std::mt19937_64& random, int variables, int depth);

std::string RandomDecision(std::mt19937_64& random, int variables, int depth) {
  const char* const comparisons[] = {"==", "!=", "<", "<=", ">", ">="};
  if (depth > 0 && random() % 4 == 0) {
    const std::string a = RandomDecision(random, variables, depth - 1);
    if (random() % 3 == 0) return absl::StrCat("!(", a, ")");
    return absl::StrCat("(", a, random() % 2 ? " && " : " || ", RandomDecision(random, variables, depth - 1),
                        ")");
  }
  return absl::StrCat(RandomOperand(random, variables, depth), " ", comparisons[random() % 6], " ",
                      RandomOperand(random, variables, depth));
}

std::string RandomOperand(std::mt19937_64& random, int variables, int depth) {
  if (depth == 0 || random() % 3 == 0)
    return random() % 3 == 0 ? absl::StrCat(random() % 20)
                             : absl::StrCat("p", random() % static_cast<uint64_t>(variables));
  const std::string a = RandomOperand(random, variables, depth - 1);
  const std::string b = RandomOperand(random, variables, depth - 1);
  switch (random() % 10) {
    case 0:
      return absl::StrCat("-", a);
    case 1:
      return absl::StrCat("abs(", a, ")");
    case 2:
      return absl::StrCat("log2(", a, ")");
    case 3:
      return absl::StrCat("min(", a, ", ", b, ")");
    case 4:
      return absl::StrCat("max(", a, ", ", b, ")");
    default: {
      const char* const operators[] = {"+", "-", "*", "/", "%"};
      return absl::StrCat("(", a, " ", operators[random() % 5], " ", b, ")");
    }
  }
}

TEST(ExpressionBoundsProperty, NoPointIsLostAndWhatIsCertainIsTrue) {
  const Expression::Names names{{"p0", "p1", "p2"}, {}};
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    const std::string text = RandomDecision(random, 3, 3);
    const absl::StatusOr<Expression> expression = Expression::Parse(text, names);
    ASSERT_TRUE(expression.ok()) << text << expression.status();
    std::vector<Expression::Bounds> bounds;
    for (int i = 0; i < 3; ++i) {
      const double lower = static_cast<double>(random() % 31) - 15;
      bounds.push_back({lower, lower + static_cast<double>(random() % 12)});
    }
    std::vector<Expression::Bounds> narrowed = bounds;
    const bool possible = expression->Narrow(absl::MakeSpan(narrowed));
    const Expression::Truth truth = expression->Within(bounds);
    const double step = seed % 2 ? 1 : 0.5;
    for (double a = bounds[0].lower; a <= bounds[0].upper; a += step)
      for (double b = bounds[1].lower; b <= bounds[1].upper; b += step)
        for (double c = bounds[2].lower; c <= bounds[2].upper; c += step) {
          const std::vector<double> point = {a, b, c};
          const bool holds = expression->Holds(point);
          if (truth != Expression::Truth::kSometimes) {
            ASSERT_EQ(holds, truth == Expression::Truth::kAlways)
                << text << " at " << a << " " << b << " " << c;
          }
          if (!holds) continue;
          ASSERT_TRUE(possible) << text << " at " << a << " " << b << " " << c;
          for (int i = 0; i < 3; ++i)
            ASSERT_TRUE(narrowed[i].lower <= point[i] && point[i] <= narrowed[i].upper)
                << text << " at " << a << " " << b << " " << c << ": p" << i << " in [" << narrowed[i].lower
                << ", " << narrowed[i].upper << "]";
        }
  }
}

v1::SectionDeclaration RandomSpace(std::mt19937_64& random) {
  v1::SectionDeclaration declaration;
  declaration.set_program("p");
  declaration.set_section("s");
  declaration.set_device_class("d");
  const int parameters = 2 + static_cast<int>(random() % 3);
  for (int i = 0; i < parameters; ++i) {
    v1::TuningParameter* parameter = declaration.add_parameters();
    parameter->set_name(absl::StrCat("p", i));
    switch (random() % 3) {
      case 0:
        parameter->mutable_power_of_two()->set_lower(1);
        parameter->mutable_power_of_two()->set_upper(int64_t{1} << (1 + random() % 6));
        break;
      case 1:
        for (uint64_t value = 0; value < 2 + random() % 3; ++value)
          parameter->mutable_enumeration()->add_values(absl::StrCat("v", i, "_", value));
        break;
      default:
        parameter->mutable_integer()->set_lower(static_cast<int64_t>(random() % 20) - 10);
        parameter->mutable_integer()->set_upper(parameter->integer().lower() +
                                                static_cast<int64_t>(random() % 20));
        parameter->mutable_integer()->set_step(1 + static_cast<int64_t>(random() % 3));
    }
    if (i > 0 && random() % 4 == 0) parameter->set_condition(absl::StrCat("p0 != ", random() % 3));
  }
  for (uint64_t i = 0; i < 1 + random() % 3; ++i)
    declaration.add_constraints(RandomDecision(random, parameters, 2));
  return declaration;
}

TEST(ConstraintSearchProperty, FindsWhatALookAtAllPointsFinds) {
  int without = 0, moved = 0, sparse = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    std::mt19937_64 random(seed);
    v1::SectionDeclaration declaration = RandomSpace(random);
    v1::SectionDeclaration free = declaration;
    free.clear_constraints();
    const auto all = ParameterSpace::Create(free), space = ParameterSpace::Create(declaration);
    ASSERT_TRUE(all.ok()) << all.status();
    // By hand, of the space as it is without constraints.
    Expression::Names names;
    for (const v1::TuningParameter& parameter : declaration.parameters())
      names.variables.push_back(parameter.name());
    std::vector<Expression> constraints;
    for (const std::string& text : declaration.constraints())
      constraints.push_back(*Expression::Parse(text, names));
    const auto distance = [&](const TuningPoint& point) {
      double sum = 0;
      const std::vector<double> from = (*all)->ToUnit((*all)->defaults()), to = (*all)->ToUnit(point);
      for (size_t i = 0; i < from.size(); ++i) sum += (from[i] - to[i]) * (from[i] - to[i]);
      return sum;
    };
    std::vector<TuningPoint> points;
    double nearest = std::numeric_limits<double>::infinity();
    for (uint64_t i = 0; i < (*all)->grid_points(); ++i) {
      const TuningPoint point = (*all)->Canonical((*all)->GridPoint(i));
      if (!std::all_of(constraints.begin(), constraints.end(),
                       [&](const Expression& constraint) { return constraint.Holds(point); }))
        continue;
      points.push_back(point);
      nearest = std::min(nearest, distance(point));
    }
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    ASSERT_EQ(space.ok(), !points.empty()) << declaration.ShortDebugString() << space.status();
    if (points.empty()) {
      EXPECT_EQ(std::string(space.status().message()).rfind("no configuration satisfies", 0), 0u)
          << "it is proved: " << space.status();
      ++without;
      continue;
    }
    const ParameterSpace& found = **space;
    EXPECT_NEAR(distance(found.defaults()), nearest, 1e-9) << declaration.ShortDebugString();
    moved += nearest > 0;
    // Conditions may name other defaults now.
    if (found.defaults() == (*all)->defaults()) {
      std::vector<TuningPoint> listed = ConstraintSearch(found).All(100'000, 1'000'000);
      std::sort(listed.begin(), listed.end());
      EXPECT_EQ(listed, points) << declaration.ShortDebugString();
    }
    sparse += found.sparse();
    TuningKnowledge knowledge(*space, seed);
    for (int i = 0; i < 20; ++i) {
      const TuningPoint point = knowledge.RandomPoint();
      ASSERT_TRUE(found.Check(point).ok()) << declaration.ShortDebugString() << found.Text(point);
    }
  }
  EXPECT_GT(without, 20);
  EXPECT_GT(moved, 20);
  EXPECT_GT(sparse, 0);
}

}  // namespace
}  // namespace fusion
