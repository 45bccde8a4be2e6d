// Any bytes as what a program that tunes says, up to where a search would begin: a declaration of a section,
// a batch of reports, an expression. The first byte says which.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "server/tuner/declared_section.h"
#include "server/tuner/expression.h"
#include "server/tuner/parameter_space.h"
#include "server/tuner/report_check.h"
#include "tests/fuzz/message_input.h"

namespace fusion {
namespace {

void RequireTyped(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status), "an error of another kind");
  Require(!status.message().empty(), "an error without message");
}

bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// A declaration without defaults and with constraints is searched for a configuration that holds: many
// thousand evaluations for one input, which tests/unit has. Here the program says one itself.
void GiveDefaults(v1::SectionDeclaration* declaration) {
  if (declaration->constraints().empty()) return;
  for (v1::TuningParameter& parameter : *declaration->mutable_parameters()) {
    if (parameter.has_default_value()) continue;
    parameter.set_default_value(parameter.has_integer() ? static_cast<double>(parameter.integer().lower())
                                : parameter.has_power_of_two()
                                    ? static_cast<double>(parameter.power_of_two().lower())
                                : parameter.has_real() ? parameter.real().lower()
                                                       : 0);
  }
}

void CheckPoint(const ParameterSpace& space, const TuningPoint& point) {
  Require(point.size() == space.dimensions(), "a point of other dimensions");
  Require(space.Canonical(point) == point, "a canonical point has a nearest one that is another");
  Require(space.Check(point).ok() == space.Satisfies(point),
          "a canonical point is refused though constraints hold, or taken though not");
  Require(DecodePoint(EncodePoint(point), point.size()) == point, "a point is stored as another");
  space.Text(point);
  for (size_t i = 0; i < point.size(); ++i) {
    const double unit = space.ToUnit(i, point[i]);
    Require(unit >= 0 && unit <= 1, "a value lies outside of its range");
  }
}

void Declare(v1::SectionDeclaration declaration) {
  GiveDefaults(&declaration);
  const absl::StatusOr<TuningKey> key = KeyOf(declaration);
  if (!key.ok()) RequireTyped(key.status());
  const auto space = ParameterSpace::Create(declaration);
  if (!space.ok()) return RequireTyped(space.status());
  const ParameterSpace& known = **space;
  Require(known.Check(known.defaults()).ok(), "the defaults are refused");
  CheckPoint(known, known.defaults());
  for (const double unit : {0.0, 0.3, 0.5, 1.0, std::numeric_limits<double>::quiet_NaN()})
    CheckPoint(known, known.FromUnit(std::vector<double>(known.dimensions(), unit)));
  if (known.grid_points() < ParameterSpace::kUncountable)
    CheckPoint(known, known.Canonical(known.GridPoint(known.grid_points() - 1)));
  // As it is kept, and read again.
  Require(SameSpace(declaration, known.declaration()), "the space is another with its defaults");
  Require(SpaceDifference(known.declaration(), declaration).empty(), "a space differs from itself");
  const auto again = ParameterSpace::Create(known.declaration());
  Require(again.ok() && (*again)->defaults() == known.defaults(),
          "what was declared cannot be declared again");
}

const ParameterSpace& ReportedSpace() {
  static const auto space = [] {
    v1::SectionDeclaration declaration;
    Require(google::protobuf::TextFormat::ParseFromString(
                "program: 'p' section: 's' device_class: 'cpu' context { name: 'n' value: 100 } constraints: "
                "'tile * stages <= n' "
                "parameters { name: 'tile' integer { lower: 1 upper: 64 step: 1 } } "
                "parameters { name: 'stages' power_of_two { lower: 1 upper: 8 } condition: 'tile > 4' } "
                "parameters { name: 'order' enumeration { values: 'rows' values: 'columns' } } "
                "parameters { name: 'share' real { lower: 0 upper: 1 } } "
                "parameters { name: 'eps' real { lower: 1e-9 upper: 1 logarithmic: true } }",
                &declaration),
            "the declaration is not read");
    return *ParameterSpace::Create(declaration);
  }();
  return *space;
}

void Report(const v1::ReportBatch& batch) {
  for (const v1::TuningReport& report : batch.reports()) {
    if (const absl::Status status = CheckReport(report, ReportedSpace()); !status.ok()) {
      RequireTyped(status);
      continue;
    }
    const auto& values = report.configuration().values();
    const TuningPoint point = ReportedSpace().Canonical(values);
    Require(std::isfinite(static_cast<double>(report.count()) * report.mean()), "a sum that is no number");
    CheckPoint(ReportedSpace(), point);
  }
}

void Evaluate(const std::string& text) {
  static const Expression::Names names{{"tile", "stages", "n"}, {{"rows", 0}, {"columns", 1}}};
  const auto expression = Expression::Parse(text, names);
  if (!expression.ok()) return RequireTyped(expression.status());
  const auto again = Expression::Parse(expression->text(), names);
  Require(again.ok(), "the text of an expression is none");
  for (const size_t variable : expression->variables())
    Require(variable < names.variables.size(), "a variable that is none");
  for (const std::vector<double>& values :
       {std::vector<double>{0, 0, 0}, {1, 2, 3}, {-1, 0.5, 1e308}, {64, 8, 1 << 30}}) {
    const double value = expression->Value(values);
    Require(SameValue(value, again->Value(values)), "an expression has two values");
    Require(expression->Holds(values) == (!std::isnan(value) && value != 0),
            "what holds is not what is true");
  }
}

}  // namespace
}  // namespace fusion

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusion;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  v1::SectionDeclaration declaration;
  v1::ReportBatch batch;
  switch (data[0] % 3) {
    case 0:  // 'r'
      if (ReadMessage(bytes, &batch)) Report(batch);
      break;
    case 1:  // 'd'
      if (ReadMessage(bytes, &declaration)) Declare(std::move(declaration));
      break;
    default:  // 'e'
      Evaluate(bytes);
  }
  return 0;
}
