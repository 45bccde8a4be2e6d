#include "server/plan/plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace fusion {

const char* SkeletonName(Skeleton skeleton) {
  switch (skeleton) {
    case Skeleton::kElement:
      return "element";
    case Skeleton::kVector:
      return "vector";
    case Skeleton::kRowPanel:
      return "row_panel";
    case Skeleton::kCooperative:
      return "cooperative";
    case Skeleton::kScalar:
      return "scalar";
  }
  return "unknown";
}

std::string RunTimeEstimate::ToString() const {
  return absl::StrFormat(
      "%.3g us = %smax(memory %.3g us for %.4g bytes, compute %.3g us for %.4g flops%s) + waits %.3g us + "
      "barriers %.3g us + launch %.3g us%s; "
      "occupancy %.2f, %.3g waves, %d registers, %d bytes shared",
      total_seconds * 1e6, correction == 1 ? "" : "(", memory_seconds * 1e6, bytes, compute_seconds * 1e6,
      flops,
      measured_routines         ? absl::StrFormat(", both in turn %.3g us; of measured routines%s",
                                                  alone_seconds * 1e6, extended_routines ? ", extended" : "")
      : missing_routine.empty() ? ""
                                : absl::StrCat(", no measured time of ", missing_routine),
      waiting_seconds * 1e6, barrier_seconds * 1e6, launch_seconds * 1e6,
      correction == 1 ? "" : absl::StrFormat(") x %.2f %s", correction, measured ? "measured" : "learned"),
      occupancy, waves, registers, shared_bytes);
}

std::string FusionImplementation::Describe(const Graph& graph) const {
  if (skeleton == Skeleton::kCooperative) {
    std::vector<std::string> parts;
    for (const FusionImplementation& sweep : sweeps) parts.push_back(sweep.Describe(graph));
    return absl::StrCat("cooperative (", absl::StrJoin(parts, " | "), ")");
  }
  std::vector<std::string> names;
  for (NodeId id : order) names.push_back(graph.value(graph.node(id).result).name);
  std::string text =
      absl::StrCat("{", absl::StrJoin(names, " "), "} ", SkeletonName(skeleton), " T", parameters.threads);
  if (skeleton == Skeleton::kElement) absl::StrAppend(&text, " E", parameters.elements_per_block);
  if (parameters.vector_width > 1) absl::StrAppend(&text, " V", parameters.vector_width);
  if (parameters.unroll > 1) absl::StrAppend(&text, " U", parameters.unroll);
  if (parameters.chunks > 0) absl::StrAppend(&text, " C", parameters.chunks);
  if (skeleton == Skeleton::kRowPanel) {
    if (parameters.cluster_blocks > 1)
      absl::StrAppend(&text, " cluster ", parameters.cluster_blocks);
    else if (parameters.threads_per_row != parameters.threads)
      absl::StrAppend(&text, " R", parameters.threads_per_row);
    if (parameters.rows_per_step > 1) absl::StrAppend(&text, " M", parameters.rows_per_step);
    if (parameters.stages > 0) absl::StrAppend(&text, " S", parameters.stages);
    if (parameters.column_tiles) absl::StrAppend(&text, " tiles");
    if (parameters.tile_rows > 0) absl::StrAppend(&text, " of ", parameters.tile_rows, " rows");
  }
  if (parameters.load_path == LoadPath::kStaged) absl::StrAppend(&text, " staged");
  if (parameters.load_path == LoadPath::kBulk) absl::StrAppend(&text, " bulk");
  if (parameters.load_path == LoadPath::kExchanged) absl::StrAppend(&text, " exchanged");
  if (parameters.hold_columns) absl::StrAppend(&text, " holds");
  if (parameters.reversed) absl::StrAppend(&text, " reversed");
  if (parameters.atomic) absl::StrAppend(&text, " atomic");
  if (parameters.l2_percent > 0) absl::StrAppend(&text, " L2 ", parameters.l2_percent, "%");
  if (kept.any()) {
    absl::StrAppend(&text, " keeps ", kept.register_rows > 0 ? kept.register_rows : kept.shared_rows,
                    " rows");
    if (kept.register_rows > 0) text += " in registers";
    if (kept.register_rows > 0 && kept.shared_rows > 0)
      absl::StrAppend(&text, " and ", kept.shared_rows, " in shared memory");
  }
  if (parameters.blocks_per_multiprocessor == 0) absl::StrAppend(&text, " one-shot");
  if (parameters.resident_blocks > 1) absl::StrAppend(&text, " B", parameters.resident_blocks);
  if (parameters.blocks_per_multiprocessor > 1)
    absl::StrAppend(&text, " B", parameters.blocks_per_multiprocessor);
  std::vector<std::string> choices;
  bool any = false;
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = graph.node(order[i]);
    v1::Granularity granularity = implementations[i] == 0 ? v1::THREAD : v1::SUB_WARP;
    std::string choice;
    if (node.overload->form == v1::ELEMENT) {
      const Implementation& implementation = node.overload->implementations[implementations[i]];
      granularity = implementation.granularity;
      choice = implementation.routine;
    }
    if (granularity != v1::THREAD) any = true;
    choices.push_back(granularity == v1::THREAD ? "thread" : choice.empty() ? "entry" : choice);
  }
  if (any) absl::StrAppend(&text, " [", absl::StrJoin(choices, ","), "]");
  return text;
}

int64_t SharedElementStride(int entries, int entry_bytes) {
  const int64_t bytes = int64_t{entries} * entry_bytes;
  return bytes % 32 == 0 ? entries + 16 / entry_bytes : entries;
}

bool KeptInL2(const Value& value, Skeleton skeleton) {
  const size_t least = skeleton == Skeleton::kVector ? 1 : 2;
  return value.is_input && !value.type.mapped && value.type.extents.size() >= least;
}

bool GivenUpLast(Skeleton skeleton) { return skeleton == Skeleton::kVector; }

int ExchangeableUnits(const Value& value) {
  const int bytes = value.type.element_entries() * DataTypeBytes(value.type.data_type), units = bytes / 16;
  return value.type.mapped && bytes % 16 == 0 && (units == 2 || units == 4 || units == 8) ? units : 1;
}

int ExchangedUnits(const Graph& graph, const FusionImplementation& implementation) {
  int units = 1;
  for (ValueId id : implementation.loads) units = std::max(units, ExchangeableUnits(graph.value(id)));
  for (ValueId id : implementation.stores) units = std::max(units, ExchangeableUnits(graph.value(id)));
  return units;
}

bool ReadsInPlace(const FusionImplementation& implementation) {
  const std::vector<ValueId>& loads = implementation.loads;
  return std::any_of(implementation.placement.begin(), implementation.placement.end(),
                     [&](const PlacedValue& placed) {
                       return placed.storage == StorageClass::kDevice &&
                              std::binary_search(loads.begin(), loads.end(), placed.value);
                     });
}

int ItemsPerElement(const Graph& graph, const Node& node, int choice) {
  const Type& type = graph.value(node.result).type;
  if (node.overload->form != v1::ELEMENT) return type.element_entries();
  return ThreadsPerElement(node.overload->implementations[choice], type.element_shape);
}

bool AddsInPlace(const Graph& graph, const Node& reduction, const NodeSet& kernel) {
  const Overload& overload = *reduction.overload;
  if (overload.monoid != v1::SUM || graph.value(reduction.result).type.data_type != v1::F64) return false;
  if (overload.finish_routine.empty()) return true;
  if (overload.part_routine.empty()) return false;
  return std::none_of(overload.finish_operands.begin(), overload.finish_operands.end(), [&](int k) {
    const auto& producer = graph.value(reduction.operands[k]).producer;
    return producer.has_value() && kernel.Contains(producer->value);
  });
}

}  // namespace fusion
