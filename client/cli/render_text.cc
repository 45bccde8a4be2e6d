#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/simulated_device.h"
#include "client/cli/number_format.h"
#include "client/cli/render.h"
#include "client/cli/table.h"

namespace fusion {
namespace {

// KernelSummary.skeleton of kernels of loops in C.
constexpr char kLoopsSkeleton[] = "loops";
constexpr int kRowsUnlessAll = 10;
constexpr char kBold[] = "\033[1m";
constexpr char kDim[] = "\033[2m";
constexpr char kPlain[] = "\033[0m";

std::string IntervalText(const v1::Statistics& statistics, const TimeUnit& unit) {
  return absl::StrCat(FormatInUnit(statistics.median(), unit), " [", FormatInUnit(statistics.low(), unit),
                      ", ", FormatInUnit(statistics.high(), unit), "]");
}

std::string SizesText(const v1::GraphSummary& graph) {
  std::map<std::string, int64_t> sizes(graph.size_values().begin(), graph.size_values().end());
  return absl::StrJoin(sizes, ", ", [](std::string* out, const auto& size) {
    absl::StrAppend(out, size.first, " = ", FormatCount(size.second));
  });
}

std::string SearchText(const v1::SearchSummary& search) {
  const auto within = [](double gap) { return absl::StrCat("within ", FormatShare(gap), " of the best"); };
  std::string proof = search.proved_optimal() ? "proved optimal under the prediction" : within(search.gap());
  if (!search.complete() && !search.proved_optimal() && search.fusions_by_size_size() > 0)
    absl::StrAppend(&proof, ", ", search.listed_gap() > 0 ? within(search.listed_gap()) : "the best",
                    " of the fusions looked at");
  std::string more;
  const char* const candidates = search.fusions() > 0 ? "candidate" : "case";  // of loops nothing is fused
  if (search.timed() > 0)
    more = absl::StrCat(
        Counted(search.timed(), candidates), " timed; ",
        search.possible_gain() > 0
            ? absl::StrCat("others are at most ", FormatShare(search.possible_gain()), " faster")
            : "no other is faster",
        ", as predicted less two standard deviations of ", FormatShare(search.prediction().deviation()), " (",
        search.prediction().jobs() == 0
            ? "assumed"
            : absl::StrCat("learned from ", Counted(search.prediction().jobs(), "job")),
        ")\n");
  if (search.fusions() == 0) return absl::StrCat(Counted(search.covers(), candidates), "; ", more);
  return absl::StrCat("searched ", Counted(search.fusions(), "fusion"), ", ",
                      Counted(search.fusion_implementations(), "implementation"), ", ",
                      Counted(search.covers(), "cover"), " in ", FormatSeconds(search.seconds()), "; ", proof,
                      "\n", more);
}

// The line numbered `row` (0 is the header) in bold.
std::string Emphasize(const std::string& table, size_t row, bool color) {
  if (!color) return table;
  std::vector<std::string> lines = absl::StrSplit(table, '\n');
  if (row < lines.size() && !lines[row].empty()) lines[row] = absl::StrCat(kBold, lines[row], kPlain);
  return absl::StrJoin(lines, "\n");
}

std::vector<const v1::Candidate*> Ranked(const v1::JobResult& result) {
  std::vector<const v1::Candidate*> ranked;
  for (const v1::Candidate& candidate : result.candidates())
    if (candidate.outcome() == v1::OK) ranked.push_back(&candidate);
  return ranked;
}

// Returns true only for results that say whether times are steady.
bool IsUnsteady(const v1::Candidate& candidate) {
  return !candidate.steady() && candidate.measured().quick() > 0;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string FailuresText(const v1::JobResult& result) {
  std::map<v1::Outcome, std::vector<const v1::Candidate*>> failures;
  for (const v1::Candidate& candidate : result.candidates())
    if (candidate.outcome() != v1::OK) failures[candidate.outcome()].push_back(&candidate);
  std::string text;
  for (const auto& [outcome, candidates] : failures) {
    absl::StrAppend(&text, "not ranked: ", Counted(static_cast<int64_t>(candidates.size()), "candidate"),
                    " with ", v1::Outcome_Name(outcome));
    const std::string message = FirstLine(candidates.front()->message());
    absl::StrAppend(&text, message.empty() ? "" : absl::StrCat(" (", message, ")"), "\n");
  }
  return text;
}

// A result of loops in C has cases where others have covers of a graph.
bool IsOfLoops(const v1::JobResult& result) {
  return result.candidates_size() > 0 && result.candidates(0).kernels_size() > 0 &&
         result.candidates(0).kernels(0).skeleton() == kLoopsSkeleton;
}

// Not cut to the width: what tells two implementations apart may be at the end.
std::string ImplementationsText(const std::vector<const v1::Candidate*>& ranked, size_t shown) {
  std::string text;
  for (size_t i = 0; i < shown; ++i)
    if (!ranked[i]->description().empty())
      absl::StrAppend(&text, i == 0 ? "\nimplementations (--make takes a kernel's)\n" : "",
                      absl::StrFormat("%3d  ", ranked[i]->rank()), ranked[i]->description(), "\n");
  return text;
}

std::string CaseText(const v1::Candidate& candidate) {
  return absl::StrCat(candidate.asserted().empty() ? "" : "* ", candidate.description());
}
std::string AssertedText(const std::vector<const v1::Candidate*>& ranked) {
  if (ranked.empty() || ranked[0]->asserted().empty()) return "";
  return absl::StrCat("*  parallel by nothing but a pragma: ", ranked[0]->asserted(), "\n");
}

std::string RankedTable(const std::vector<const v1::Candidate*>& ranked, const v1::JobResult& result,
                        const TimeUnit& unit, const TextStyle& style) {
  Table table;
  table.AddColumn("rank", Table::Align::kRight);
  table.AddColumn(absl::StrCat("time (", unit.name, ")"), Table::Align::kRight);
  table.AddColumn("speed-up", Table::Align::kRight);
  const bool loops = IsOfLoops(result);
  if (!loops) table.AddColumn("of floor", Table::Align::kRight);
  table.AddColumn("predicted", Table::Align::kRight);
  table.AddColumn("kernels", Table::Align::kRight);
  table.AddColumn(loops ? "case" : "fusions", Table::Align::kLeft);
  size_t shown = style.all ? ranked.size() : std::min<size_t>(ranked.size(), kRowsUnlessAll);
  for (size_t i = 0; i < shown; ++i) {
    const v1::Candidate& candidate = *ranked[i];
    const double median = candidate.measured().median();
    std::vector<std::string> cells = {
        absl::StrCat(candidate.rank(), candidate.tie() && candidate.rank() > 1 ? "=" : " "),
        absl::StrCat(IntervalText(candidate.measured(), unit), IsUnsteady(candidate) ? "~" : "",
                     candidate.below_floor() ? "!"
                     : IsUnsteady(candidate) ? ""
                                             : " "),
        FormatSpeedup(candidate.speedup())};
    if (!loops) cells.push_back(FormatShare(median > 0 ? result.floor_seconds() / median : 0));
    cells.push_back(absl::StrCat(candidate.predicted_rank()));
    cells.push_back(absl::StrCat(candidate.kernels_size()));
    cells.push_back(loops ? CaseText(candidate) : FusionsText(candidate));
    table.AddRow(std::move(cells));
  }
  std::string text = Emphasize(table.Print(style.width), 1, style.color);
  if (!loops) text += ImplementationsText(ranked, shown);
  if (shown < ranked.size())
    absl::StrAppend(&text, "and ", ranked.size() - shown, " more; --all shows every one\n");
  return text;
}

// The table of a job that measured nothing has no times but predicted ones.
std::string PredictedTable(const std::vector<const v1::Candidate*>& ranked, const v1::JobResult& result,
                           const TextStyle& style) {
  std::vector<double> seconds;
  for (const v1::Candidate* candidate : ranked) seconds.push_back(candidate->predicted_seconds());
  const TimeUnit unit = ChooseTimeUnit(seconds);
  Table table;
  table.AddColumn("rank", Table::Align::kRight);
  table.AddColumn(absl::StrCat("predicted (", unit.name, ")"), Table::Align::kRight);
  const bool loops = IsOfLoops(result);
  if (!loops) table.AddColumn("of floor", Table::Align::kRight);
  table.AddColumn("kernels", Table::Align::kRight);
  table.AddColumn(loops ? "case" : "fusions", Table::Align::kLeft);
  double error = 0, tolerance = 0;
  for (const v1::Candidate* candidate : ranked) {
    const double seconds = candidate->predicted_seconds();
    std::vector<std::string> cells = {absl::StrCat(candidate->rank()), FormatInUnit(seconds, unit)};
    if (!loops) cells.push_back(FormatShare(seconds > 0 ? result.floor_seconds() / seconds : 0));
    cells.push_back(absl::StrCat(candidate->kernels_size()));
    cells.push_back(loops ? CaseText(*candidate) : FusionsText(*candidate));
    table.AddRow(std::move(cells));
    error = std::max(error, candidate->max_relative_error());
    tolerance = std::max(tolerance, candidate->tolerance());
  }
  std::string text = Emphasize(table.Print(style.width), 1, style.color);
  text += loops ? AssertedText(ranked) : ImplementationsText(ranked, ranked.size());
  if (tolerance > 0)
    absl::StrAppend(&text, "\ncomputed on a host at small sizes: largest relative error ", FormatError(error),
                    ", allowed ", FormatError(tolerance), "\n");
  return text;
}

std::string FootnotesText(const std::vector<const v1::Candidate*>& ranked, const v1::JobResult& result,
                          const TextStyle& style) {
  constexpr double kSlower = 0.99;  // speed-up of the fastest, below which it is no matter of noise
  std::string text;
  auto any = [&](auto&& condition) {
    return std::any_of(ranked.begin(), ranked.end(), [&](const v1::Candidate* c) { return condition(*c); });
  };
  if (any([](const v1::Candidate& c) { return c.tie() && c.rank() > 1; }))
    text += "=  not distinguishable from rank 1 by these samples; in predicted order\n";
  if (any([](const v1::Candidate& c) { return IsUnsteady(c); }))
    text += "~  not steady: too few runs went undisturbed; by the fastest ones\n";
  if (any([](const v1::Candidate& c) { return c.speedup() > 0; }))
    text += "speed-up: the median of the ratios of neighbouring runs, not the ratio of the medians\n";
  if (any([](const v1::Candidate& c) { return c.below_floor(); }))
    text += "!  faster than moving the fewest bytes from memory allows: look twice\n";
  text += AssertedText(ranked);
  if (!IsOfLoops(result) &&
      !any([](const v1::Candidate& c) { return c.speedup() == 0 || c.speedup() >= kSlower; }))
    text += "not fusing is faster here: the unfused kernels took less time than any of these\n";
  if (result.device().driver_version() == kSimulatedDriver) {
    text += "SIMULATED: no kernel ran; times are invented and no result is verified\n";
    return style.color ? absl::StrCat(kDim, text, kPlain) : text;
  }
  double error = 0, tolerance = 0;
  for (const v1::Candidate* candidate : ranked) {
    error = std::max(error, candidate->max_relative_error());
    tolerance = std::max(tolerance, candidate->tolerance());
  }
  absl::StrAppend(&text, "verified: largest relative error ", FormatError(error));
  if (tolerance > 0) absl::StrAppend(&text, ", allowed ", FormatError(tolerance));
  text += "\n";
  return style.color ? absl::StrCat(kDim, text, kPlain) : text;
}

std::string CodeText(int code) { return absl::StatusCodeToString(static_cast<absl::StatusCode>(code)); }

// Where an implementation is of use, if not everywhere.
std::string ConditionText(const v1::ImplementationDefinition& implementation) {
  std::vector<std::string> conditions;
  if (!implementation.constraint().empty()) conditions.push_back(implementation.constraint());
  for (int type : implementation.data_types())
    conditions.push_back(v1::DataType_Name(static_cast<v1::DataType>(type)));
  return conditions.empty() ? "" : absl::StrCat(", where ", absl::StrJoin(conditions, ", "));
}

}  // namespace

std::string TargetName(v1::Target target) {
  const std::string name = target == v1::TARGET_AUTO ? "" : v1::Target_Name(target);
  return name.empty() ? "auto" : absl::AsciiStrToLower(name);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(time.seconds()), absl::UTCTimeZone());
}

std::string DeviceText(const v1::DeviceDescription& device) {
  return absl::StrCat(device.name(), " (", TargetName(device.target()), ", ", device.arch(), "), copies at ",
                      FormatBytesPerSecond(device.copy_bytes_per_second()));
}

std::string FusionsText(const v1::Candidate& candidate) {
  std::string text;
  for (const v1::FusionSummary& fusion : candidate.fusions())
    absl::StrAppend(&text, "{", absl::StrJoin(fusion.results(), " "), "}");
  return text;
}

std::string ResultText(const v1::JobResult& result, const TextStyle& style) {
  if (IsBenchmark(result)) return BenchmarkText(result, style);
  const std::vector<const v1::Candidate*> ranked = Ranked(result);
  std::vector<double> medians;
  for (const v1::Candidate* candidate : ranked) medians.push_back(candidate->measured().median());
  if (medians.empty()) medians.push_back(result.unfused().median());
  const TimeUnit unit = ChooseTimeUnit(medians);

  const std::string sizes = SizesText(result.graph());
  std::string text = absl::StrCat(result.graph().name(), sizes.empty() ? "" : absl::StrCat(" (", sizes, ")"),
                                  " on ", DeviceText(result.device()), "\n");
  std::vector<std::string> bounds;
  if (result.floor_bytes() > 0)
    bounds.push_back(absl::StrCat("floor ", FormatSeconds(result.floor_seconds()), " for ",
                                  FormatBytes(result.floor_bytes())));
  if (result.unfused().samples() > 0)
    bounds.push_back(absl::StrCat(IsOfLoops(result) ? "plain kernels " : "unfused ",
                                  IntervalText(result.unfused(), unit), " ", unit.name));
  absl::StrAppend(&text, absl::StrJoin(bounds, "; "));
  if (result.cache() == v1::WARM) absl::StrAppend(&text, "; warm times");
  if (result.predicted()) absl::StrAppend(&text, "\nPREDICTED: nothing was measured");
  absl::StrAppend(&text, "\n", SearchText(result.search()));
  if (result.routines().measured() > 0)
    absl::StrAppend(&text, "first measured ", Counted(result.routines().measured(), "routine"),
                    " of its functions, in ", FormatSeconds(result.routines().seconds()),
                    ", for this and later predictions\n");
  absl::StrAppend(&text, "\n");
  if (ranked.empty()) {
    absl::StrAppend(&text,
                    result.predicted() ? "no candidate is right\n" : "no candidate could be measured\n");
  } else if (result.predicted()) {
    absl::StrAppend(&text, PredictedTable(ranked, result, style));
  } else {
    absl::StrAppend(&text, RankedTable(ranked, result, unit, style), "\n",
                    FootnotesText(ranked, result, style));
  }
  for (const std::string& remark : result.remarks()) absl::StrAppend(&text, "note: ", remark, "\n");
  return text + FailuresText(result);
}

std::string JobText(const v1::Job& job, const TextStyle& style) {
  std::string text = absl::StrCat(job.name(), "  ", v1::JobState_Name(job.state()), "  ", job.graph().name(),
                                  "  ", TimeText(job.create_time()), "\n");
  if (job.has_error())
    absl::StrAppend(&text, CodeText(job.error().code()), ": ", job.error().message(), "\n");
  if (!job.stage().empty()) absl::StrAppend(&text, "stage: ", job.stage(), "\n");
  if (!job.waits_for().empty()) absl::StrAppend(&text, "waits: ", job.waits_for(), "\n");
  if (job.has_result()) absl::StrAppend(&text, "\n", ResultText(job.result(), style));
  return text;
}

// Returns the time from the submission of a job to its end; "" before that.
std::string TookText(const v1::Job& job) {
  if (job.state() == v1::QUEUED || job.state() == v1::RUNNING || !job.has_update_time()) return "";
  const auto micros = [](const google::protobuf::Timestamp& time) {
    return time.seconds() * 1000000 + time.nanos() / 1000;
  };
  const int64_t took = micros(job.update_time()) - micros(job.create_time());
  return took < 0 ? "" : FormatSeconds(static_cast<double>(took) * 1e-6);
}

// "0.381 ms, 2.60x"; "" where there is no rank 1.
std::string BestText(const v1::BestCandidate& best) {
  if (best.seconds() <= 0) return "";
  return absl::StrCat(FormatSeconds(best.seconds()),
                      best.predicted() ? " predicted" : absl::StrCat(", ", FormatSpeedup(best.speedup())));
}

std::string JobListText(const v1::ListJobsResponse& response, const TextStyle& style) {
  if (response.jobs().empty()) return "no jobs\n";
  Table table;
  // Where nobody has to say who he is, jobs have no owner.
  const bool owned = std::any_of(response.jobs().begin(), response.jobs().end(),
                                 [](const v1::Job& job) { return !job.user().empty(); });
  const bool ranked = std::any_of(response.jobs().begin(), response.jobs().end(),
                                  [](const v1::Job& job) { return job.best().seconds() > 0; });
  for (const char* header : {"job", "state", "target", "created", "took"})
    table.AddColumn(header, Table::Align::kLeft);
  if (ranked) table.AddColumn("rank 1", Table::Align::kLeft);
  if (owned) table.AddColumn("owner", Table::Align::kLeft);
  table.AddColumn("graph", Table::Align::kLeft);
  std::string waiting;  // below the table, where reasons are not cut to the width
  for (const v1::Job& job : response.jobs()) {
    std::vector<std::string> cells = {job.name(), v1::JobState_Name(job.state()), TargetName(job.target()),
                                      TimeText(job.create_time()), TookText(job)};
    if (ranked) cells.push_back(BestText(job.best()));
    if (owned) cells.push_back(job.user());
    cells.push_back(job.graph().name());
    table.AddRow(std::move(cells));
    if (!job.waits_for().empty()) absl::StrAppend(&waiting, job.name(), " waits: ", job.waits_for(), "\n");
  }
  return absl::StrCat(table.Print(style.width), waiting.empty() ? "" : "\n", waiting);
}

std::string FunctionListText(const v1::ListFunctionsResponse& response, const TextStyle& style) {
  Table table;
  for (const char* header : {"function", "domain", "formula"}) table.AddColumn(header, Table::Align::kLeft);
  for (const v1::FunctionDefinition& function : response.functions()) {
    const std::string formula = function.overloads().empty() ? "" : function.overloads(0).formula();
    table.AddRow({function.name(), function.domain(),
                  formula.empty() ? FirstLine(function.documentation()) : formula});
  }
  return absl::StrCat(table.Print(style.width), "\n", Counted(response.functions_size(), "function"),
                      ", library ", response.library_hash(), "\n");
}

std::string FunctionText(const v1::FunctionDefinition& function) {
  std::string text = absl::StrCat(function.name(), " (", function.domain(), ")\n");
  if (!function.documentation().empty()) absl::StrAppend(&text, function.documentation(), "\n");
  for (const v1::OverloadDefinition& overload : function.overloads()) {
    std::vector<std::string> operands;
    for (const v1::OperandDefinition& operand : overload.operands())
      operands.push_back(absl::StrCat(operand.name(), ": ", operand.type()));
    absl::StrAppend(&text, "\n", function.name(), "(", absl::StrJoin(operands, ", "), ") -> ",
                    overload.result(), "\n");
    if (!overload.formula().empty()) absl::StrAppend(&text, "  ", overload.formula(), "\n");
    std::vector<std::string> dimensions;
    for (const v1::Dimension& dimension : overload.dimensions())
      dimensions.push_back(
          absl::StrCat(dimension.name(), dimension.kind() == v1::REDUCTION ? " reduction" : " parallel"));
    if (!dimensions.empty()) absl::StrAppend(&text, "  dimensions: ", absl::StrJoin(dimensions, ", "), "\n");
    if (!overload.flops().empty()) absl::StrAppend(&text, "  flops: ", overload.flops(), "\n");
    for (const v1::ImplementationDefinition& implementation : overload.implementations())
      absl::StrAppend(&text, "  implementation: ", v1::Granularity_Name(implementation.granularity()), ", ",
                      v1::ThreadsPerElement_Name(implementation.threads()), ", ", implementation.routine(),
                      ConditionText(implementation), "\n");
  }
  return text;
}

std::string CheckText(const v1::CheckResponse& response) {
  const v1::GraphSummary& graph = response.graph();
  const std::string sizes = SizesText(graph);
  return absl::StrCat("OK: ", graph.name(), ", ", Counted(graph.nodes(), "node"),
                      sizes.empty() ? "" : absl::StrCat(", ", sizes), ", ", graph.hash(), "\n");
}

}  // namespace fusion
