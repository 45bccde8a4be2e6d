#include "server/tuner/parameter_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "server/tuner/constraint_search.h"

namespace fusion {
namespace {

constexpr int kMostParameters = 64;
constexpr int kMostSizes = 32;
constexpr int kMostConstraints = 64;
constexpr int kMostValues = 1000;  // of an enumeration
constexpr size_t kLongestDeclaration = 64 << 10;
constexpr int64_t kLargestInteger = int64_t{1} << 53;
// Parts of a space that are looked at: for the defaults, for what is wrong with one constraint, for a point
// of a search.
constexpr int kMostBoxes = 20'000, kMostBoxesAlone = 2000, kBoxesOfNear = 500;
constexpr uint64_t kMostLookedAt = 200'000;
// Points at random of which none satisfies the constraints, where these leave little.
constexpr int kSparseTries = 256;
// So many points at most are listed.
constexpr size_t kFewPoints = 1200;

bool IsIdentifier(absl::string_view name) {
  if (name.empty() || name.size() > kLongestTuningText) return false;
  if (!absl::ascii_isalpha(static_cast<unsigned char>(name[0])) && name[0] != '_') return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

constexpr char kTextOf[] = " bytes of UTF-8 without control characters";

bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// Says what is wrong with a declaration, a line each.
class Errors {
 public:
  template <typename... Parts>
  void Add(const Parts&... parts) {
    lines_.push_back(absl::StrCat(parts...));
  }
  bool empty() const { return lines_.empty(); }
  absl::Status status() const {
    return lines_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
  }

 private:
  std::vector<std::string> lines_;
};

bool CheckBound(const std::string& name, int64_t bound, Errors& errors) {
  if (std::abs(static_cast<double>(bound)) <= static_cast<double>(kLargestInteger)) return true;
  errors.Add("parameter ", name, ": bounds are within +-2^53; this one is ", bound);
  return false;
}

ParameterSpace::Axis MakeAxis(const v1::TuningParameter& parameter, Errors& errors) {
  ParameterSpace::Axis axis;
  axis.name = parameter.name();
  switch (parameter.domain_case()) {
    case v1::TuningParameter::kInteger: {
      const v1::IntegerRange& range = parameter.integer();
      axis.kind = ParameterSpace::Kind::kInteger;
      if (!CheckBound(axis.name, range.lower(), errors) || !CheckBound(axis.name, range.upper(), errors))
        break;
      if (range.lower() > range.upper()) {
        errors.Add("parameter ", axis.name, ": the lower bound ", range.lower(), " is above the upper bound ",
                   range.upper());
        break;
      }
      if (range.step() <= 0) {
        errors.Add("parameter ", axis.name, ": the step is ", range.step(), "; it must be positive");
        break;
      }
      axis.count =
          static_cast<uint64_t>(range.upper() - range.lower()) / static_cast<uint64_t>(range.step()) + 1;
      axis.lower = static_cast<double>(range.lower());
      axis.step = static_cast<double>(range.step());
      axis.upper = static_cast<double>(range.lower() + static_cast<int64_t>(axis.count - 1) * range.step());
      break;
    }
    case v1::TuningParameter::kPowerOfTwo: {
      const v1::PowerOfTwoRange& range = parameter.power_of_two();
      axis.kind = ParameterSpace::Kind::kPowerOfTwo;
      if (!IsPowerOfTwo(range.lower()) || !IsPowerOfTwo(range.upper())) {
        errors.Add("parameter ", axis.name, ": the bounds ", range.lower(), " and ", range.upper(),
                   " must be powers of two");
        break;
      }
      if (!CheckBound(axis.name, range.upper(), errors)) break;
      if (range.lower() > range.upper()) {
        errors.Add("parameter ", axis.name, ": the lower bound ", range.lower(), " is above the upper bound ",
                   range.upper());
        break;
      }
      axis.lower = static_cast<double>(range.lower());
      axis.upper = static_cast<double>(range.upper());
      axis.logarithmic = true;
      axis.count = static_cast<uint64_t>(std::lround(std::log2(axis.upper / axis.lower))) + 1;
      break;
    }
    case v1::TuningParameter::kEnumeration: {
      const auto& values = parameter.enumeration().values();
      axis.kind = ParameterSpace::Kind::kEnumeration;
      if (values.empty() || values.size() > kMostValues)
        errors.Add("parameter ", axis.name, ": an enumeration has 1 to ", kMostValues,
                   " values; this one has ", values.size());
      std::set<std::string> seen;
      for (const std::string& value : values) {
        if (!IsTuningText(value))
          errors.Add("parameter ", axis.name, ": a value must be text of 1 to ", kLongestTuningText, kTextOf);
        else if (!seen.insert(value).second)
          errors.Add("parameter ", axis.name, ": the value ", value, " is there twice");
      }
      axis.count = static_cast<uint64_t>(values.size());
      axis.upper = static_cast<double>(values.size()) - 1;
      break;
    }
    case v1::TuningParameter::kReal: {
      const v1::RealRange& range = parameter.real();
      axis.kind = ParameterSpace::Kind::kReal;
      axis.lower = range.lower();
      axis.upper = range.upper();
      axis.logarithmic = range.logarithmic();
      if (!std::isfinite(axis.lower) || !std::isfinite(axis.upper))
        errors.Add("parameter ", axis.name, ": bounds must be finite numbers");
      else if (axis.lower > axis.upper)
        errors.Add("parameter ", axis.name, ": the lower bound ", axis.lower, " is above the upper bound ",
                   axis.upper);
      else if (axis.logarithmic && axis.lower <= 0)
        errors.Add("parameter ", axis.name, ": a logarithmic range begins above 0, not at ", axis.lower);
      break;
    }
    case v1::TuningParameter::DOMAIN_NOT_SET:
      errors.Add("parameter ", axis.name,
                 ": it has no values: integer, power_of_two, enumeration or real is missing");
  }
  return axis;
}

uint64_t SaturatingProduct(uint64_t a, uint64_t b) {
  return a != 0 && b > ParameterSpace::kUncountable / a ? ParameterSpace::kUncountable : a * b;
}

std::string NumberText(double value) {
  // Integers in full; reals so that they can be read back.
  return value == std::floor(value) && std::abs(value) < 1e15 ? absl::StrCat(static_cast<int64_t>(value))
                                                              : absl::StrCat(value);
}

}  // namespace

bool IsTuningText(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestTuningText && !FindBadByte(text) &&
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); });
}

double ParameterSpace::Axis::ToUnit(double value) const {
  if (upper == lower) return 0;
  const double unit = logarithmic ? (std::log(value) - std::log(lower)) / (std::log(upper) - std::log(lower))
                      // Halves: the difference of two finite numbers may be infinite.
                      : std::isfinite(upper - lower) ? (value - lower) / (upper - lower)
                                                     : (value / 2 - lower / 2) / (upper / 2 - lower / 2);
  return std::clamp(unit, 0.0, 1.0);
}

double ParameterSpace::Axis::FromUnit(double unit) const {
  unit = std::clamp(unit, 0.0, 1.0);
  if (count > 0) return Value(static_cast<uint64_t>(std::llround(unit * static_cast<double>(count - 1))));
  if (unit == 0) return lower;
  if (unit == 1) return upper;
  double value;
  if (logarithmic)
    value = std::exp(std::log(lower) + unit * (std::log(upper) - std::log(lower)));
  else if (std::isfinite(upper - lower))
    value = lower + unit * (upper - lower);
  else
    value = lower * (1 - unit) + upper * unit;
  return std::clamp(value, lower, upper);
}

double ParameterSpace::Axis::Value(uint64_t position) const {
  if (kind == Kind::kPowerOfTwo) return lower * std::exp2(static_cast<double>(position));
  // Integers up to 2^53 may differ from each other by up to 2^54.
  return static_cast<double>(static_cast<int64_t>(lower) +
                             static_cast<int64_t>(position) * static_cast<int64_t>(step));
}

uint64_t ParameterSpace::Axis::Position(double value) const {
  value = std::clamp(value, lower, upper);
  // Long: the range may be wider than 2^53.
  const long double steps = kind == Kind::kPowerOfTwo ? static_cast<long double>(std::log2(value / lower))
                                                      : (static_cast<long double>(value) - lower) / step;
  return std::min(static_cast<uint64_t>(std::llround(steps)), count - 1);
}

double ParameterSpace::Axis::Nearest(double value) const {
  return kind == Kind::kReal ? std::clamp(value, lower, upper) : Value(Position(value));
}

double ParameterSpace::Axis::tolerance(double value) const {
  if (kind != Kind::kReal) return 0;
  return 1e-12 * (logarithmic ? std::abs(value) : std::max(std::abs(lower), std::abs(upper)));
}

double ParameterSpace::ToUnit(size_t index, double value) const { return axes_[index].ToUnit(value); }

double ParameterSpace::FromUnit(size_t index, double unit) const {
  const Axis& axis = axes_[index];
  if (std::isnan(unit)) return defaults_.empty() ? axis.lower : defaults_[index];
  return axis.FromUnit(unit);
}

TuningPoint ParameterSpace::FromUnit(absl::Span<const double> units) const {
  TuningPoint point(axes_.size());
  for (size_t i = 0; i < axes_.size(); ++i) point[i] = FromUnit(i, units[i]);
  return Canonical(point);
}

std::vector<double> ParameterSpace::ToUnit(const TuningPoint& point) const {
  std::vector<double> units(axes_.size());
  for (size_t i = 0; i < axes_.size(); ++i) units[i] = ToUnit(i, point[i]);
  return units;
}

bool ParameterSpace::Active(const TuningPoint& point, size_t index) const {
  const Expression& condition = axes_[index].condition;
  if (condition.empty()) return true;
  absl::InlinedVector<double, 16> values(point.begin(), point.end());
  values.insert(values.end(), sizes_.begin(), sizes_.end());
  return condition.Holds(values);
}

TuningPoint ParameterSpace::Canonical(absl::Span<const double> values) const {
  TuningPoint point(axes_.size());
  for (size_t i = 0; i < axes_.size(); ++i) {
    const Axis& axis = axes_[i];
    double value = i < values.size() ? values[i] : std::numeric_limits<double>::quiet_NaN();
    point[i] = axis.Nearest(std::isnan(value) ? defaults_[i] : value);
  }
  // Conditions name parameters before their own, which are final by then.
  for (size_t i = 0; i < axes_.size(); ++i)
    if (!Active(point, i)) point[i] = defaults_[i];
  return point;
}

bool ParameterSpace::Satisfies(const TuningPoint& point, size_t constraint) const {
  absl::InlinedVector<double, 16> values(point.begin(), point.end());
  values.insert(values.end(), sizes_.begin(), sizes_.end());
  return constraints_[constraint].Holds(values);
}

bool ParameterSpace::Satisfies(const TuningPoint& point) const {
  if (constraints_.empty()) return true;
  absl::InlinedVector<double, 16> values(point.begin(), point.end());
  values.insert(values.end(), sizes_.begin(), sizes_.end());
  return std::all_of(constraints_.begin(), constraints_.end(),
                     [&](const Expression& constraint) { return constraint.Holds(values); });
}

absl::Status ParameterSpace::Check(absl::Span<const double> values) const {
  if (values.size() != axes_.size())
    return absl::InvalidArgumentError(
        absl::StrCat("a configuration of ", axes_.size(), " parameters has ", values.size(), " values"));
  const TuningPoint point = Canonical(values);
  for (size_t i = 0; i < axes_.size(); ++i)
    // A real that was computed in another process may differ in its last digits.
    if (!(std::abs(values[i] - point[i]) <= axes_[i].tolerance(point[i])))
      return absl::InvalidArgumentError(absl::StrCat("parameter ", axes_[i].name, " cannot be ", values[i],
                                                     " here; the nearest is ", NumberText(point[i])));
  if (!Satisfies(point)) return absl::InvalidArgumentError(absl::StrCat(Text(point), " breaks a constraint"));
  return absl::OkStatus();
}

TuningPoint ParameterSpace::GridPoint(uint64_t index) const {
  if (!few_.empty()) return few_[index];
  TuningPoint point(axes_.size());
  for (size_t i = axes_.size(); i-- > 0;) {
    point[i] = axes_[i].Value(index % axes_[i].count);
    index /= axes_[i].count;
  }
  return point;
}

std::string ParameterSpace::Text(const TuningPoint& point) const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!Active(point, i)) continue;
    parts.push_back(absl::StrCat(
        axes_[i].name, "=",
        axes_[i].kind == Kind::kEnumeration
            ? declaration_.parameters(static_cast<int>(i)).enumeration().values(static_cast<int>(point[i]))
            : NumberText(point[i])));
  }
  return absl::StrJoin(parts, " ");
}

namespace {

// Checks the texts of the declaration, and how much of everything it has.
void CheckSizes(const v1::SectionDeclaration& declaration, Errors& errors) {
  for (const auto& [what, name] :
       {std::pair<const char*, const std::string&>{"program", declaration.program()},
        {"section", declaration.section()},
        {"device class", declaration.device_class()}})
    if (!IsTuningText(name))
      errors.Add("the ", what, " must have a name of 1 to ", kLongestTuningText, kTextOf);
  for (const auto& [what, text] :
       {std::pair<const char*, const std::string&>{"name of the objective", declaration.objective().name()},
        {"unit of the objective", declaration.objective().unit()},
        {"strategy", declaration.strategy()}})
    if (!text.empty() && !IsTuningText(text))
      errors.Add("the ", what, " has at most ", kLongestTuningText, kTextOf);
  if (const size_t bytes = declaration.ByteSizeLong(); bytes > kLongestDeclaration)
    errors.Add("the declaration has ", bytes, " bytes; at most ", kLongestDeclaration);
  if (declaration.parameters().empty() || declaration.parameters_size() > kMostParameters)
    errors.Add("a section has 1 to ", kMostParameters, " parameters; this one has ",
               declaration.parameters_size());
  if (declaration.context_size() > kMostSizes) errors.Add("a context has at most ", kMostSizes, " sizes");
  if (declaration.constraints_size() > kMostConstraints)
    errors.Add("a section has at most ", kMostConstraints, " constraints");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ParameterSpace>> ParameterSpace::Create(
    const v1::SectionDeclaration& declaration) {
  Errors errors;
  std::shared_ptr<ParameterSpace> space(new ParameterSpace);
  space->declaration_ = declaration;
  CheckSizes(declaration, errors);
  if (!errors.empty()) return errors.status();

  // Names, and what each parameter may be.
  std::set<std::string> names;
  const auto check_name = [&](const char* what, const std::string& name) {
    if (!IsIdentifier(name))
      errors.Add(what, " \"", absl::CHexEscape(name.substr(0, kLongestTuningText)), "\": a name of 1 to ",
                 kLongestTuningText, " bytes has letters, digits and _, and begins with no digit");
    else if (!names.insert(name).second)
      errors.Add(what, " ", name, ": the name is there twice");
  };
  Expression::Names scope;
  std::map<std::string, std::set<double>> constants;
  for (const v1::TuningParameter& parameter : declaration.parameters()) {
    check_name("parameter", parameter.name());
    scope.variables.push_back(parameter.name());
    for (int i = 0; i < parameter.enumeration().values_size(); ++i) {
      constants[parameter.enumeration().values(i)].insert(i);
      scope.constants.emplace_back(absl::StrCat(parameter.name(), ".", parameter.enumeration().values(i)), i);
    }
    space->axes_.push_back(MakeAxis(parameter, errors));
  }
  // A value that several enumerations have at different places must be written with its parameter:
  // order.rows.
  for (const auto& [name, positions] : constants)
    if (positions.size() == 1) scope.constants.emplace_back(name, *positions.begin());
  for (const v1::ContextSize& size : declaration.context()) {
    check_name("size", size.name());
    scope.variables.push_back(size.name());
    space->sizes_.push_back(static_cast<double>(size.value()));
  }
  if (!errors.empty()) return errors.status();

  // Defaults, then what they may depend on.
  space->grid_points_ = 1;
  for (size_t i = 0; i < space->axes_.size(); ++i) {
    const Axis& axis = space->axes_[i];
    const v1::TuningParameter& parameter = declaration.parameters(static_cast<int>(i));
    space->grid_points_ = axis.count == 0 ? kUncountable : SaturatingProduct(space->grid_points_, axis.count);
    double value = axis.kind == Kind::kEnumeration ? 0
                   : axis.count > 0                ? axis.Value((axis.count - 1) / 2)
                                                   : axis.FromUnit(0.5);
    if (parameter.has_default_value()) {
      value = parameter.default_value();
      const double nearest = std::isfinite(value) ? axis.Nearest(value) : 0;
      if (axis.kind == Kind::kReal ? !(value >= axis.lower && value <= axis.upper) : value != nearest)
        errors.Add(
            "parameter ", axis.name, ": the default ", value, " is none of its values",
            std::isfinite(value) ? absl::StrCat("; the nearest is ", NumberText(nearest)) : std::string());
    }
    space->defaults_.push_back(value);
  }
  for (size_t i = 0; i < space->axes_.size(); ++i) {
    const std::string& text = declaration.parameters(static_cast<int>(i)).condition();
    if (text.empty()) continue;
    if (FindBadByte(text)) {
      errors.Add("condition of ", space->axes_[i].name, ": it is not UTF-8");
      continue;
    }
    absl::StatusOr<Expression> condition = Expression::Parse(text, scope);
    if (!condition.ok()) {
      errors.Add("condition of ", space->axes_[i].name, ": ", condition.status().message());
      continue;
    }
    for (size_t variable : condition->variables())
      if (variable >= i && variable < space->axes_.size())
        errors.Add("condition of ", space->axes_[i].name, ": it names ", scope.variables[variable],
                   "; only sizes and parameters before this one can be named");
    space->axes_[i].condition = *std::move(condition);
  }
  for (const std::string& text : declaration.constraints()) {
    if (FindBadByte(text)) {
      errors.Add("a constraint is not UTF-8: ", absl::CHexEscape(text));
      continue;
    }
    absl::StatusOr<Expression> constraint = Expression::Parse(text, scope);
    if (constraint.ok())
      space->constraints_.push_back(*std::move(constraint));
    else
      errors.Add("constraint: ", constraint.status().message());
  }
  if (!errors.empty()) return errors.status();

  FUSION_RETURN_IF_ERROR(space->FindDefaults());
  space->FindFewPoints();
  return space;
}

absl::Status ParameterSpace::FindDefaults() {
  const TuningPoint wanted = Canonical(defaults_);
  if (Satisfies(wanted)) {
    SetDefaults(wanted);
    return absl::OkStatus();
  }
  if (std::all_of(declaration_.parameters().begin(), declaration_.parameters().end(),
                  [](const v1::TuningParameter& parameter) { return parameter.has_default_value(); }))
    return absl::InvalidArgumentError(absl::StrCat("the defaults ", Text(wanted), " break a constraint"));
  const std::vector<double> units = ToUnit(wanted);
  ConstraintSearch::Found nearest = ConstraintSearch(*this).Nearest(units, kMostBoxes);
  if (!nearest.point && !nearest.proved && grid_points_ <= kMostLookedAt) {
    // Bounds say little of some expressions; a small grid is looked at as a whole.
    nearest.proved = true;
    for (uint64_t i = 0; i < grid_points_ && !nearest.point; ++i)
      if (TuningPoint point = Canonical(GridPoint(i)); Satisfies(point)) nearest.point = std::move(point);
  }
  if (nearest.point) {
    SetDefaults(*nearest.point);
    return absl::OkStatus();
  }
  if (!nearest.proved)
    return absl::InvalidArgumentError(
        absl::StrCat("no configuration was found that satisfies all constraints, in ", kMostBoxes,
                     " parts of the space; a default for each parameter that satisfies them would show that "
                     "there is one"));
  for (size_t i = 0; i < constraints_.size(); ++i) {
    const ConstraintSearch::Found alone = ConstraintSearch(*this, i).AnyNear(units, kMostBoxesAlone);
    if (!alone.point && alone.proved)
      return absl::InvalidArgumentError(
          absl::StrCat("no configuration satisfies \"", constraints_[i].text(), "\""));
  }
  return absl::InvalidArgumentError("no configuration satisfies all constraints together");
}

void ParameterSpace::FindFewPoints() {
  if (constraints_.empty()) return;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> units(axes_.size());
  for (int i = 0; i < kSparseTries; ++i) {
    for (double& unit : units) unit = uniform(random);
    if (Satisfies(FromUnit(units))) return;
  }
  sparse_ = true;
  if (std::any_of(axes_.begin(), axes_.end(), [](const Axis& axis) { return axis.count == 0; })) return;
  few_ = ConstraintSearch(*this).All(kFewPoints, kMostBoxes);
  if (!few_.empty()) grid_points_ = few_.size();
}

std::optional<TuningPoint> ParameterSpace::NearPoint(const std::vector<double>& units) const {
  TuningPoint point = FromUnit(units);
  if (Satisfies(point)) return point;
  if (few_.empty()) return ConstraintSearch(*this).AnyNear(units, kBoxesOfNear).point;
  const auto distance = [&](const TuningPoint& from) {
    double sum = 0;
    for (size_t i = 0; i < from.size(); ++i) sum += std::pow(axes_[i].ToUnit(from[i]) - units[i], 2);
    return sum;
  };
  return *std::min_element(few_.begin(), few_.end(), [&](const TuningPoint& a, const TuningPoint& b) {
    return distance(a) < distance(b);
  });
}

void ParameterSpace::SetDefaults(const TuningPoint& defaults) {
  defaults_ = defaults;
  for (size_t i = 0; i < axes_.size(); ++i)
    declaration_.mutable_parameters(static_cast<int>(i))->set_default_value(defaults[i]);
}

bool SameSpace(const v1::SectionDeclaration& a, const v1::SectionDeclaration& b) {
  const auto bytes = [](const v1::SectionDeclaration& declaration) {
    v1::SectionDeclaration space;
    for (const v1::TuningParameter& parameter : declaration.parameters()) {
      *space.add_parameters() = parameter;
      space.mutable_parameters()->rbegin()->clear_default_value();
    }
    *space.mutable_constraints() = declaration.constraints();
    *space.mutable_objective() = declaration.objective();
    return space.SerializeAsString();
  };
  return bytes(a) == bytes(b);
}

}  // namespace fusion
