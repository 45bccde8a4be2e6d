// The report on predictions.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/number_format.h"
#include "client/cli/render.h"
#include "client/cli/table.h"

namespace fusion {
namespace {

const char* CacheName(v1::CacheState cache) { return cache == v1::WARM ? "warm" : "cold"; }

// Unlike a share of a bound, none is a figure, too.
std::string PercentText(double share) { return share == 0 ? "0 %" : FormatShare(share); }

std::string TauText(double tau) { return absl::StrFormat("%.2f", tau); }

Json RegretJson(const v1::PredictionRegret& regret) {
  return {{"first", regret.first()}, {"first_3", regret.first_3()}, {"first_5", regret.first_5()}};
}

Json GraphAccuracyJson(const v1::GraphAccuracy& graph) {
  Json positions = Json::array();
  for (int position : graph.fastest_positions()) positions.push_back(position);
  return {{"job", graph.job()},
          {"graph", graph.graph()},
          {"sizes", graph.sizes()},
          {"device", graph.device()},
          {"cache", CacheName(graph.cache())},
          {"candidates", graph.candidates()},
          {"median_absolute_error", graph.median_absolute_error()},
          {"bias", graph.bias()},
          {"kendall_tau", graph.has_kendall_tau() ? Json(graph.kendall_tau()) : Json()},
          {"fastest_positions", std::move(positions)},
          {"best_position", graph.best_position()},
          {"best_position_with_ties", graph.best_position_with_ties()},
          {"regret", RegretJson(graph.regret())}};
}

std::string GraphTable(const v1::ReportModelResponse& report, bool several_devices, const TextStyle& style) {
  Table table;
  table.AddColumn("graph", Table::Align::kLeft);
  table.AddColumn("sizes", Table::Align::kLeft);
  if (several_devices) table.AddColumn("device", Table::Align::kLeft);
  table.AddColumn("cache", Table::Align::kLeft);
  table.AddColumn("candidates", Table::Align::kRight);
  table.AddColumn("median error", Table::Align::kRight);
  table.AddColumn("tau", Table::Align::kRight);
  table.AddColumn("fastest at", Table::Align::kLeft);
  table.AddColumn("first slower by", Table::Align::kRight);
  for (const v1::GraphAccuracy& graph : report.graphs()) {
    std::vector<std::string> row = {graph.graph(), graph.sizes()};
    if (several_devices) row.push_back(graph.device());
    for (std::string cell :
         {std::string(CacheName(graph.cache())), FormatCount(graph.candidates()),
          PercentText(graph.median_absolute_error()),
          graph.has_kendall_tau() ? TauText(graph.kendall_tau()) : "-",
          absl::StrJoin(graph.fastest_positions(), " "), PercentText(graph.regret().first())})
      row.push_back(std::move(cell));
    table.AddRow(std::move(row));
  }
  return absl::StrCat(table.Print(style.width),
                      "\nfastest at: positions in predicted order of the five fastest, fastest first\n",
                      "first slower by: than the fastest, were only the best predicted one measured\n");
}

std::string CostText(const char* which, double median, double largest) {
  return absl::StrCat(which, " is slower than the fastest by ", PercentText(median), " in the median, ",
                      PercentText(largest), " at most\n");
}

}  // namespace

Json ModelReportJson(const v1::ReportModelResponse& report, const std::string& measured_plot,
                     const std::string& convergence_plot) {
  Json graphs = Json::array();
  for (const v1::GraphAccuracy& graph : report.graphs()) graphs.push_back(GraphAccuracyJson(graph));
  return {
      {"schema", "fusion.model_report/1"},
      {"graphs", std::move(graphs)},
      {"candidates", report.candidates()},
      {"median_absolute_error", report.median_absolute_error()},
      {"median_kendall_tau", report.has_median_kendall_tau() ? Json(report.median_kendall_tau()) : Json()},
      {"mean_kendall_tau", report.has_mean_kendall_tau() ? Json(report.mean_kendall_tau()) : Json()},
      {"least_kendall_tau", report.has_least_kendall_tau() ? Json(report.least_kendall_tau()) : Json()},
      {"best_in_first_5", report.best_in_first_5()},
      {"best_in_first_5_with_ties", report.best_in_first_5_with_ties()},
      {"first_3_within_2_percent", report.first_3_within_2_percent()},
      {"median_regret", RegretJson(report.median_regret())},
      {"largest_regret", RegretJson(report.largest_regret())},
      {"measured_plot", measured_plot.empty() ? Json() : Json(measured_plot)},
      {"convergence_plot", convergence_plot.empty() ? Json() : Json(convergence_plot)}};
}

std::string ModelReportText(const v1::ReportModelResponse& report, const TextStyle& style) {
  std::set<std::string> devices;
  for (const v1::GraphAccuracy& graph : report.graphs()) devices.insert(graph.device());
  const bool several = devices.size() > 1;
  std::string text = absl::StrCat(
      GraphTable(report, several, style), "\n", Counted(report.graphs_size(), "graph"), ", ",
      Counted(report.candidates(), "candidate"), " on ",
      several ? Counted(static_cast<int64_t>(devices.size()), "device") : absl::StrJoin(devices, ""), "\n");
  absl::StrAppend(&text, "predicted times are off by ", PercentText(report.median_absolute_error()),
                  " in the median over all candidates\n",
                  "their order against the measured one (Kendall's tau; 1: the same, 0: no relation): ");
  if (report.has_median_kendall_tau()) {
    absl::StrAppend(&text, TauText(report.median_kendall_tau()), " in the median, ",
                    TauText(report.mean_kendall_tau()), " on average, ", TauText(report.least_kendall_tau()),
                    " at least\n");
  } else {
    absl::StrAppend(&text, "none, no graph has candidates whose times differ\n");
  }
  absl::StrAppend(&text, "the fastest is among the first five predicted for ",
                  PercentText(report.best_in_first_5()),
                  " of the graphs; it or one that cannot be told from it, for ",
                  PercentText(report.best_in_first_5_with_ties()), "\n",
                  "the best of the first three predicted is within 2 % of the fastest for ",
                  PercentText(report.first_3_within_2_percent()), " of the graphs\n");
  const v1::PredictionRegret &median = report.median_regret(), &largest = report.largest_regret();
  absl::StrAppend(&text, CostText("the first predicted", median.first(), largest.first()),
                  CostText("the best of the first three", median.first_3(), largest.first_3()),
                  CostText("the best of the first five", median.first_5(), largest.first_5()));
  return text;
}

Json ModelResetJson(const v1::ResetModelResponse& forgotten) {
  return {{"schema", "fusion.model_reset/1"},
          {"kernel_times", forgotten.kernel_times()},
          {"statistics", forgotten.statistics()},
          {"routine_tables", forgotten.routine_tables()}};
}

std::string ModelResetText(const v1::ResetModelResponse& forgotten) {
  return absl::StrCat("forgotten: times of ", Counted(forgotten.kernel_times(), "kernel"), ", ",
                      Counted(forgotten.statistics(), "set"), " of corrections, times of ",
                      Counted(forgotten.routine_tables(), "routine"),
                      "\nlater jobs measure and learn them anew\n");
}

}  // namespace fusion
