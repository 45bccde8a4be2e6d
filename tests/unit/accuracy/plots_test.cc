#include "server/accuracy/plots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "tests/unit/accuracy/predictions.h"
#include "tests/unit/accuracy/xml.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

XmlDocument Parsed(const absl::StatusOr<std::string>& svg) {
  EXPECT_TRUE(svg.ok()) << svg.status();
  XmlDocument document = ParseXml(svg.value_or(""));
  EXPECT_EQ(document.error, "");
  return document;
}

double Number(const XmlElement& element, const std::string& attribute) {
  return std::strtod(element.attributes.at(attribute).c_str(), nullptr);
}

std::vector<std::string> Texts(const XmlDocument& document, const std::string& name) {
  std::vector<std::string> texts;
  for (const XmlElement& element : document.elements)
    if (element.name == name) texts.push_back(element.text);
  return texts;
}

// What the ticks of an axis say: place in pixels of each labelled value, from the grid line before the label.
std::vector<std::pair<double, double>> Ticks(const XmlDocument& document, char axis) {
  std::vector<std::pair<double, double>> ticks;
  for (size_t i = 1; i < document.elements.size(); ++i) {
    const XmlElement& line = document.elements[i - 1];
    const XmlElement& label = document.elements[i];
    if (line.name != "line" || label.name != "text") continue;
    const bool upright = line.attributes.at("x1") == line.attributes.at("x2");
    if (upright != (axis == 'x')) continue;
    std::istringstream words(label.text);
    double value = 0;
    std::string unit;
    words >> value >> unit;
    static const std::map<std::string, double> kUnits = {
        {"", 1}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    ticks.emplace_back(Number(line, upright ? "x1" : "y1"), value * kUnits.at(unit));
  }
  return ticks;
}

// Where a value lies by the outermost ticks.
double PlaceByTicks(const std::vector<std::pair<double, double>>& ticks, double value) {
  const auto& [first, low] = ticks.front();
  const auto& [last, high] = ticks.back();
  return first + std::log(value / low) / std::log(high / low) * (last - first);
}

// Places of the circles whose title contains `title`: the first graph's markers are circles.
std::vector<std::pair<double, double>> Circles(const XmlDocument& document, const std::string& title) {
  std::vector<std::pair<double, double>> places;
  for (const XmlElement& element : document.elements) {
    if (element.name != "title" || element.text.find(title) == std::string::npos) continue;
    const XmlElement& marker = document.elements[element.parent];
    if (marker.name == "circle") places.emplace_back(Number(marker, "cx"), Number(marker, "cy"));
  }
  return places;
}

const std::vector<PredictedTime> kTimes = {{90e-6, 120e-6}, {1.3e-3, 700e-6}, {2e-3, 4e-3}, {110e-6, 115e-6}};

TEST(PlotPredictedAgainstMeasured, PointsLieWhereTheAxesSay) {
  const XmlDocument document = Parsed(PlotPredictedAgainstMeasured({MakeGraph("g", kTimes)}));
  const auto x_ticks = Ticks(document, 'x'), y_ticks = Ticks(document, 'y');
  ASSERT_GE(x_ticks.size(), 3u);
  ASSERT_GE(y_ticks.size(), 3u);
  for (size_t i = 0; i < kTimes.size(); ++i) {
    const auto places = Circles(document, "g, position " + std::to_string(i + 1) + ": ");
    ASSERT_EQ(places.size(), 1u);
    EXPECT_NEAR(places[0].first, PlaceByTicks(x_ticks, kTimes[i].measured), 0.2);
    EXPECT_NEAR(places[0].second, PlaceByTicks(y_ticks, kTimes[i].predicted), 0.2);
  }
  EXPECT_THAT(Texts(document, "title"),
              testing::Contains("g, position 2: predicted 1.3 ms, measured 700 us"));
}

TEST(PlotPredictedAgainstMeasured, ExactPredictionsLieOnTheDiagonalAndTheBandIsTenPercent) {
  const XmlDocument document =
      Parsed(PlotPredictedAgainstMeasured({MakeGraph("g", {{1e-3, 1e-3}, {9e-3, 9e-3}})}));
  const auto x_ticks = Ticks(document, 'x'), y_ticks = Ticks(document, 'y');
  auto is_diagonal = [](const XmlElement& element) {
    return element.name == "line" && element.attributes.at("x1") != element.attributes.at("x2") &&
           element.attributes.at("y1") != element.attributes.at("y2");
  };
  const auto diagonal = std::find_if(document.elements.begin(), document.elements.end(), is_diagonal);
  ASSERT_NE(diagonal, document.elements.end());
  for (const auto& [x, y] : Circles(document, "position")) {
    const double share = (x - Number(*diagonal, "x1")) / (Number(*diagonal, "x2") - Number(*diagonal, "x1"));
    EXPECT_NEAR(y, Number(*diagonal, "y1") + share * (Number(*diagonal, "y2") - Number(*diagonal, "y1")),
                0.2);
  }
  const auto band = std::find_if(document.elements.begin(), document.elements.end(),
                                 [](const XmlElement& element) { return element.name == "polygon"; });
  ASSERT_NE(band, document.elements.end());
  std::istringstream points(band->attributes.at("points"));
  std::vector<std::pair<double, double>> corners;
  char comma;
  for (double x, y; points >> x >> comma >> y;) corners.emplace_back(x, y);
  ASSERT_EQ(corners.size(), 6u);
  // The upper edge is the second and third corner, the lower one the fifth and sixth.
  const double up = PlaceByTicks(y_ticks, 1.1) - PlaceByTicks(y_ticks, 1);
  const double down = PlaceByTicks(y_ticks, 0.9) - PlaceByTicks(y_ticks, 1);
  auto above_diagonal = [&](const std::pair<double, double>& corner) {
    const double seconds =
        std::exp(std::log(x_ticks[0].second) + (corner.first - x_ticks[0].first) /
                                                   (x_ticks[1].first - x_ticks[0].first) *
                                                   std::log(x_ticks[1].second / x_ticks[0].second));
    return corner.second - PlaceByTicks(y_ticks, seconds);
  };
  EXPECT_NEAR(above_diagonal(corners[1]), up, 0.5);
  EXPECT_NEAR(above_diagonal(corners[2]), up, 0.5);
  EXPECT_NEAR(above_diagonal(corners[4]), down, 0.5);
  EXPECT_NEAR(above_diagonal(corners[5]), down, 0.5);
}

TEST(PlotConvergence, StepsLieWhereTheAxesSay) {
  // Over the best: 1.5, 1.5, 1.25, 1, 1.
  const XmlDocument document =
      Parsed(PlotConvergence({MakeGraph("g", {{1, 3}, {2, 4}, {3, 2.5}, {4, 2}, {5, 9}})}));
  const auto x_ticks = Ticks(document, 'x'), y_ticks = Ticks(document, 'y');
  EXPECT_EQ(y_ticks.front().second, 1);
  const struct {
    int count;
    double ratio;
  } steps[] = {{1, 1.5}, {3, 1.25}, {4, 1}, {5, 1}};
  std::vector<double> x, y;
  for (const auto& step : steps) {
    const auto places = Circles(document, "g, after " + std::to_string(step.count) + " candidate");
    ASSERT_EQ(places.size(), 1u) << step.count;
    EXPECT_NEAR(places[0].first, PlaceByTicks(x_ticks, step.count), 0.2);
    EXPECT_NEAR(places[0].second, PlaceByTicks(y_ticks, step.ratio), 0.2);
    x.push_back(places[0].first);
    y.push_back(places[0].second);
  }
  EXPECT_EQ(Circles(document, "g, after").size(), 4u);
  const auto line =
      std::find_if(document.elements.begin(), document.elements.end(), [](const XmlElement& element) {
        return element.name == "path" && element.attributes.count("stroke-width");
      });
  ASSERT_NE(line, document.elements.end());
  std::ostringstream expected;
  expected << std::fixed;
  expected.precision(1);
  expected << "M" << x[0] << " " << y[0];
  for (size_t i = 1; i < x.size(); ++i) expected << " H" << x[i] << " V" << y[i];
  EXPECT_EQ(line->attributes.at("d"), expected.str());
}

TEST(Plots, OfOneCandidateAndOfEqualTimes) {
  for (const auto& times : {std::vector<PredictedTime>{{2e-6, 3e-6}}, {{1e-3, 1e-3}, {1e-3, 1e-3}}}) {
    const std::vector<PredictedGraph> graphs = {MakeGraph("g", times)};
    const XmlDocument scatter = Parsed(PlotPredictedAgainstMeasured(graphs)),
                      lines = Parsed(PlotConvergence(graphs));
    EXPECT_GE(Ticks(scatter, 'x').size(), 2u);
    EXPECT_GE(Ticks(scatter, 'y').size(), 2u);
    EXPECT_GE(Ticks(lines, 'x').size(), 2u);
    EXPECT_GE(Ticks(lines, 'y').size(), 2u);
    EXPECT_THAT(PlotPredictedAgainstMeasured(graphs).value(), Not(HasSubstr("nan")));
    EXPECT_THAT(PlotConvergence(graphs).value(), Not(HasSubstr("nan")));
  }
}

TEST(Plots, TextsOfAGraphAreEscaped) {
  PredictedGraph graph = MakeGraph("a<b>&\"c\"\x01", kTimes);
  graph.device = "<script>";
  for (const auto& svg : {PlotPredictedAgainstMeasured({graph}), PlotConvergence({graph})}) {
    const XmlDocument document = Parsed(svg);
    EXPECT_THAT(*svg, Not(HasSubstr("<script>")));
    EXPECT_THAT(Texts(document, "text"), testing::Contains("a<b>&\"c\"\xEF\xBF\xBD"));
    EXPECT_THAT(Texts(document, "text"), testing::Contains(HasSubstr("n=1024, <script>, cold")));
  }
}

TEST(Plots, WhatDiffersStandsWithTheGraph) {
  PredictedGraph other = MakeGraph("b", kTimes);
  other.cache = "warm";
  const std::vector<PredictedGraph> graphs = {MakeGraph("a", kTimes), other};
  for (const auto& svg : {PlotPredictedAgainstMeasured(graphs), PlotConvergence(graphs)}) {
    const std::vector<std::string> texts = Texts(Parsed(svg), "text");
    EXPECT_THAT(texts, testing::Contains("a, cold"));
    EXPECT_THAT(texts, testing::Contains("b, warm"));
    EXPECT_THAT(texts[0], testing::EndsWith(", n=1024, device"));
  }
}

TEST(Plots, ManyGraphsHaveMarksOfTheirOwnAndTheLegendEndsInTime) {
  std::vector<PredictedGraph> graphs;
  for (int i = 0; i < 30; ++i)
    graphs.push_back(MakeGraph("graph " + std::to_string(i) + " " + std::string(60, 'x'), kTimes));
  for (const auto& svg : {PlotPredictedAgainstMeasured(graphs), PlotConvergence(graphs)}) {
    const XmlDocument document = Parsed(svg);
    const std::vector<std::string> texts = Texts(document, "text");
    EXPECT_THAT(texts, testing::Contains("graph 27 " + std::string(38, 'x') + "..."));
    EXPECT_THAT(texts, testing::Contains("and 2 more"));
    const double height = Number(document.elements[0], "height"),
                 width = Number(document.elements[0], "width");
    // The fill of the group and the outline, but for where it starts, tell graphs apart.
    std::set<std::pair<std::string, std::string>> marks;
    for (const XmlElement& element : document.elements) {
      if (element.name == "text" && element.text != "predicted time") {
        EXPECT_LT(Number(element, "y"), height);
        EXPECT_LT(Number(element, "x"), width);
      }
      if (element.name != "title") continue;
      const XmlElement& marker = document.elements[element.parent];
      const std::string outline = marker.name == "circle" ? "l" : marker.attributes.at("d");
      marks.insert({document.elements[marker.parent].attributes.at("fill"),
                    outline.substr(outline.find_first_of("lh"))});
    }
    EXPECT_EQ(marks.size(), 30u);
  }
}

TEST(Plots, AreTheSameOnEachRun) {
  const std::vector<PredictedGraph> graphs = {MakeGraph("a", kTimes), MakeGraph("b", {{1, 2}})};
  EXPECT_EQ(PlotPredictedAgainstMeasured(graphs).value(), PlotPredictedAgainstMeasured(graphs).value());
  EXPECT_EQ(PlotConvergence(graphs).value(), PlotConvergence(graphs).value());
  // The order in which candidates are given does not matter.
  std::vector<PredictedGraph> reversed = graphs;
  std::reverse(reversed[0].candidates.begin(), reversed[0].candidates.end());
  EXPECT_EQ(PlotPredictedAgainstMeasured(graphs).value(), PlotPredictedAgainstMeasured(reversed).value());
  EXPECT_EQ(PlotConvergence(graphs).value(), PlotConvergence(reversed).value());
}

TEST(Plots, RejectWhatAssessPredictionsRejects) {
  PredictedGraph graph = MakeGraph("g", kTimes);
  graph.candidates[2].measured_seconds = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<PredictedGraph>& graphs :
       {std::vector<PredictedGraph>{}, {graph}, {MakeGraph("empty", {})}}) {
    EXPECT_EQ(PlotPredictedAgainstMeasured(graphs).status(), CheckPredictions(graphs));
    EXPECT_EQ(PlotConvergence(graphs).status(), CheckPredictions(graphs));
    EXPECT_FALSE(CheckPredictions(graphs).ok());
  }
}

}  // namespace
}  // namespace fusion
