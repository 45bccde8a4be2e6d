#include "server/skeletons/plan_message.h"

#include <algorithm>

#include "server/skeletons/parameter_archive.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

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

absl::Status NotOfTheGraph() { return absl::DataLossError("a kernel that is not one of the graph"); }

}  // namespace

v1::FusionImplementation ToMessage(const FusionImplementation& implementation) {
  v1::FusionImplementation message;
  for (int node : implementation.fusion.nodes.Members()) message.add_nodes(node);
  AddIds(implementation.order, message.mutable_order());
  const std::vector<const Skeleton*>& skeletons = Skeletons();
  message.set_skeleton(static_cast<int>(
      std::find(skeletons.begin(), skeletons.end(), implementation.skeleton) - skeletons.begin()));
  ParameterWriter writer(&message);
  implementation.skeleton->Write(implementation.parameters, &writer);
  AddIds(implementation.loads, message.mutable_loads());
  AddIds(implementation.stores, message.mutable_stores());
  *message.mutable_estimate() = ToMessage(implementation.estimate);
  return message;
}

absl::StatusOr<FusionImplementation> FromMessage(const v1::FusionImplementation& message,
                                                 const Graph& graph) {
  const int nodes = graph.node_count(), values = static_cast<int>(graph.values().size());
  const std::vector<const Skeleton*>& skeletons = Skeletons();
  if (!AreBelow(message.nodes(), nodes) || !AreBelow(message.order(), nodes) ||
      !AreBelow(message.loads(), values) || !AreBelow(message.stores(), values) || message.skeleton() < 0 ||
      message.skeleton() >= static_cast<int>(skeletons.size()))
    return NotOfTheGraph();
  FusionImplementation implementation;
  for (int node : message.nodes()) implementation.fusion.nodes.Add(node);
  implementation.order = IdsOf<NodeId>(message.order());
  implementation.skeleton = skeletons[message.skeleton()];
  ParameterReader reader(message, graph);
  implementation.parameters = implementation.skeleton->Read(&reader);
  if (!reader.Complete()) return NotOfTheGraph();
  implementation.loads = IdsOf<ValueId>(message.loads());
  implementation.stores = IdsOf<ValueId>(message.stores());
  implementation.estimate = FromMessage(message.estimate());
  return implementation;
}

void ParameterWriter::Field(FusionImplementation& kernel) { *message_->add_kernels() = ToMessage(kernel); }

void ParameterReader::Field(FusionImplementation& kernel) {
  if (kernel_ < message_.kernels_size()) {
    absl::StatusOr<FusionImplementation> read = FromMessage(message_.kernels(kernel_), graph_);
    known_ &= read.ok();
    if (read.ok()) kernel = *std::move(read);
  } else {
    known_ = false;
  }
  ++kernel_;
}

}  // namespace fusion
