#include "compiler/partition/iteration_space.h"

#include <isl/options.h>

#include <algorithm>
#include <string>

namespace fusion {

using namespace llvm;

// A loop whose sets are larger is not worth the user's time.
constexpr unsigned long kMostOperations = 2'000'000;

IterationSpace::IterationSpace(ExactNumbers& numbers) : numbers_(numbers), context_(isl_ctx_alloc()) {
  isl_options_set_on_error(context_, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(context_, kMostOperations);
}
IterationSpace::~IterationSpace() { isl_ctx_free(context_); }

isl::space IterationSpace::Space(const LoopNest& nest) const {
  return isl::manage(isl_space_set_alloc(context_, 0, static_cast<unsigned>(nest.size())));
}

isl::pw_aff IterationSpace::Constant(int64_t value, const LoopNest& nest) const {
  return isl::manage(isl_pw_aff_from_aff(isl_aff_val_on_domain_space(
      Space(nest).release(), isl_val_int_from_si(context_, static_cast<long>(value)))));
}

isl::pw_aff IterationSpace::Parameter(const SCEV* number, const LoopNest& nest) {
  const auto known = std::find(parameters_.begin(), parameters_.end(), number);
  const std::string name = "p" + std::to_string(known - parameters_.begin());
  if (known == parameters_.end()) parameters_.push_back(number);
  isl_id* id = isl_id_alloc(context_, name.c_str(), const_cast<SCEV*>(number));
  isl_space* space = isl_space_add_param_id(Space(nest).release(), isl_id_copy(id));
  return isl::manage(isl_pw_aff_from_aff(isl_aff_param_on_domain_space_id(space, id)));
}

isl::pw_aff IterationSpace::Affine(const SCEV* number, const LoopNest& nest) {
  ScalarEvolution& evolution = numbers_.evolution();
  if (auto* constant = dyn_cast<SCEVConstant>(number)) {
    if (constant->getAPInt().getSignificantBits() > 62) return {};
    return Constant(constant->getAPInt().getSExtValue(), nest);
  }
  auto scaled = [&](const SCEV* factor, const isl::pw_aff& value) -> isl::pw_aff {
    auto* constant = dyn_cast<SCEVConstant>(factor);
    if (constant == nullptr || value.is_null() || constant->getAPInt().getSignificantBits() > 62) return {};
    return value.scale(isl::val(context(), static_cast<long>(constant->getAPInt().getSExtValue())));
  };
  if (isa<SCEVAddExpr>(number) || isa<SCEVSMaxExpr>(number) || isa<SCEVSMinExpr>(number)) {
    isl::pw_aff all;
    for (const SCEV* operand : cast<SCEVNAryExpr>(number)->operands()) {
      isl::pw_aff value = Affine(operand, nest);
      if (value.is_null()) return {};
      if (all.is_null())
        all = value;
      else
        all = isa<SCEVAddExpr>(number)    ? all.add(value)
              : isa<SCEVSMaxExpr>(number) ? all.max(value)
                                          : all.min(value);
    }
    return all;
  }
  if (auto* product = dyn_cast<SCEVMulExpr>(number);
      product != nullptr && product->getNumOperands() == 2 && isa<SCEVConstant>(product->getOperand(0)))
    return scaled(product->getOperand(0), Affine(product->getOperand(1), nest));
  if (auto* counter = dyn_cast<SCEVAddRecExpr>(number)) {
    const Loop* loop = counter->getLoop();
    const auto* at = std::find(nest.begin(), nest.end(), loop);
    if (at == nest.end() && !loop->contains(&numbers_.loop())) return {};
    isl::pw_aff start = Affine(counter->getStart(), nest);
    if (start.is_null()) return {};
    isl::pw_aff count;
    if (at != nest.end()) {
      count = isl::manage(
          isl_pw_aff_from_aff(isl_aff_var_on_domain(isl_local_space_from_space(Space(nest).release()),
                                                    isl_dim_set, static_cast<unsigned>(at - nest.begin()))));
    } else {  // of a loop around this one
      count =
          Parameter(evolution.getAddRecExpr(evolution.getZero(counter->getType()),
                                            evolution.getOne(counter->getType()), loop, SCEV::FlagAnyWrap),
                    nest);
    }
    isl::pw_aff step = scaled(counter->getStepRecurrence(evolution), count);
    if (step.is_null()) return at == nest.end() ? Parameter(number, nest) : isl::pw_aff();
    return start.add(step);
  }
  return evolution.isLoopInvariant(number, &numbers_.loop()) ? Parameter(number, nest) : isl::pw_aff();
}

isl::set IterationSpace::Domain(const LoopNest& nest) {
  isl::set domain = isl::manage(isl_set_universe(Space(nest).release()));
  for (unsigned at = 0; at < nest.size(); ++at) {
    domain = isl::manage(isl_set_lower_bound_si(domain.release(), isl_dim_set, at, 0));
    const SCEV* last = numbers_.LastCount(*nest[at]);
    const isl::pw_aff most = last == nullptr ? isl::pw_aff() : Affine(last, nest);
    if (most.is_null()) continue;
    const isl::pw_aff count = isl::manage(isl_pw_aff_from_aff(
        isl_aff_var_on_domain(isl_local_space_from_space(Space(nest).release()), isl_dim_set, at)));
    domain = domain.intersect(count.le_set(most));
  }
  return domain;
}

bool IterationSpace::IsExact(const LoopNest& nest) {
  for (unsigned at = 1; at < nest.size(); ++at) {
    const SCEV* last = numbers_.LastCount(*nest[at]);
    if (last == nullptr || Affine(last, nest).is_null()) return false;
  }
  return true;
}

isl::set IterationSpace::Known() {
  const LoopNest none;
  isl::set known = isl::manage(isl_set_universe(isl_space_params_alloc(context_, 0)));
  for (const SCEV* parameter : std::vector<const SCEV*>(parameters_)) {
    auto* counter = dyn_cast<SCEVAddRecExpr>(parameter);
    if (counter == nullptr || !counter->getStart()->isZero() ||
        !counter->getStepRecurrence(numbers_.evolution())->isOne())
      continue;
    const isl::pw_aff value = Parameter(parameter, none);
    known = known.intersect_params(value.ge_set(Constant(0, none)).params());
    const SCEV* last = numbers_.LastCount(*counter->getLoop());
    const isl::pw_aff most = last == nullptr ? isl::pw_aff() : Affine(last, none);
    if (!most.is_null()) known = known.intersect_params(value.le_set(most).params());
  }
  return known;
}

isl::set IterationSpace::Repeats() {
  const LoopNest none;
  const SCEV* last = numbers_.LastCount(numbers_.loop());
  const isl::pw_aff count = last == nullptr ? isl::pw_aff() : Affine(last, none);
  if (count.is_null()) return isl::manage(isl_set_universe(isl_space_params_alloc(context_, 0)));
  return count.ge_set(Constant(1, none)).params();
}

isl::set IterationSpace::Usual(const LoopNest& nest) {
  const isl::set twice = isl::manage(
      isl_set_lower_bound_si(Domain(nest).release(), isl_dim_set, static_cast<unsigned>(nest.size() - 1), 1));
  return twice.params();
}

}  // namespace fusion
