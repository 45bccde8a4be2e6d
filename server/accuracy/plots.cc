#include "server/accuracy/plots.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/plots/axis.h"
#include "base/plots/svg.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr int kWidth = 960, kHeight = 616;
constexpr double kLeft = 84, kRight = 584, kTop = 64, kBottom = 564;  // of the plot
constexpr double kLegendLeft = 612, kLegendRow = 18;
constexpr int kLegendRows = 28, kLegendCharacters = 50, kHeadingCharacters = 105;
constexpr const char* kGridColor = "#ddd";
constexpr const char* kFrameColor = "#444";

// A text of every graph when it is the same for all, else nothing.
std::string Shared(const std::vector<PredictedGraph>& graphs, std::string PredictedGraph::*text) {
  for (const PredictedGraph& graph : graphs)
    if (graph.*text != graphs[0].*text) return "";
  return graphs[0].*text;
}

// Returns the texts that are the same for all graphs, but for their names.
PredictedGraph SharedTexts(const std::vector<PredictedGraph>& graphs) {
  PredictedGraph shared;
  for (auto text : {&PredictedGraph::sizes, &PredictedGraph::device, &PredictedGraph::cache})
    shared.*text = Shared(graphs, text);
  return shared;
}

// The label of each graph, less what is the same for all.
std::vector<std::string> Labels(const std::vector<PredictedGraph>& graphs, const PredictedGraph& shared) {
  std::vector<std::string> labels;
  for (const PredictedGraph& graph : graphs) {
    PredictedGraph own;
    own.name = graph.name;
    for (auto text : {&PredictedGraph::sizes, &PredictedGraph::device, &PredictedGraph::cache})
      if ((shared.*text).empty()) own.*text = graph.*text;
    labels.push_back(GraphLabel(own));
  }
  return labels;
}

std::string Count(size_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::string Heading(const char* title, const PredictedGraph& shared, const std::string& remark) {
  const std::string context = GraphLabel(shared);
  const std::string heading =
      Shorten(absl::StrCat(title, context.empty() ? "" : ", ", context), kHeadingCharacters);
  return absl::StrCat(SvgText(16, 22, heading, {.size = 14, .bold = true}), SvgText(16, 44, remark));
}

std::string Legend(const std::vector<std::string>& labels) {
  std::string legend;
  double y = kTop + 8;
  const int shown = std::min(static_cast<int>(labels.size()), kLegendRows);
  for (int i = 0; i < shown; ++i, y += kLegendRow) {
    const SeriesStyle style = StyleOfSeries(i);
    absl::StrAppend(&legend, "<g fill=\"", style.color, "\">\n",
                    SvgMarker(style.shape, kLegendLeft, y, EscapeXml(labels[i])), "</g>\n",
                    SvgText(kLegendLeft + 12, y + 4, Shorten(labels[i], kLegendCharacters)));
  }
  if (shown < static_cast<int>(labels.size()))
    absl::StrAppend(&legend,
                    SvgText(kLegendLeft + 12, y + 4, absl::StrCat("and ", labels.size() - shown, " more")));
  return legend;
}

// Grid lines, labels of ticks and what the axes are; `label` makes the text of a tick.
template <typename Label>
std::string XAxis(const LogAxis& axis, const std::vector<double>& ticks, Label label, const char* what) {
  std::string text;
  for (double tick : ticks)
    absl::StrAppend(&text, SvgLine(axis.At(tick), kTop, axis.At(tick), kBottom, kGridColor),
                    SvgText(axis.At(tick), kBottom + 16, label(tick), {.anchor = "middle", .size = 11}));
  return absl::StrCat(text, SvgText((kLeft + kRight) / 2, kBottom + 38, what, {.anchor = "middle"}));
}

template <typename Label>
std::string YAxis(const LogAxis& axis, const std::vector<double>& ticks, Label label, const char* what) {
  std::string text;
  for (double tick : ticks)
    absl::StrAppend(&text, SvgLine(kLeft, axis.At(tick), kRight, axis.At(tick), kGridColor),
                    SvgText(kLeft - 8, axis.At(tick) + 4, label(tick), {.anchor = "end", .size = 11}));
  return absl::StrCat(text, "<g transform=\"translate(24 ", (kTop + kBottom) / 2, ") rotate(-90)\">\n",
                      SvgText(0, 0, what, {.anchor = "middle"}), "</g>\n");
}

std::string PlotBorder() {
  return absl::StrFormat(
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"%s\"/>\n", kLeft,
      kTop, kRight - kLeft, kBottom - kTop, kFrameColor);
}

// The band |y / x - 1| <= error, cut off where the axes end.
std::string ErrorBand(const LogAxis& x, const LogAxis& y, double error) {
  const double low = x.low(), high = x.high(), over = 1 + error, under = 1 - error;
  const struct {
    double measured, predicted;
  } corners[] = {{low, low},   {low, low * over},    {high / over, high},
                 {high, high}, {high, high * under}, {low / under, low}};
  std::string points;
  for (const auto& corner : corners)
    absl::StrAppendFormat(&points, "%s%.1f,%.1f", points.empty() ? "" : " ", x.At(corner.measured),
                          y.At(corner.predicted));
  return absl::StrCat("<polygon points=\"", points, "\" fill=\"#888\" fill-opacity=\"0.18\"/>\n");
}

}  // namespace

absl::StatusOr<std::string> PlotPredictedAgainstMeasured(const std::vector<PredictedGraph>& graphs) {
  FUSION_RETURN_IF_ERROR(CheckPredictions(graphs));
  double low = graphs[0].candidates[0].measured_seconds, high = low;
  size_t candidates = 0;
  for (const PredictedGraph& graph : graphs) {
    candidates += graph.candidates.size();
    for (const PredictedCandidate& candidate : graph.candidates) {
      low = std::min({low, candidate.measured_seconds, candidate.predicted_seconds});
      high = std::max({high, candidate.measured_seconds, candidate.predicted_seconds});
    }
  }
  // At least a factor of 2.5, so that both axes have several ticks.
  const double margin = std::max(1.08, std::sqrt(2.5 * low / high));
  low /= margin;
  high *= margin;
  const LogAxis x(low, high, kLeft, kRight), y(low, high, kBottom, kTop);

  const PredictedGraph shared = SharedTexts(graphs);
  const std::vector<std::string> labels = Labels(graphs, shared);
  std::string body = Heading("Predicted against measured time", shared,
                             absl::StrCat(Count(graphs.size(), "graph"), ", ", Count(candidates, "candidate"),
                                          "; grey: predicted within 10 % of the measured time"));
  const std::vector<double> ticks = LogTicks(low, high);
  absl::StrAppend(&body, XAxis(x, ticks, TimeLabel, "measured time"),
                  YAxis(y, ticks, TimeLabel, "predicted time"), ErrorBand(x, y, 0.1),
                  SvgLine(x.At(low), y.At(low), x.At(high), y.At(high), kFrameColor), PlotBorder());
  for (size_t i = 0; i < graphs.size(); ++i) {
    const SeriesStyle style = StyleOfSeries(static_cast<int>(i));
    const std::string label = EscapeXml(labels[i]);
    absl::StrAppend(&body, "<g fill=\"", style.color, "\" fill-opacity=\"0.75\">\n");
    int position = 0;
    for (int index : PredictedOrder(graphs[i])) {
      const PredictedCandidate& candidate = graphs[i].candidates[index];
      const double predicted = candidate.predicted_seconds, measured = candidate.measured_seconds;
      const std::string times =
          absl::StrCat("predicted ", TimeLabel(predicted), ", measured ", TimeLabel(measured));
      const std::string title = absl::StrCat(label, ", position ", ++position, ": ", times);
      absl::StrAppend(&body, SvgMarker(style.shape, x.At(measured), y.At(predicted), title));
    }
    absl::StrAppend(&body, "</g>\n");
  }
  return SvgDocument(kWidth, kHeight, absl::StrCat(body, Legend(labels)));
}

absl::StatusOr<std::string> PlotConvergence(const std::vector<PredictedGraph>& graphs) {
  FUSION_RETURN_IF_ERROR(CheckPredictions(graphs));
  double worst = 1, most = 2;
  for (const PredictedGraph& graph : graphs) {
    worst = std::max(worst, BestSoFar(graph).front());
    most = std::max(most, static_cast<double>(graph.candidates.size()));
  }
  // Both begin at 1, at a little distance from the border.
  worst = std::max(worst, 1.05);
  const LogAxis x(std::pow(most, -0.03), std::pow(most, 1.03), kLeft, kRight);
  const LogAxis y(std::pow(worst, -0.03), std::pow(worst, 1.03), kBottom, kTop);
  std::vector<double> counts = LogTicks(1, most);
  counts.erase(
      std::remove_if(counts.begin(), counts.end(), [](double tick) { return tick != std::floor(tick); }),
      counts.end());

  const PredictedGraph shared = SharedTexts(graphs);
  const std::vector<std::string> labels = Labels(graphs, shared);
  std::string body =
      Heading("Best so far, measured in predicted order", shared,
              absl::StrCat(Count(graphs.size(), "graph"), "; markers: a faster candidate, and the last one"));
  auto number = [](double tick) { return absl::StrFormat("%g", tick); };
  absl::StrAppend(&body, XAxis(x, counts, number, "candidates measured, in predicted order"),
                  YAxis(y, RatioTicks(y.high()), number, "best time so far / best time of all"),
                  PlotBorder());
  for (size_t i = 0; i < graphs.size(); ++i) {
    const SeriesStyle style = StyleOfSeries(static_cast<int>(i));
    const std::vector<double> best = BestSoFar(graphs[i]);
    const std::string label = EscapeXml(labels[i]);
    std::string path, markers;
    for (size_t k = 0; k < best.size(); ++k) {
      const bool faster = k == 0 || best[k] < best[k - 1], last = k + 1 == best.size();
      if (!faster && !last) continue;
      const double x_at = x.At(static_cast<double>(k + 1)), y_at = y.At(best[k]);
      absl::StrAppend(&path, k == 0 ? absl::StrFormat("M%.1f %.1f", x_at, y_at)
                                    : absl::StrFormat(" H%.1f V%.1f", x_at, y_at));
      const std::string title =
          absl::StrFormat("%s, after %s: %.3f", label, Count(k + 1, "candidate"), best[k]);
      absl::StrAppend(&markers, SvgMarker(style.shape, x_at, y_at, title));
    }
    absl::StrAppend(&body, "<g fill=\"", style.color, "\" fill-opacity=\"0.75\">\n<path d=\"", path,
                    "\" fill=\"none\" stroke=\"", style.color,
                    "\" stroke-width=\"1.5\" stroke-opacity=\"0.75\"/>\n", markers, "</g>\n");
  }
  return SvgDocument(kWidth, kHeight, absl::StrCat(body, Legend(labels)));
}

}  // namespace fusion
