#include "server/optimize/search_messages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "server/skeletons/plan_message.h"

namespace fusion {

v1::PredictionModel ToMessage(const CostModel& model) {
  v1::PredictionModel message;
  *message.mutable_device() = model.device();
  message.set_warm_bytes(model.warm_bytes());
  *message.mutable_corrections() = model.residual().ToMessage();
  for (v1::RoutineTable& table : model.routines().ToMessages()) *message.add_routines() = std::move(table);
  if (model.memory() != nullptr)
    for (std::string& family : model.memory()->Families()) message.add_families(std::move(family));
  return message;
}

absl::StatusOr<CostModel> FromMessage(const v1::PredictionModel& message,
                                      std::shared_ptr<const KernelMemory> memory) {
  FUSION_ASSIGN_OR_RETURN(Residual residual, Residual::FromMessage(message.corrections()));
  RoutineTables routines;
  for (const v1::RoutineTable& table : message.routines()) FUSION_RETURN_IF_ERROR(routines.Add(table));
  return CostModel(message.device(), message.warm_bytes(), std::move(residual), std::move(routines),
                   std::move(memory));
}

v1::RememberedKernels ToMessage(const std::vector<RememberedKernel>& kernels) {
  v1::RememberedKernels message;
  for (const RememberedKernel& kernel : kernels) {
    v1::RememberedKernels::Kernel* added = message.add_kernels();
    added->set_sizes(kernel.sizes);
    added->set_variant(kernel.variant);
    added->set_seconds(kernel.seconds);
    added->set_deviation(kernel.deviation);
    added->set_predicted_seconds(kernel.predicted_seconds);
    added->mutable_features()->Add(kernel.features.begin(), kernel.features.end());
    added->set_jobs(kernel.jobs);
    added->set_learned_micros(kernel.learned_micros);
  }
  return message;
}

std::vector<RememberedKernel> FromMessage(const v1::RememberedKernels& message) {
  std::vector<RememberedKernel> kernels;
  for (const v1::RememberedKernels::Kernel& kernel : message.kernels()) {
    RememberedKernel& added = kernels.emplace_back();
    added.sizes = kernel.sizes();
    added.variant = kernel.variant();
    added.seconds = kernel.seconds();
    added.deviation = kernel.deviation();
    added.predicted_seconds = kernel.predicted_seconds();
    std::copy_n(kernel.features().begin(), std::min<int>(kernel.features_size(), kResidualFeatures),
                added.features.begin());
    added.jobs = kernel.jobs();
    added.learned_micros = kernel.learned_micros();
  }
  return kernels;
}

v1::FoundPlans ToMessage(const Plans& plans) {
  v1::FoundPlans message;
  for (const FusionImplementation& implementation : plans.space.implementations)
    *message.add_implementations() = ToMessage(implementation);
  message.mutable_unfused()->Add(plans.space.unfused.begin(), plans.space.unfused.end());
  for (const CoverSolution& cover : plans.covers.covers) {
    v1::FoundPlans::Cover* added = message.add_covers();
    added->mutable_columns()->Add(cover.columns.begin(), cover.columns.end());
    added->set_seconds(cover.seconds);
  }
  message.set_proved_optimal(plans.covers.proved_optimal);
  message.set_bound_seconds(plans.covers.bound_seconds);
  message.set_exhausted(plans.covers.exhausted);
  *message.mutable_summary() = plans.summary;
  message.set_unseen_seconds(plans.unseen_seconds);
  message.set_corrections(plans.corrections);
  message.set_learned_micros(plans.learned_micros);
  return message;
}

absl::StatusOr<Plans> FromMessage(const v1::FoundPlans& message, const Graph& graph) {
  const auto are_positions = [&](const auto& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int position) {
      return position >= 0 && position < message.implementations_size();
    });
  };
  Plans plans;
  bool known = message.unfused_size() == graph.node_count() && are_positions(message.unfused()) &&
               message.covers_size() > 0;
  for (const v1::FusionImplementation& implementation : message.implementations()) {
    FUSION_ASSIGN_OR_RETURN(FusionImplementation made, FromMessage(implementation, graph));
    plans.space.implementations.push_back(std::move(made));
  }
  plans.space.unfused.assign(message.unfused().begin(), message.unfused().end());
  for (const v1::FoundPlans::Cover& cover : message.covers()) {
    known &= are_positions(cover.columns());
    plans.covers.covers.push_back({{cover.columns().begin(), cover.columns().end()}, cover.seconds()});
  }
  if (!known) return absl::DataLossError("plans that are not those of the graph");
  plans.covers.proved_optimal = message.proved_optimal();
  plans.covers.bound_seconds = message.bound_seconds();
  plans.covers.exhausted = message.exhausted();
  plans.summary = message.summary();
  plans.space.fusible_sets = plans.summary.fusions();
  plans.space.complete = plans.summary.complete();
  plans.space.fusions_by_size = {0};
  plans.space.fusions_by_size.insert(plans.space.fusions_by_size.end(),
                                     plans.summary.fusions_by_size().begin(),
                                     plans.summary.fusions_by_size().end());
  plans.lp_text = message.lp_text();
  plans.unseen_seconds = message.unseen_seconds();
  plans.corrections = message.corrections();
  plans.learned_micros = message.learned_micros();
  return plans;
}

}  // namespace fusion
