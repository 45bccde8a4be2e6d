#include "client/cli/render_tune.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/number_format.h"
#include "client/cli/table.h"

namespace fusion {
namespace {

constexpr int kFirst = 10;

std::string ObjectiveName(const v1::SectionDeclaration& declaration) {
  return declaration.objective().name().empty() ? "time" : declaration.objective().name();
}

std::string UnitOf(const v1::SectionDeclaration& declaration) {
  return declaration.objective().unit().empty() ? "s" : declaration.objective().unit();
}

// The value with its unit; not known: "-".
std::string ValueText(double value, const v1::SectionDeclaration& declaration) {
  if (!(value > 0)) return "-";
  const std::string unit = UnitOf(declaration);
  const bool usual = value >= 1e-10 && value < 1e7;  // else there are too many digits
  return unit == "s" && usual ? FormatSeconds(value) : absl::StrFormat("%.4g %s", value, unit);
}

// Returns how much better than the default the best is: 2 is twice as good. 0: it is not known to be better.
double SpeedupOf(const v1::Tuning& tuning) {
  if (!tuning.better_than_default() || !(tuning.default_value() > 0) || !(tuning.best_value() > 0)) return 0;
  return tuning.declaration().objective().maximize() ? tuning.best_value() / tuning.default_value()
                                                     : tuning.default_value() / tuning.best_value();
}

bool DefaultIsBest(const v1::Tuning& tuning) {
  const v1::SectionDeclaration& declaration = tuning.declaration();
  for (int i = 0; i < declaration.parameters_size(); ++i)
    if (i >= tuning.best().values_size() ||
        tuning.best().values(i) != declaration.parameters(i).default_value())
      return false;
  return true;
}

// In a column.
std::string SpeedupText(const v1::Tuning& tuning) {
  if (tuning.below_clock()) return "below clock";
  if (const double speedup = SpeedupOf(tuning); speedup > 0) return FormatSpeedup(speedup);
  return tuning.default_value() > 0 && tuning.best_value() > 0 ? "none" : "-";
}

// After the value of the default.
std::string ComparisonText(const v1::Tuning& tuning) {
  if (!(tuning.best_value() > 0)) return "";
  if (tuning.below_clock())
    return "; runs are so short that the clock hides which configuration is better: measure several together";
  if (DefaultIsBest(tuning)) return "; it is the best that is known";
  if (!(tuning.default_value() > 0)) return tuning.better_than_default() ? "; it does not work" : "";
  if (const double speedup = SpeedupOf(tuning); speedup > 0)
    return absl::StrCat("; the best is better by ", FormatSpeedup(speedup));
  return "; the best is not better by more than both are uncertain by";
}

double ExploringShare(const v1::Tuning& tuning) {
  return tuning.total_value() > 0 ? std::max(0.0, tuning.exploration_excess() / tuning.total_value()) : 0;
}

std::string ExploringText(const v1::Tuning& tuning) {
  if (!(tuning.total_value() > 0)) return "-";
  return ExploringShare(tuning) > 0 ? FormatShare(ExploringShare(tuning)) : "0 %";
}

std::string ParameterValueText(const v1::TuningParameter& parameter, double value) {
  if (parameter.has_enumeration()) {
    const auto index = static_cast<int>(value);
    if (index >= 0 && index < parameter.enumeration().values_size())
      return parameter.enumeration().values(index);
  }
  return absl::StrFormat("%.10g", value);
}

Json ParameterValueJson(const v1::TuningParameter& parameter, double value) {
  if (parameter.has_enumeration()) return ParameterValueText(parameter, value);
  if (parameter.has_real()) return value;
  return static_cast<int64_t>(value);
}

Json ConfigurationJson(const v1::SectionDeclaration& declaration, const v1::Configuration& configuration) {
  Json json = Json::object();
  for (int i = 0; i < std::min(declaration.parameters_size(), configuration.values_size()); ++i)
    json[declaration.parameters(i).name()] =
        ParameterValueJson(declaration.parameters(i), configuration.values(i));
  return json;
}

std::string DomainText(const v1::TuningParameter& parameter) {
  switch (parameter.domain_case()) {
    case v1::TuningParameter::kInteger:
      return absl::StrCat(parameter.integer().lower(), " to ", parameter.integer().upper(), " in steps of ",
                          parameter.integer().step());
    case v1::TuningParameter::kPowerOfTwo:
      return absl::StrCat("powers of two, ", parameter.power_of_two().lower(), " to ",
                          parameter.power_of_two().upper());
    case v1::TuningParameter::kEnumeration:
      return absl::StrJoin(parameter.enumeration().values(), ", ");
    case v1::TuningParameter::kReal:
      return absl::StrFormat("%g to %g%s", parameter.real().lower(), parameter.real().upper(),
                             parameter.real().logarithmic() ? ", logarithmic" : "");
    case v1::TuningParameter::DOMAIN_NOT_SET:
      break;
  }
  return "";
}

Json DomainJson(const v1::TuningParameter& parameter) {
  Json json = {{"name", parameter.name()}};
  switch (parameter.domain_case()) {
    case v1::TuningParameter::kInteger:
      json.update({{"kind", "integer"},
                   {"lower", parameter.integer().lower()},
                   {"upper", parameter.integer().upper()},
                   {"step", parameter.integer().step()}});
      break;
    case v1::TuningParameter::kPowerOfTwo:
      json.update({{"kind", "power_of_two"},
                   {"lower", parameter.power_of_two().lower()},
                   {"upper", parameter.power_of_two().upper()}});
      break;
    case v1::TuningParameter::kEnumeration: {
      Json values = Json::array();
      for (const std::string& value : parameter.enumeration().values()) values.push_back(value);
      json.update({{"kind", "enumeration"}, {"values", std::move(values)}});
      break;
    }
    case v1::TuningParameter::kReal:
      json.update({{"kind", "real"},
                   {"lower", parameter.real().lower()},
                   {"upper", parameter.real().upper()},
                   {"logarithmic", parameter.real().logarithmic()}});
      break;
    case v1::TuningParameter::DOMAIN_NOT_SET:
      break;
  }
  if (parameter.has_default_value())
    json["default"] = ParameterValueJson(parameter, parameter.default_value());
  json["condition"] = parameter.condition();
  return json;
}

// A value that is not known is null.
Json Known(double value) { return value > 0 ? Json(value) : Json(); }

std::string ProvenanceText(const v1::Tuning& tuning) {
  switch (tuning.provenance()) {
    case v1::MEASURED:
      return "measured";
    case v1::EXACT:
      return "measured by earlier runs";
    case v1::NEAR:
      return absl::StrCat("of ", tuning.provenance_tuning(), ", for other sizes");
    case v1::OTHER_DEVICE:
      return absl::StrCat("of ", tuning.provenance_tuning(), ", on another class of device");
    default:
      return "the default, not measured yet";
  }
}

std::string PhaseText(v1::TuningPhase phase) {
  switch (phase) {
    case v1::EXPLORING:
      return "EXPLORING: proposals may be tried in every run";
    case v1::BOUNDED:
      return "BOUNDED: what proposals cost is limited";
    case v1::CONVERGED:
      return "CONVERGED: nothing better is expected";
    default:
      return "-";
  }
}

std::string ConfigurationsTable(const v1::TuningDetails& details, const TextStyle& style) {
  const v1::SectionDeclaration& declaration = details.tuning().declaration();
  Table table;
  table.AddColumn("configuration", Table::Align::kLeft);
  table.AddColumn(ObjectiveName(declaration), Table::Align::kRight);
  table.AddColumn("+-", Table::Align::kRight);
  table.AddColumn("at worst", Table::Align::kRight);
  table.AddColumn("deviation", Table::Align::kRight);
  table.AddColumn("smallest", Table::Align::kRight);
  table.AddColumn("runs", Table::Align::kRight);
  table.AddColumn("failures", Table::Align::kRight);
  const int shown =
      style.all ? details.configurations_size() : std::min(details.configurations_size(), kFirst);
  for (int i = 0; i < shown; ++i) {
    const v1::ConfigurationStatistics& statistics = details.configurations(i);
    table.AddRow(
        {ConfigurationText(declaration, statistics.configuration()),
         ValueText(statistics.mean(), declaration),
         statistics.count() > 0 ? FormatShare(statistics.relative_error()) : "-",
         ValueText(statistics.expected(), declaration),
         statistics.count() > 1 ? FormatShare(statistics.standard_deviation() / statistics.mean()) : "-",
         ValueText(statistics.minimum(), declaration), FormatCount(static_cast<int64_t>(statistics.count())),
         FormatCount(static_cast<int64_t>(statistics.failures()))});
  }
  std::string text =
      absl::StrCat("the best first, by what they are at worst within what they are uncertain by\n",
                   table.Print(style.width));
  if (shown < details.configurations_size())
    absl::StrAppend(&text, "and ", FormatCount(details.configurations_size() - shown), " more (--all)\n");
  return text;
}

}  // namespace

std::string ConfigurationText(const v1::SectionDeclaration& declaration,
                              const v1::Configuration& configuration) {
  std::vector<std::string> parts;
  for (int i = 0; i < std::min(declaration.parameters_size(), configuration.values_size()); ++i)
    parts.push_back(absl::StrCat(declaration.parameters(i).name(), "=",
                                 ParameterValueText(declaration.parameters(i), configuration.values(i))));
  return absl::StrJoin(parts, " ");
}

std::string SectionText(const v1::SectionDeclaration& declaration) {
  return absl::StrCat(declaration.program(), "/", declaration.section());
}

std::string ContextText(const v1::SectionDeclaration& declaration) {
  std::map<std::string, int64_t> sizes;
  for (const v1::ContextSize& size : declaration.context()) sizes[size.name()] = size.value();
  return absl::StrJoin(sizes, ",", absl::PairFormatter("="));
}

Json TuningJson(const v1::Tuning& tuning) {
  const v1::SectionDeclaration& declaration = tuning.declaration();
  Json context = Json::object();
  for (const v1::ContextSize& size : declaration.context()) context[size.name()] = size.value();
  Json parameters = Json::array(), constraints = Json::array();
  for (const v1::TuningParameter& parameter : declaration.parameters())
    parameters.push_back(DomainJson(parameter));
  for (const std::string& constraint : declaration.constraints()) constraints.push_back(constraint);
  const double speedup = SpeedupOf(tuning);
  const bool compared = tuning.default_value() > 0 && tuning.best_value() > 0;
  return {
      {"schema", "fusion.tuning/1"},
      {"tuning", tuning.name()},
      {"program", declaration.program()},
      {"section", declaration.section()},
      {"device_class", declaration.device_class()},
      {"context", std::move(context)},
      {"parameters", std::move(parameters)},
      {"constraints", std::move(constraints)},
      {"objective",
       {{"name", ObjectiveName(declaration)},
        {"unit", UnitOf(declaration)},
        {"maximize", declaration.objective().maximize()}}},
      {"strategy", declaration.strategy().empty() ? "portfolio" : declaration.strategy()},
      {"created", TimeText(tuning.create_time())},
      {"updated", tuning.has_update_time() ? Json(TimeText(tuning.update_time())) : Json()},
      {"generation", tuning.generation()},
      {"phase", v1::TuningPhase_Name(tuning.phase())},
      {"provenance", tuning.provenance() == v1::PROVENANCE_UNSPECIFIED
                         ? Json()
                         : Json(v1::Provenance_Name(tuning.provenance()))},
      {"provenance_tuning", tuning.provenance_tuning().empty() ? Json() : Json(tuning.provenance_tuning())},
      {"best", ConfigurationJson(declaration, tuning.best())},
      {"best_value", Known(tuning.best_value())},
      {"best_relative_error", tuning.best_value() > 0 ? Json(tuning.best_relative_error()) : Json()},
      {"default_value", Known(tuning.default_value())},
      {"default_relative_error", tuning.default_value() > 0 ? Json(tuning.default_relative_error()) : Json()},
      {"better_than_default", compared ? Json(tuning.better_than_default()) : Json()},
      {"below_clock", tuning.below_clock()},
      {"speedup", Known(speedup)},
      {"runs", tuning.runs()},
      {"failures", tuning.failures()},
      {"configurations_run", tuning.configurations()},
      {"drifts", tuning.drifts()},
      {"programs", tuning.programs()},
      {"exploration_share", tuning.total_value() > 0 ? Json(ExploringShare(tuning)) : Json()}};
}

Json TuningListJson(const v1::ListTuningsResponse& response) {
  Json tunings = Json::array();
  for (const v1::Tuning& tuning : response.tunings()) {
    Json json = TuningJson(tuning);
    json.erase("schema");
    tunings.push_back(std::move(json));
  }
  return {{"schema", "fusion.tunings/1"}, {"tunings", std::move(tunings)}};
}

Json TuningDetailsJson(const v1::TuningDetails& details, const std::string& landscape_plot,
                       const std::string& convergence_plot) {
  const v1::SectionDeclaration& declaration = details.tuning().declaration();
  Json json = TuningJson(details.tuning());
  Json configurations = Json::array(), convergence = Json::array();
  for (const v1::ConfigurationStatistics& statistics : details.configurations())
    configurations.push_back(
        {{"configuration", ConfigurationJson(declaration, statistics.configuration())},
         {"count", statistics.count()},
         {"mean", Known(statistics.mean())},
         {"relative_error", statistics.count() > 0 ? Json(statistics.relative_error()) : Json()},
         {"expected", Known(statistics.expected())},
         {"standard_deviation", statistics.count() > 1 ? Json(statistics.standard_deviation()) : Json()},
         {"minimum", Known(statistics.minimum())},
         {"failures", statistics.failures()}});
  for (const v1::ConvergencePoint& point : details.convergence())
    convergence.push_back({{"evaluations", point.evaluations()},
                           {"best", ConfigurationJson(declaration, point.best())},
                           {"value", point.value()}});
  json["configurations"] = std::move(configurations);
  json["convergence"] = std::move(convergence);
  json["landscape_plot"] = landscape_plot.empty() ? Json() : Json(landscape_plot);
  json["convergence_plot"] = convergence_plot.empty() ? Json() : Json(convergence_plot);
  return json;
}

Json T4Json(const v1::Tuning& tuning, const std::vector<v1::StoredTuningReport>& reports) {
  const v1::SectionDeclaration& declaration = tuning.declaration();
  const std::string objective = ObjectiveName(declaration);
  const bool seconds = UnitOf(declaration) == "s";
  const double scale = seconds ? 1000 : 1;
  Json results = Json::array();
  for (const v1::StoredTuningReport& stored : reports) {
    const v1::TuningReport& report = stored.report();
    // A report tells of runs that succeeded, of others that failed, or both.
    for (const bool failed : {false, true}) {
      if ((failed ? report.failures() : report.count()) == 0) continue;
      Json runtimes = Json::array(), measurements = Json::array();
      if (!failed) {
        if (seconds) runtimes.push_back(report.mean() * scale);
        measurements.push_back({{"name", objective},
                                {"value", report.mean() * scale},
                                {"unit", seconds ? "ms" : UnitOf(declaration)}});
        measurements.push_back({{"name", objective + "_minimum"},
                                {"value", report.minimum() * scale},
                                {"unit", seconds ? "ms" : UnitOf(declaration)}});
      }
      measurements.push_back(
          {{"name", "runs"}, {"value", failed ? report.failures() : report.count()}, {"unit", ""}});
      results.push_back({{"timestamp", TimeText(stored.time())},
                         {"configuration", ConfigurationJson(declaration, report.configuration())},
                         {"times",
                          {{"compilation", 0},
                           {"benchmark", 0},
                           {"framework", 0},
                           {"search_algorithm", 0},
                           {"validation", 0},
                           {"runtimes", std::move(runtimes)}}},
                         {"invalidity", failed ? "runtime" : "correct"},
                         {"correctness", 1},
                         {"measurements", std::move(measurements)},
                         {"objectives", Json::array({objective})}});
    }
  }
  return {{"results", std::move(results)}, {"schema_version", "1.0.0"}};
}

std::string TuningListText(const v1::ListTuningsResponse& response, const TextStyle& style) {
  if (response.tunings_size() == 0) return "nothing has been tuned yet\n";
  Table table;
  table.AddColumn("tuning", Table::Align::kLeft);
  table.AddColumn("section", Table::Align::kLeft);
  table.AddColumn("sizes", Table::Align::kLeft);
  table.AddColumn("phase", Table::Align::kLeft);
  table.AddColumn("best", Table::Align::kLeft);
  table.AddColumn("value", Table::Align::kRight);
  table.AddColumn("speed-up", Table::Align::kRight);
  table.AddColumn("exploring", Table::Align::kRight);
  table.AddColumn("runs", Table::Align::kRight);
  table.AddColumn("programs", Table::Align::kRight);
  table.AddColumn("device", Table::Align::kLeft);
  for (const v1::Tuning& tuning : response.tunings()) {
    const v1::SectionDeclaration& declaration = tuning.declaration();
    table.AddRow({tuning.name(), SectionText(declaration), ContextText(declaration),
                  v1::TuningPhase_Name(tuning.phase()), ConfigurationText(declaration, tuning.best()),
                  ValueText(tuning.best_value(), declaration), SpeedupText(tuning), ExploringText(tuning),
                  FormatCount(static_cast<int64_t>(tuning.runs())), FormatCount(tuning.programs()),
                  declaration.device_class()});
  }
  return table.Print(style.width);
}

std::string TuningLineText(const v1::Tuning& tuning) {
  std::string text = absl::StrCat(v1::TuningPhase_Name(tuning.phase()), "  ",
                                  ConfigurationText(tuning.declaration(), tuning.best()), "  ",
                                  ValueText(tuning.best_value(), tuning.declaration()));
  if (tuning.best_value() > 0) absl::StrAppend(&text, " +-", FormatShare(tuning.best_relative_error()));
  return absl::StrCat(text, "  ", Counted(static_cast<int64_t>(tuning.runs()), "run"), "\n");
}

std::string TuningDetailsText(const v1::TuningDetails& details, const TextStyle& style) {
  const v1::Tuning& tuning = details.tuning();
  const v1::SectionDeclaration& declaration = tuning.declaration();
  const std::string context = ContextText(declaration);
  std::string text = absl::StrCat(tuning.name(), "  ", SectionText(declaration), context.empty() ? "" : "  ",
                                  context, "  on ", declaration.device_class(), "\n\n");
  Table parameters;
  parameters.AddColumn("parameter", Table::Align::kLeft);
  parameters.AddColumn("values", Table::Align::kLeft);
  parameters.AddColumn("default", Table::Align::kLeft);
  parameters.AddColumn("best", Table::Align::kLeft);
  parameters.AddColumn("where", Table::Align::kLeft);
  for (int i = 0; i < declaration.parameters_size(); ++i) {
    const v1::TuningParameter& parameter = declaration.parameters(i);
    parameters.AddRow(
        {parameter.name(), DomainText(parameter),
         parameter.has_default_value() ? ParameterValueText(parameter, parameter.default_value()) : "",
         i < tuning.best().values_size() ? ParameterValueText(parameter, tuning.best().values(i)) : "",
         parameter.condition()});
  }
  absl::StrAppend(&text, parameters.Print(style.width));
  for (const std::string& constraint : declaration.constraints())
    absl::StrAppend(&text, "constraint: ", constraint, "\n");
  absl::StrAppend(&text, "\nobjective: the ", declaration.objective().maximize() ? "largest " : "smallest ",
                  ObjectiveName(declaration), ", in ", UnitOf(declaration),
                  "; strategy: ", declaration.strategy().empty() ? "portfolio" : declaration.strategy(),
                  "\n");
  absl::StrAppend(&text, "best: ", ConfigurationText(declaration, tuning.best()), ", ",
                  ValueText(tuning.best_value(), declaration));
  if (tuning.best_value() > 0) absl::StrAppend(&text, " +-", FormatShare(tuning.best_relative_error()));
  absl::StrAppend(&text, ", ", ProvenanceText(tuning), "\n");
  absl::StrAppend(&text, "default: ", ValueText(tuning.default_value(), declaration));
  if (tuning.default_value() > 0) absl::StrAppend(&text, " +-", FormatShare(tuning.default_relative_error()));
  absl::StrAppend(&text, ComparisonText(tuning));
  absl::StrAppend(&text, "\nphase: ", PhaseText(tuning.phase()), "\n");
  absl::StrAppend(&text, Counted(static_cast<int64_t>(tuning.runs()), "run"), ", ",
                  Counted(static_cast<int64_t>(tuning.failures()), "failure"), ", ",
                  Counted(static_cast<int64_t>(tuning.configurations()), "configuration"), "; generation ",
                  tuning.generation(), ", ", Counted(static_cast<int64_t>(tuning.drifts()), "drift"), "; ",
                  Counted(tuning.programs(), "program"), " connected\n");
  if (tuning.total_value() > 0)
    absl::StrAppend(&text, "exploring cost ", ExploringText(tuning), " of the whole ",
                    ObjectiveName(declaration), "\n");
  if (tuning.has_update_time()) absl::StrAppend(&text, "last report: ", TimeText(tuning.update_time()), "\n");
  if (details.configurations_size() > 0) absl::StrAppend(&text, "\n", ConfigurationsTable(details, style));
  return text;
}

PlottedTuning PlottedOf(const v1::TuningDetails& details) {
  using Scale = PlottedParameter::Scale;
  const v1::Tuning& tuning = details.tuning();
  const v1::SectionDeclaration& declaration = tuning.declaration();
  PlottedTuning plotted;
  plotted.heading = SectionText(declaration);
  if (const std::string context = ContextText(declaration); !context.empty())
    absl::StrAppend(&plotted.heading, ", ", context);
  absl::StrAppend(&plotted.heading, ", ", declaration.device_class());
  plotted.objective = ObjectiveName(declaration);
  plotted.unit = UnitOf(declaration);
  for (const v1::TuningParameter& parameter : declaration.parameters()) {
    PlottedParameter& axis = plotted.parameters.emplace_back();
    axis.name = parameter.name();
    if (parameter.has_integer()) {
      axis.lower = static_cast<double>(parameter.integer().lower());
      axis.upper = static_cast<double>(parameter.integer().upper());
    } else if (parameter.has_power_of_two()) {
      axis.scale = Scale::kPowersOfTwo;
      axis.lower = static_cast<double>(parameter.power_of_two().lower());
      axis.upper = static_cast<double>(parameter.power_of_two().upper());
    } else if (parameter.has_real()) {
      axis.scale = parameter.real().logarithmic() ? Scale::kLogarithmic : Scale::kLinear;
      axis.lower = parameter.real().lower();
      axis.upper = parameter.real().upper();
    } else {
      axis.scale = Scale::kNamed;
      axis.names.assign(parameter.enumeration().values().begin(), parameter.enumeration().values().end());
      axis.upper = std::max(0, parameter.enumeration().values_size() - 1);
    }
  }
  for (const v1::ConfigurationStatistics& statistics : details.configurations()) {
    if (statistics.count() == 0 || statistics.configuration().values_size() != declaration.parameters_size())
      continue;
    if (std::equal(statistics.configuration().values().begin(), statistics.configuration().values().end(),
                   tuning.best().values().begin(), tuning.best().values().end()))
      plotted.best = static_cast<int>(plotted.configurations.size());
    if (tuning.default_value() > 0 && statistics.mean() == tuning.default_value() && plotted.defaults < 0)
      plotted.defaults = static_cast<int>(plotted.configurations.size());
    plotted.configurations.push_back(
        {{statistics.configuration().values().begin(), statistics.configuration().values().end()},
         statistics.mean(),
         statistics.relative_error() * statistics.mean(),
         absl::StrCat(ConfigurationText(declaration, statistics.configuration()), ": ",
                      ValueText(statistics.mean(), declaration), ", ",
                      Counted(static_cast<int64_t>(statistics.count()), "run"))});
  }
  for (const v1::ConvergencePoint& point : details.convergence()) {
    plotted.convergence.emplace_back(point.evaluations(), point.value());
    plotted.evaluations = point.evaluations();
  }
  return plotted;
}

}  // namespace fusion
