// The C functions that set up sections and look at them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/tuner/fusion_tuner.h"
#include "client/tuner/handles.h"
#include "client/tuner/message.h"

using namespace fusion::tuning;  // NOLINT: these functions are the C face of that namespace
namespace v1 = fusion::v1;

namespace {

// Before messages and allocations of other kinds get out of hand.
constexpr size_t kMostValues = 1000;

int Done(const absl::Status& status) { return status.ok() ? FUSION_TUNER_OK : Fail(status); }

int Missing(const char* what) { return Fail(absl::InvalidArgumentError(absl::StrCat(what, " is NULL"))); }

v1::TuningParameter Named(const char* name) {
  v1::TuningParameter parameter;
  parameter.set_name(name);
  return parameter;
}

int Add(fusion_tuner* tuner, v1::TuningParameter declaration, fusion_tuner_parameter** parameter) {
  absl::StatusOr<Parameter*> added = Of(tuner)->AddParameter(std::move(declaration));
  if (!added.ok()) return Fail(added.status());
  *parameter = HandleOf(*added);
  return FUSION_TUNER_OK;
}

int Give(const absl::StatusOr<Section*>& found, fusion_tuner_section** section) {
  if (!found.ok()) return Fail(found.status());
  *section = HandleOf(*found);
  return FUSION_TUNER_OK;
}

absl::Status NotDeclared(const Section& section) {
  return absl::FailedPreconditionError(
      absl::StrCat("section ", section.name(), " is not declared: call fusion_tuner_section_declare first"));
}

}  // namespace

const char* fusion_tuner_message(void) { return LastMessage(); }

void fusion_tuner_destroy(fusion_tuner* handle) {
  Tuner* tuner = Of(handle);
  if (tuner == nullptr) return;
  if (tuner->forked()) {
    tuner->Abandon();
    return;
  }
  delete tuner;
}

int fusion_tuner_flush(fusion_tuner* tuner, double seconds) {
  if (tuner == nullptr) return Missing("the tuner");
  if (!(seconds >= 0))
    return Fail(
        absl::InvalidArgumentError(absl::StrCat("seconds are ", seconds, "; they must not be negative")));
  return Done(Of(tuner)->Flush(seconds));
}

int fusion_tuner_counters(fusion_tuner* tuner, fusion_tuner_counters_t* counters) {
  if (tuner == nullptr) return Missing("the tuner");
  if (counters == nullptr) return Missing("counters");
  if (counters->size < sizeof(size_t))
    return Fail(absl::InvalidArgumentError("size must be sizeof(fusion_tuner_counters_t)"));
  fusion_tuner_counters_t all{};
  Of(tuner)->Counters(all);
  all.size = counters->size;
  std::memcpy(counters, &all, std::min(sizeof(all), counters->size));
  return FUSION_TUNER_OK;
}

// ---- Parameters

int fusion_tuner_integer_range(fusion_tuner* tuner, const char* name, int64_t lower, int64_t upper,
                               int64_t step, fusion_tuner_parameter** parameter) {
  if (tuner == nullptr || name == nullptr || parameter == nullptr) return Missing("tuner, name or parameter");
  v1::TuningParameter declaration = Named(name);
  declaration.mutable_integer()->set_lower(lower);
  declaration.mutable_integer()->set_upper(upper);
  declaration.mutable_integer()->set_step(step);
  return Add(tuner, std::move(declaration), parameter);
}

int fusion_tuner_power_of_two(fusion_tuner* tuner, const char* name, int64_t lower, int64_t upper,
                              fusion_tuner_parameter** parameter) {
  if (tuner == nullptr || name == nullptr || parameter == nullptr) return Missing("tuner, name or parameter");
  v1::TuningParameter declaration = Named(name);
  declaration.mutable_power_of_two()->set_lower(lower);
  declaration.mutable_power_of_two()->set_upper(upper);
  return Add(tuner, std::move(declaration), parameter);
}

int fusion_tuner_enumeration(fusion_tuner* tuner, const char* name, const char* const* values, size_t count,
                             fusion_tuner_parameter** parameter) {
  if (tuner == nullptr || name == nullptr || parameter == nullptr || (values == nullptr && count > 0))
    return Missing("tuner, name, values or parameter");
  if (count > kMostValues)
    return Fail(absl::InvalidArgumentError(absl::StrCat("parameter ", name, ": an enumeration has 1 to ",
                                                        kMostValues, " values; this one has ", count)));
  v1::TuningParameter declaration = Named(name);
  declaration.mutable_enumeration();
  for (size_t i = 0; i < count; ++i) {
    if (values[i] == nullptr) return Missing("a value");
    declaration.mutable_enumeration()->add_values(values[i]);
  }
  return Add(tuner, std::move(declaration), parameter);
}

int fusion_tuner_real_range(fusion_tuner* tuner, const char* name, double lower, double upper,
                            int logarithmic, fusion_tuner_parameter** parameter) {
  if (tuner == nullptr || name == nullptr || parameter == nullptr) return Missing("tuner, name or parameter");
  v1::TuningParameter declaration = Named(name);
  declaration.mutable_real()->set_lower(lower);
  declaration.mutable_real()->set_upper(upper);
  declaration.mutable_real()->set_logarithmic(logarithmic != 0);
  return Add(tuner, std::move(declaration), parameter);
}

int fusion_tuner_parameter_default(fusion_tuner_parameter* parameter, double value) {
  if (parameter == nullptr) return Missing("the parameter");
  return Done(Of(parameter)->tuner->ChangeParameter(
      *Of(parameter), [&](v1::TuningParameter& declaration) { declaration.set_default_value(value); }));
}

int fusion_tuner_parameter_condition(fusion_tuner_parameter* parameter, const char* expression) {
  if (parameter == nullptr || expression == nullptr) return Missing("parameter or expression");
  return Done(Of(parameter)->tuner->ChangeParameter(
      *Of(parameter), [&](v1::TuningParameter& declaration) { declaration.set_condition(expression); }));
}

// ---- Sections

int fusion_tuner_section_create(fusion_tuner* tuner, const char* name, fusion_tuner_section** section) {
  if (tuner == nullptr || name == nullptr || section == nullptr) return Missing("tuner, name or section");
  return Give(Of(tuner)->CreateSection(name), section);
}

int fusion_tuner_section_parameter(fusion_tuner_section* section, fusion_tuner_parameter* parameter) {
  if (section == nullptr || parameter == nullptr) return Missing("section or parameter");
  return Done(Of(section)->tuner->AddToSection(*Of(section), *Of(parameter)));
}

int fusion_tuner_section_constraint(fusion_tuner_section* section, const char* expression) {
  if (section == nullptr || expression == nullptr) return Missing("section or expression");
  return Done(Of(section)->tuner->ChangeSection(*Of(section), [&](v1::SectionDeclaration& declaration) {
    declaration.add_constraints(expression);
    return absl::OkStatus();
  }));
}

int fusion_tuner_section_size(fusion_tuner_section* section, const char* name, int64_t value) {
  if (section == nullptr || name == nullptr) return Missing("section or name");
  return Done(Of(section)->tuner->ChangeSection(*Of(section), [&](v1::SectionDeclaration& declaration) {
    v1::ContextSize& size = *declaration.add_context();
    size.set_name(name);
    size.set_value(value);
    return absl::OkStatus();
  }));
}

int fusion_tuner_section_objective(fusion_tuner_section* section, const char* name, const char* unit,
                                   int maximize) {
  if (section == nullptr || name == nullptr) return Missing("section or name");
  return Done(Of(section)->tuner->ChangeSection(*Of(section), [&](v1::SectionDeclaration& declaration) {
    v1::TuningObjective& objective = *declaration.mutable_objective();
    objective.set_name(name);
    objective.set_unit(unit == nullptr ? "" : unit);
    objective.set_maximize(maximize != 0);
    if (maximize != 0 && (objective.name().empty() || objective.name() == "time"))
      return absl::InvalidArgumentError("time is not maximised: name another objective");
    return absl::OkStatus();
  }));
}

int fusion_tuner_section_declare(fusion_tuner_section* section) {
  if (section == nullptr) return Missing("the section");
  return Done(Of(section)->tuner->Declare(*Of(section)));
}

int fusion_tuner_section_with_sizes(fusion_tuner_section* section, const int64_t* sizes, size_t count,
                                    fusion_tuner_section** with_sizes) {
  if (section == nullptr || with_sizes == nullptr || (sizes == nullptr && count > 0))
    return Missing("section, sizes or with_sizes");
  return Give(Of(section)->tuner->WithSizes(*Of(section), {sizes, sizes + count}), with_sizes);
}

int fusion_tuner_section_find(fusion_tuner* tuner, const char* name, fusion_tuner_section** section) {
  if (tuner == nullptr || name == nullptr || section == nullptr) return Missing("tuner, name or section");
  return Give(Of(tuner)->Find(name), section);
}

int fusion_tuner_section_status(fusion_tuner_section* section) {
  if (section == nullptr) return Missing("the section");
  absl::Status status;
  {
    std::lock_guard lock(Of(section)->tuner->mutex());
    status = Of(section)->status();
  }
  return Done(status);
}

int fusion_tuner_best(fusion_tuner_section* handle, fusion_tuner_value* values, size_t count) {
  Section* section = Of(handle);
  if (section == nullptr || (values == nullptr && count > 0)) return Missing("section or values");
  if (!section->declared()) return Fail(NotDeclared(*section));
  std::lock_guard lock(section->tuner->mutex());
  const Configuration& best = *section->choice().best;
  std::copy_n(best.values.begin(), std::min(count, best.values.size()), values);
  return FUSION_TUNER_OK;
}

int fusion_tuner_converged(fusion_tuner_section* handle) {
  Section* section = Of(handle);
  if (section == nullptr || !section->declared()) {
    section == nullptr ? Missing("the section") : Fail(NotDeclared(*section));
    return -1;
  }
  std::lock_guard lock(section->tuner->mutex());
  return section->choice().converged ? 1 : 0;
}
