#include "client/cli/tuning_plots.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/plots/axis.h"
#include "base/plots/svg.h"

namespace fusion {
namespace {

constexpr const char* kGridColor = "#ddd";
constexpr const char* kFrameColor = "#444";
constexpr const char* kErrorColor = "#999";
constexpr double kTop = 64, kLeft = 84, kBelow = 52, kBetween = 24;
constexpr int kMostTitles = 100;  // characters of the heading

struct Tick {
  double value;
  std::string label;
};

// Where the panel is, in pixels.
struct Panel {
  double left, right, top, bottom;
};

std::string ValueLabel(double value, const std::string& unit) {
  if (unit == "s") return TimeLabel(value);
  return absl::StrFormat("%.3g%s%s", value, unit.empty() ? "" : " ", unit);
}

std::string Number(double value) { return absl::StrFormat("%g", value); }

std::string Border(const Panel& panel) {
  return absl::StrFormat(
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"%s\"/>\n",
      panel.left, panel.top, panel.right - panel.left, panel.bottom - panel.top, kFrameColor);
}

// The values of all configurations, with room around; at least a factor of 1.25, so that noise does not fill
// the plot.
LogAxis ValueAxis(double low, double high, const Panel& panel) {
  const double margin = std::max(1.06, std::sqrt(1.25 * low / high));
  return LogAxis(low / margin, high * margin, panel.bottom, panel.top);
}

std::vector<Tick> ValueTicks(const LogAxis& axis, const std::string& unit) {
  std::vector<double> values = LogTicks(axis.low(), axis.high());
  if (values.size() < 2) values = LinearTicks(axis.low(), axis.high(), 6);
  std::vector<Tick> ticks;
  for (const double value : values) ticks.push_back({value, ValueLabel(value, unit)});
  return ticks;
}

std::string ValueGrid(const LogAxis& axis, const std::string& unit, const Panel& panel, bool labels) {
  std::string text;
  for (const Tick& tick : ValueTicks(axis, unit)) {
    absl::StrAppend(&text,
                    SvgLine(panel.left, axis.At(tick.value), panel.right, axis.At(tick.value), kGridColor));
    if (labels)
      absl::StrAppend(
          &text, SvgText(panel.left - 8, axis.At(tick.value) + 4, tick.label, {.anchor = "end", .size = 11}));
  }
  return text;
}

std::string SideLabel(const Panel& panel, const std::string& what) {
  return absl::StrCat("<g transform=\"translate(", absl::StrFormat("%.1f", panel.left - 62), " ",
                      absl::StrFormat("%.1f", (panel.top + panel.bottom) / 2), ") rotate(-90)\">\n",
                      SvgText(0, 0, what, {.anchor = "middle"}), "</g>\n");
}

std::string BottomGrid(const std::vector<Tick>& ticks, const std::function<double(double)>& at,
                       const Panel& panel, const std::string& what) {
  std::string text;
  for (const Tick& tick : ticks)
    absl::StrAppend(&text, SvgLine(at(tick.value), panel.top, at(tick.value), panel.bottom, kGridColor),
                    SvgText(at(tick.value), panel.bottom + 16, Shorten(tick.label, 14),
                            {.anchor = "middle", .size = 11}));
  return absl::StrCat(text,
                      SvgText((panel.left + panel.right) / 2, panel.bottom + 36, what, {.anchor = "middle"}));
}

struct ParameterAxis {
  std::function<double(double)> at;
  std::vector<Tick> ticks;
};

ParameterAxis AxisOf(const PlottedParameter& parameter, const Panel& panel) {
  using Scale = PlottedParameter::Scale;
  const int most = std::max(4, static_cast<int>((panel.right - panel.left) / 60));
  double low = parameter.lower, high = parameter.upper;
  ParameterAxis axis;
  if (parameter.scale == Scale::kLogarithmic || parameter.scale == Scale::kPowersOfTwo) {
    const double margin = std::max(std::pow(high / low, 0.04), high > low ? 1.0 : 2.0);
    const LogAxis places(low / margin, high * margin, panel.left, panel.right);
    axis.at = [places](double value) { return places.At(value); };
    if (parameter.scale == Scale::kLogarithmic && high > low * 2.5) {
      for (const double value : LogTicks(low, high)) axis.ticks.push_back({value, Number(value)});
    } else {
      // Not more than there is room for.
      const double powers = std::log2(high / low);
      const double stride = std::exp2(std::max(1.0, std::ceil(powers / (most - 1))));
      for (double value = low; value <= high * (1 + 1e-9); value *= stride)
        axis.ticks.push_back({value, Number(value)});
    }
    return axis;
  }
  const double margin = high > low ? (high - low) * 0.05 : 1;
  const LinearAxis places(low - margin, high + margin, panel.left, panel.right);
  axis.at = [places](double value) { return places.At(value); };
  if (parameter.scale == Scale::kNamed) {
    const size_t stride =
        (parameter.names.size() + static_cast<size_t>(most) - 1) / static_cast<size_t>(most);
    for (size_t i = 0; i < parameter.names.size(); i += std::max<size_t>(stride, 1))
      axis.ticks.push_back({static_cast<double>(i), parameter.names[i]});
  } else if (high > low) {
    for (const double value : LinearTicks(low, high, most)) axis.ticks.push_back({value, Number(value)});
  } else {
    axis.ticks.push_back({low, Number(low)});
  }
  return axis;
}

std::string Heading(const PlottedTuning& tuning, const std::string& title, const std::string& remark) {
  return absl::StrCat(
      SvgText(16, 22,
              Shorten(absl::StrCat(title, tuning.heading.empty() ? "" : ", ", tuning.heading), kMostTitles),
              {.size = 14, .bold = true}),
      SvgText(16, 44, remark));
}

std::string Points(const PlottedTuning& tuning, size_t parameter, const ParameterAxis& x, const LogAxis& y) {
  std::string errors, points, marked;
  const SeriesStyle all = StyleOfSeries(0), best = StyleOfSeries(1), defaults = StyleOfSeries(2);
  for (size_t i = 0; i < tuning.configurations.size(); ++i) {
    const PlottedConfiguration& configuration = tuning.configurations[i];
    const double at = x.at(configuration.values[parameter]);
    // Standard errors tell something where one value stands for one configuration.
    if (tuning.parameters.size() == 1 && configuration.standard_error > 0) {
      const double low = std::max(configuration.mean - configuration.standard_error, y.low());
      const double high = std::min(configuration.mean + configuration.standard_error, y.high());
      absl::StrAppend(&errors, SvgLine(at, y.At(low), at, y.At(high), kErrorColor),
                      SvgLine(at - 3, y.At(low), at + 3, y.At(low), kErrorColor),
                      SvgLine(at - 3, y.At(high), at + 3, y.At(high), kErrorColor));
    }
    const bool is_best = static_cast<int>(i) == tuning.best,
               is_default = static_cast<int>(i) == tuning.defaults;
    const std::string title = EscapeXml(absl::StrCat(is_best      ? "best: "
                                                     : is_default ? "default: "
                                                                  : "",
                                                     configuration.title));
    if (is_best || is_default) {
      const SeriesStyle& style = is_best ? best : defaults;
      absl::StrAppend(&marked, "<g fill=\"", style.color, "\">\n",
                      SvgMarker(style.shape, at, y.At(configuration.mean), title), "</g>\n");
    } else {
      absl::StrAppend(&points, SvgMarker(all.shape, at, y.At(configuration.mean), title));
    }
  }
  return absl::StrCat(errors, "<g fill=\"", all.color, "\" fill-opacity=\"0.6\">\n", points, "</g>\n",
                      marked);
}

}  // namespace

absl::StatusOr<std::string> PlotLandscape(const PlottedTuning& tuning) {
  if (tuning.parameters.empty()) return absl::InvalidArgumentError("there are no parameters to plot");
  if (tuning.configurations.empty()) return absl::InvalidArgumentError("nothing has been measured yet");
  double low = tuning.configurations[0].mean, high = low;
  for (const PlottedConfiguration& configuration : tuning.configurations) {
    low = std::min(low, configuration.mean);
    high = std::max(high, configuration.mean);
  }
  const int count = static_cast<int>(tuning.parameters.size());
  const int columns = count == 1 ? 1 : std::min(3, static_cast<int>(std::ceil(std::sqrt(count))));
  const int rows = (count + columns - 1) / columns;
  const double panel_width = count == 1 ? 760 : 280, panel_height = count == 1 ? 440 : 220;
  const int width = static_cast<int>(kLeft + columns * panel_width + (columns - 1) * kBetween + 32);
  const int height = static_cast<int>(kTop + rows * (panel_height + kBelow) + 8);
  std::string body = Heading(
      tuning, absl::StrCat("Measured ", tuning.objective),
      absl::StrCat(tuning.configurations.size(),
                   tuning.configurations.size() == 1 ? " configuration" : " configurations",
                   "; diamond: the best; square: the default", count == 1 ? "; bars: standard errors" : ""));
  for (int i = 0; i < count; ++i) {
    Panel panel;
    panel.left = kLeft + (i % columns) * (panel_width + kBetween);
    panel.right = panel.left + panel_width;
    panel.top = kTop + (i / columns) * (panel_height + kBelow);
    panel.bottom = panel.top + panel_height;
    const LogAxis y = ValueAxis(low, high, panel);
    const ParameterAxis x = AxisOf(tuning.parameters[static_cast<size_t>(i)], panel);
    absl::StrAppend(&body, ValueGrid(y, tuning.unit, panel, i % columns == 0),
                    BottomGrid(x.ticks, x.at, panel, tuning.parameters[static_cast<size_t>(i)].name),
                    i % columns == 0 ? SideLabel(panel, tuning.objective) : "", Border(panel),
                    Points(tuning, static_cast<size_t>(i), x, y));
  }
  return SvgDocument(width, height, body);
}

absl::StatusOr<std::string> PlotTuningConvergence(const PlottedTuning& tuning) {
  if (tuning.convergence.empty()) return absl::InvalidArgumentError("nothing has been measured yet");
  double low = tuning.convergence[0].second, high = low;
  for (const auto& [evaluations, value] : tuning.convergence) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const double last = std::max<double>(
      {static_cast<double>(tuning.evaluations), static_cast<double>(tuning.convergence.back().first), 1.0});
  const Panel panel{kLeft, kLeft + 760, kTop, kTop + 440};
  const LogAxis y = ValueAxis(low, high, panel);
  const LinearAxis x(0, last * 1.02, panel.left, panel.right);
  std::vector<Tick> ticks;
  for (const double tick : LinearTicks(0, std::max(last, 4.0), 10))
    if (tick <= last) ticks.push_back({tick, Number(tick)});
  std::string body =
      Heading(tuning, absl::StrCat("Expected ", tuning.objective, " of the best"),
              absl::StrFormat("%g evaluations; markers: another configuration became the best", last));
  absl::StrAppend(&body, ValueGrid(y, tuning.unit, panel, true),
                  BottomGrid(
                      ticks, [&](double value) { return x.At(value); }, panel, "runs of proposals"),
                  SideLabel(panel, tuning.objective), Border(panel));
  const SeriesStyle style = StyleOfSeries(0);
  std::string path, markers;
  for (const auto& [evaluations, value] : tuning.convergence) {
    const double x_at = x.At(static_cast<double>(evaluations)), y_at = y.At(value);
    absl::StrAppend(&path, path.empty() ? absl::StrFormat("M%.1f %.1f", x_at, y_at)
                                        : absl::StrFormat(" H%.1f V%.1f", x_at, y_at));
    absl::StrAppend(
        &markers,
        SvgMarker(style.shape, x_at, y_at,
                  EscapeXml(absl::StrCat("after ", evaluations, ": ", ValueLabel(value, tuning.unit)))));
  }
  absl::StrAppendFormat(&path, " H%.1f", x.At(last));
  absl::StrAppend(&body, "<g fill=\"", style.color, "\">\n<path d=\"", path, "\" fill=\"none\" stroke=\"",
                  style.color, "\" stroke-width=\"1.5\"/>\n", markers, "</g>\n");
  return SvgDocument(static_cast<int>(panel.right + 32), static_cast<int>(panel.bottom + kBelow + 8), body);
}

}  // namespace fusion
