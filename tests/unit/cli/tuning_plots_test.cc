#include "client/cli/tuning_plots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/plots/axis.h"
#include "tests/unit/accuracy/xml.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

PlottedTuning Tuning(int parameters) {
  using Scale = PlottedParameter::Scale;
  PlottedTuning tuning;
  tuning.heading = "solver/<sweep>";
  tuning.objective = "time";
  tuning.unit = "s";
  const PlottedParameter all[] = {{"tile", Scale::kPowersOfTwo, 1, 64, {}},
                                  {"order", Scale::kNamed, 0, 1, {"rows", "columns"}},
                                  {"share", Scale::kLinear, 0, 1, {}},
                                  {"rate", Scale::kLogarithmic, 1e-6, 1, {}},
                                  {"one", Scale::kLinear, 3, 3, {}}};
  tuning.parameters.assign(all, all + parameters);
  for (int i = 0; i < 7; ++i) {
    const double values[] = {static_cast<double>(1 << i), static_cast<double>(i % 2), i / 6.0,
                             std::pow(10.0, -i), 3};
    tuning.configurations.push_back(
        {{values, values + parameters}, 1e-3 * (1 + i), 1e-4, "c" + std::to_string(i)});
  }
  tuning.best = 0;
  tuning.defaults = 3;
  tuning.convergence = {{1, 4e-3}, {3, 2e-3}, {9, 1e-3}};
  tuning.evaluations = 20;
  return tuning;
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TuningPlotsTest, OneParameterHasErrorBars) {
  const auto plot = PlotLandscape(Tuning(1));
  ASSERT_TRUE(plot.ok()) << plot.status();
  EXPECT_EQ(XmlReader(*plot).Read().error, "");
  EXPECT_EQ(CountOf(*plot, "stroke=\"#999\""), 7u * 3);
  EXPECT_EQ(CountOf(*plot, "<title>"), 7u);
  EXPECT_THAT(*plot, HasSubstr("<title>best: c0</title>"));
  EXPECT_THAT(*plot, HasSubstr("<title>default: c3</title>"));
  EXPECT_THAT(*plot, HasSubstr("solver/&lt;sweep&gt;"));
  EXPECT_THAT(*plot, HasSubstr(">64</text>"));
}

TEST(TuningPlotsTest, SeveralParametersHaveAPanelEach) {
  const auto plot = PlotLandscape(Tuning(5));
  ASSERT_TRUE(plot.ok()) << plot.status();
  EXPECT_EQ(XmlReader(*plot).Read().error, "");
  EXPECT_EQ(CountOf(*plot, "<title>"), 5u * 7);
  EXPECT_EQ(CountOf(*plot, "<title>best: "), 5u);
  for (const char* name : {"tile", "order", "share", "rate", "one", "columns"})
    EXPECT_THAT(*plot, HasSubstr(std::string(">") + name + "</text>"));
  EXPECT_EQ(CountOf(*plot, "stroke=\"#999\""), 0u);
  EXPECT_THAT(*plot, Not(HasSubstr("nan")));
  EXPECT_THAT(*plot, Not(HasSubstr("inf")));
}

TEST(TuningPlotsTest, Convergence) {
  const auto plot = PlotTuningConvergence(Tuning(1));
  ASSERT_TRUE(plot.ok()) << plot.status();
  EXPECT_EQ(XmlReader(*plot).Read().error, "");
  EXPECT_EQ(CountOf(*plot, "<title>"), 3u);
  EXPECT_THAT(*plot, HasSubstr("<title>after 9: 1 ms</title>"));
}

TEST(TuningPlotsTest, NothingMeasured) {
  PlottedTuning none = Tuning(1);
  none.configurations.clear();
  none.convergence.clear();
  EXPECT_FALSE(PlotLandscape(none).ok());
  EXPECT_FALSE(PlotTuningConvergence(none).ok());
  EXPECT_FALSE(PlotLandscape(Tuning(0)).ok());
}

TEST(LinearTicksTest, RoundValues) {
  EXPECT_THAT(LinearTicks(0, 10, 6), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(LinearTicks(1, 64, 4), ElementsAre(20, 40, 60));
  for (const double high : {1.0, 3.0, 7.0, 11.0, 64.0, 99.0, 1e6}) {
    const auto ticks = LinearTicks(0, high, 6);
    EXPECT_GE(ticks.size(), 2u) << high;
    EXPECT_LE(ticks.size(), 6u) << high;
  }
}

}  // namespace
}  // namespace fusion
