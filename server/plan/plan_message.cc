#include "server/plan/plan_message.h"

#include <algorithm>

#include "base/status_macros.h"

namespace fusion {
namespace {

v1::Extent ToMessage(const Extent& extent) {
  v1::Extent message;
  if (extent.name.empty())
    message.set_constant(extent.constant);
  else
    message.set_size(extent.name);
  return message;
}

Extent FromMessage(const v1::Extent& message) {
  return {.name = message.size(), .constant = message.constant()};
}

v1::SkeletonParameters ToMessage(const SkeletonParameters& parameters) {
  v1::SkeletonParameters message;
  message.set_threads(parameters.threads);
  message.set_elements_per_block(parameters.elements_per_block);
  message.set_vector_width(parameters.vector_width);
  message.set_chunks(parameters.chunks);
  message.set_threads_per_row(parameters.threads_per_row);
  message.set_cluster_blocks(parameters.cluster_blocks);
  message.set_stages(parameters.stages);
  message.set_hold_columns(parameters.hold_columns);
  message.set_ragged(parameters.ragged);
  message.set_unroll(parameters.unroll);
  message.set_blocks_per_multiprocessor(parameters.blocks_per_multiprocessor);
  message.set_resident_blocks(parameters.resident_blocks);
  message.set_load_path(static_cast<int>(parameters.load_path));
  message.set_rows_per_step(parameters.rows_per_step);
  message.set_column_tiles(parameters.column_tiles);
  message.set_tile_rows(parameters.tile_rows);
  message.set_reversed(parameters.reversed);
  message.set_atomic(parameters.atomic);
  message.set_l2_percent(parameters.l2_percent);
  message.set_load_repeats(parameters.load_repeats);
  message.set_compute_repeats(parameters.compute_repeats);
  return message;
}

SkeletonParameters FromMessage(const v1::SkeletonParameters& message) {
  return {.threads = message.threads(),
          .elements_per_block = message.elements_per_block(),
          .vector_width = message.vector_width(),
          .chunks = message.chunks(),
          .threads_per_row = message.threads_per_row(),
          .cluster_blocks = message.cluster_blocks(),
          .stages = message.stages(),
          .hold_columns = message.hold_columns(),
          .ragged = message.ragged(),
          .unroll = message.unroll(),
          .blocks_per_multiprocessor = message.blocks_per_multiprocessor(),
          .resident_blocks = message.resident_blocks(),
          .load_path = static_cast<LoadPath>(message.load_path()),
          .rows_per_step = message.rows_per_step(),
          .column_tiles = message.column_tiles(),
          .tile_rows = message.tile_rows(),
          .reversed = message.reversed(),
          .atomic = message.atomic(),
          .l2_percent = message.l2_percent(),
          .load_repeats = message.load_repeats(),
          .compute_repeats = message.compute_repeats()};
}

v1::RunTimeEstimate ToMessage(const RunTimeEstimate& estimate) {
  v1::RunTimeEstimate message;
  message.set_bytes(estimate.bytes);
  message.set_floor_bytes(estimate.floor_bytes);
  message.set_flops(estimate.flops);
  message.set_occupancy(estimate.occupancy);
  message.set_memory_seconds(estimate.memory_seconds);
  message.set_compute_seconds(estimate.compute_seconds);
  message.set_barrier_seconds(estimate.barrier_seconds);
  message.set_waiting_seconds(estimate.waiting_seconds);
  message.set_launch_seconds(estimate.launch_seconds);
  message.set_issue_seconds(estimate.issue_seconds);
  message.set_resident_blocks(estimate.resident_blocks);
  message.set_waves(estimate.waves);
  message.set_load(estimate.load);
  message.set_measured_routines(estimate.measured_routines);
  message.set_extended_routines(estimate.extended_routines);
  message.set_missing_routine(estimate.missing_routine);
  message.set_alone_seconds(estimate.alone_seconds);
  message.set_total_seconds(estimate.total_seconds);
  message.set_correction(estimate.correction);
  message.set_measured(estimate.measured);
  message.set_measured_jobs(estimate.measured_jobs);
  message.set_measured_micros(estimate.measured_micros);
  message.set_registers(estimate.registers);
  message.set_shared_bytes(estimate.shared_bytes);
  return message;
}

RunTimeEstimate FromMessage(const v1::RunTimeEstimate& message) {
  return {.bytes = message.bytes(),
          .floor_bytes = message.floor_bytes(),
          .flops = message.flops(),
          .occupancy = message.occupancy(),
          .memory_seconds = message.memory_seconds(),
          .compute_seconds = message.compute_seconds(),
          .barrier_seconds = message.barrier_seconds(),
          .waiting_seconds = message.waiting_seconds(),
          .launch_seconds = message.launch_seconds(),
          .issue_seconds = message.issue_seconds(),
          .resident_blocks = message.resident_blocks(),
          .waves = message.waves(),
          .load = message.load(),
          .measured_routines = message.measured_routines(),
          .extended_routines = message.extended_routines(),
          .missing_routine = message.missing_routine(),
          .alone_seconds = message.alone_seconds(),
          .total_seconds = message.total_seconds(),
          .correction = message.correction(),
          .measured = message.measured(),
          .measured_jobs = message.measured_jobs(),
          .measured_micros = message.measured_micros(),
          .registers = message.registers(),
          .shared_bytes = message.shared_bytes()};
}

template <typename Id, typename Field>
void AddIds(const std::vector<Id>& ids, Field* field) {
  for (Id id : ids) field->Add(id.value);
}

template <typename Id, typename Field>
std::vector<Id> IdsOf(const Field& field) {
  std::vector<Id> ids;
  for (int value : field) ids.push_back(Id{value});
  return ids;
}

template <typename Field>
bool AreBelow(const Field& numbers, int count) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](int number) { return number >= 0 && number < count; });
}

}  // namespace

v1::FusionImplementation ToMessage(const FusionImplementation& implementation) {
  v1::FusionImplementation message;
  for (int node : implementation.fusion.nodes.Members()) message.add_nodes(node);
  AddIds(implementation.order, message.mutable_order());
  message.mutable_implementations()->Add(implementation.implementations.begin(),
                                         implementation.implementations.end());
  message.set_skeleton(static_cast<int>(implementation.skeleton));
  *message.mutable_parameters() = ToMessage(implementation.parameters);
  for (const PlacedValue& placed : implementation.placement) {
    v1::FusionImplementation::PlacedValue* value = message.add_placement();
    value->set_value(placed.value.value);
    value->set_storage(static_cast<int>(placed.storage));
    value->set_offset(placed.offset);
    value->set_size(placed.size);
  }
  message.set_shared_entries(implementation.shared_entries);
  const RowPanelRoles& panel = implementation.row_panel;
  v1::FusionImplementation::RowPanel* row_panel = message.mutable_row_panel();
  *row_panel->mutable_rows() = ToMessage(panel.rows);
  *row_panel->mutable_columns() = ToMessage(panel.columns);
  for (const std::vector<int>& roles : panel.roles)
    row_panel->add_roles()->mutable_of_dimensions()->Add(roles.begin(), roles.end());
  row_panel->mutable_phases()->Add(panel.phases.begin(), panel.phases.end());
  row_panel->set_phase_count(panel.phase_count);
  AddIds(implementation.kept.values, message.mutable_kept()->mutable_values());
  message.mutable_kept()->set_shared_rows(implementation.kept.shared_rows);
  message.mutable_kept()->set_register_rows(implementation.kept.register_rows);
  message.mutable_kept()->set_filled(implementation.kept.filled);
  for (const FusionImplementation& sweep : implementation.sweeps) *message.add_sweeps() = ToMessage(sweep);
  AddIds(implementation.loads, message.mutable_loads());
  AddIds(implementation.stores, message.mutable_stores());
  *message.mutable_estimate() = ToMessage(implementation.estimate);
  return message;
}

absl::StatusOr<FusionImplementation> FromMessage(const v1::FusionImplementation& message,
                                                 const Graph& graph) {
  const int nodes = graph.node_count(), values = static_cast<int>(graph.values().size());
  bool known = AreBelow(message.nodes(), nodes) && AreBelow(message.order(), nodes) &&
               AreBelow(message.kept().values(), values) && AreBelow(message.loads(), values) &&
               AreBelow(message.stores(), values) && message.skeleton() >= 0 &&
               message.skeleton() <= static_cast<int>(Skeleton::kScalar);
  for (const v1::FusionImplementation::PlacedValue& placed : message.placement())
    known &= placed.value() >= 0 && placed.value() < values && placed.storage() >= 0 &&
             placed.storage() <= static_cast<int>(StorageClass::kDevice);
  known &= message.parameters().load_path() >= 0 &&
           message.parameters().load_path() <= static_cast<int>(LoadPath::kExchanged);
  if (!known) return absl::DataLossError("a kernel that is not one of the graph");

  FusionImplementation implementation;
  for (int node : message.nodes()) implementation.fusion.nodes.Add(node);
  implementation.order = IdsOf<NodeId>(message.order());
  implementation.implementations.assign(message.implementations().begin(), message.implementations().end());
  implementation.skeleton = static_cast<Skeleton>(message.skeleton());
  implementation.parameters = FromMessage(message.parameters());
  for (const v1::FusionImplementation::PlacedValue& placed : message.placement())
    implementation.placement.push_back({.value = ValueId{placed.value()},
                                        .storage = static_cast<StorageClass>(placed.storage()),
                                        .offset = placed.offset(),
                                        .size = placed.size()});
  implementation.shared_entries = message.shared_entries();
  RowPanelRoles& panel = implementation.row_panel;
  panel.rows = FromMessage(message.row_panel().rows());
  panel.columns = FromMessage(message.row_panel().columns());
  for (const v1::FusionImplementation::RowPanel::Roles& roles : message.row_panel().roles())
    panel.roles.emplace_back(roles.of_dimensions().begin(), roles.of_dimensions().end());
  panel.phases.assign(message.row_panel().phases().begin(), message.row_panel().phases().end());
  panel.phase_count = message.row_panel().phase_count();
  implementation.kept = {.values = IdsOf<ValueId>(message.kept().values()),
                         .shared_rows = message.kept().shared_rows(),
                         .register_rows = message.kept().register_rows(),
                         .filled = message.kept().filled()};
  for (const v1::FusionImplementation& sweep : message.sweeps()) {
    FUSION_ASSIGN_OR_RETURN(FusionImplementation own, FromMessage(sweep, graph));
    implementation.sweeps.push_back(std::move(own));
  }
  implementation.loads = IdsOf<ValueId>(message.loads());
  implementation.stores = IdsOf<ValueId>(message.stores());
  implementation.estimate = FromMessage(message.estimate());
  return implementation;
}

}  // namespace fusion
