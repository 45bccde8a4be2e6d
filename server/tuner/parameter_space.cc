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
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

constexpr int kMostParameters = 64;
constexpr int kMostSizes = 32;
constexpr int kMostConstraints = 64;
constexpr int kMostValues = 1000;  // of an enumeration
constexpr size_t kLongestName = 200;
constexpr int64_t kLargestInteger = int64_t{1} << 53;
// Configurations looked at to find one that satisfies the constraints: all of a space that is not larger.
constexpr uint64_t kMostTried = 200'000;

bool IsIdentifier(absl::string_view name) {
  if (name.empty() || name.size() > kLongestName) return false;
  if (!absl::ascii_isalpha(static_cast<unsigned char>(name[0])) && name[0] != '_') return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsText(absl::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); });
}

bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// What is wrong with a declaration, a line each.
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
      axis.upper = axis.lower + static_cast<double>(axis.count - 1) * axis.step;
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
        if (!IsText(value))
          errors.Add("parameter ", axis.name, ": a value must be text of 1 to ", kLongestName, " bytes");
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
      if (!std::isfinite(axis.lower) || !std::isfinite(axis.upper) || !std::isfinite(axis.upper - axis.lower))
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

double ParameterSpace::ToUnit(size_t index, double value) const {
  const Axis& axis = axes_[index];
  if (axis.upper == axis.lower) return 0;
  const double unit = axis.logarithmic ? std::log(value / axis.lower) / std::log(axis.upper / axis.lower)
                                       : (value - axis.lower) / (axis.upper - axis.lower);
  return std::clamp(unit, 0.0, 1.0);
}

double ParameterSpace::FromUnit(size_t index, double unit) const {
  const Axis& axis = axes_[index];
  if (std::isnan(unit)) return defaults_.empty() ? axis.lower : defaults_[index];
  unit = std::clamp(unit, 0.0, 1.0);
  if (axis.kind == Kind::kReal) {
    if (unit == 0) return axis.lower;
    if (unit == 1) return axis.upper;
    return axis.logarithmic ? axis.lower * std::pow(axis.upper / axis.lower, unit)
                            : axis.lower + unit * (axis.upper - axis.lower);
  }
  const double position = std::round(unit * static_cast<double>(axis.count - 1));
  return axis.kind == Kind::kPowerOfTwo ? axis.lower * std::exp2(position)
                                        : axis.lower + position * axis.step;
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
    if (std::isnan(value)) value = defaults_[i];
    value = std::clamp(value, axis.lower, axis.upper);
    if (axis.kind == Kind::kPowerOfTwo)
      value = axis.lower * std::exp2(std::round(std::log2(value / axis.lower)));
    else if (axis.kind != Kind::kReal)
      value = axis.lower + std::round((value - axis.lower) / axis.step) * axis.step;
    point[i] = std::clamp(value, axis.lower, axis.upper);
  }
  // Conditions name parameters before their own, which are final by then.
  for (size_t i = 0; i < axes_.size(); ++i)
    if (!Active(point, i)) point[i] = defaults_[i];
  return point;
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
    if (!(std::abs(values[i] - point[i]) <=
          1e-12 * std::max(std::abs(axes_[i].lower), std::abs(axes_[i].upper))))
      return absl::InvalidArgumentError(absl::StrCat("parameter ", axes_[i].name, " cannot be ", values[i],
                                                     " here; the nearest is ", NumberText(point[i])));
  if (!Satisfies(point)) return absl::InvalidArgumentError(absl::StrCat(Text(point), " breaks a constraint"));
  return absl::OkStatus();
}

TuningPoint ParameterSpace::GridPoint(uint64_t index) const {
  TuningPoint point(axes_.size());
  for (size_t i = axes_.size(); i-- > 0;) {
    const Axis& axis = axes_[i];
    const auto position = static_cast<double>(index % axis.count);
    index /= axis.count;
    point[i] =
        axis.kind == Kind::kPowerOfTwo ? axis.lower * std::exp2(position) : axis.lower + position * axis.step;
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

absl::StatusOr<std::shared_ptr<const ParameterSpace>> ParameterSpace::Create(
    const v1::SectionDeclaration& declaration) {
  Errors errors;
  std::shared_ptr<ParameterSpace> space(new ParameterSpace);
  space->declaration_ = declaration;
  for (const auto& [what, name] :
       {std::pair<const char*, const std::string&>{"program", declaration.program()},
        {"section", declaration.section()},
        {"device class", declaration.device_class()}})
    if (!IsText(name))
      errors.Add("the ", what, " must have a name of 1 to ", kLongestName,
                 " bytes without control characters");
  if (declaration.parameters().empty() || declaration.parameters_size() > kMostParameters)
    errors.Add("a section has 1 to ", kMostParameters, " parameters; this one has ",
               declaration.parameters_size());
  if (declaration.context_size() > kMostSizes) errors.Add("a context has at most ", kMostSizes, " sizes");
  if (declaration.constraints_size() > kMostConstraints)
    errors.Add("a section has at most ", kMostConstraints, " constraints");
  if (!errors.empty()) return errors.status();

  // Names, and what each parameter may be.
  std::set<std::string> names;
  const auto check_name = [&](const char* what, const std::string& name) {
    if (!IsIdentifier(name))
      errors.Add(what, " \"", name, "\": a name has letters, digits and _, and begins with no digit");
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
                   : axis.count > 0
                       ? space->FromUnit(i, static_cast<double>((axis.count - 1) / 2) /
                                                std::max<double>(1, static_cast<double>(axis.count - 1)))
                       : space->FromUnit(i, 0.5);
    if (parameter.has_default_value()) {
      value = parameter.default_value();
      const double nearest =
          std::isfinite(value)
              ? space->FromUnit(i, space->ToUnit(i, std::clamp(value, axis.lower, axis.upper)))
              : 0;
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
    absl::StatusOr<Expression> constraint = Expression::Parse(text, scope);
    if (constraint.ok())
      space->constraints_.push_back(*std::move(constraint));
    else
      errors.Add("constraint: ", constraint.status().message());
  }
  if (!errors.empty()) return errors.status();

  const TuningPoint wanted = space->Canonical(space->defaults_);
  if (space->Satisfies(wanted)) {
    space->SetDefaults(wanted);
    return space;
  }
  if (std::all_of(declaration.parameters().begin(), declaration.parameters().end(),
                  [](const v1::TuningParameter& parameter) { return parameter.has_default_value(); }))
    return absl::InvalidArgumentError(
        absl::StrCat("the defaults ", space->Text(wanted), " break a constraint"));
  // The nearest one that satisfies them, of all or of many.
  const std::vector<double> from = space->ToUnit(wanted);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  const bool all = space->grid_points_ <= kMostTried;
  std::vector<bool> satisfied(space->constraints_.size());
  TuningPoint nearest;
  double distance = std::numeric_limits<double>::infinity();
  for (uint64_t i = 0; i < (all ? space->grid_points_ : kMostTried); ++i) {
    TuningPoint point;
    if (all) {
      point = space->Canonical(space->GridPoint(i));
    } else {
      std::vector<double> units(space->axes_.size());
      for (double& unit : units) unit = uniform(random);
      point = space->FromUnit(units);
    }
    absl::InlinedVector<double, 16> values(point.begin(), point.end());
    values.insert(values.end(), space->sizes_.begin(), space->sizes_.end());
    bool holds = true;
    for (size_t c = 0; c < space->constraints_.size(); ++c) {
      const bool this_one = space->constraints_[c].Holds(values);
      if (this_one) satisfied[c] = true;
      holds = holds && this_one;
    }
    if (!holds) continue;
    const std::vector<double> to = space->ToUnit(point);
    double sum = 0;
    for (size_t k = 0; k < to.size(); ++k) sum += (to[k] - from[k]) * (to[k] - from[k]);
    if (sum < distance) {
      distance = sum;
      nearest = point;
    }
  }
  if (nearest.empty()) {
    const auto unsatisfied = std::find(satisfied.begin(), satisfied.end(), false);
    const std::string which =
        unsatisfied == satisfied.end()
            ? std::string("all constraints together")
            : absl::StrCat("\"",
                           space->constraints_[static_cast<size_t>(unsatisfied - satisfied.begin())].text(),
                           "\"");
    return absl::InvalidArgumentError(
        absl::StrCat("no configuration satisfies ", which,
                     all ? std::string()
                         : absl::StrCat(", of ", kMostTried,
                                        " tried; defaults that satisfy it would show that there is one")));
  }
  space->SetDefaults(nearest);
  return space;
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
