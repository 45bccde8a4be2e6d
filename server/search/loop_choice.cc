// Parameters of the vector and row-panel skeletons.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/search/fusion_shape.h"

namespace fusion {
namespace {

constexpr double kComputeEfficiency = 0.5;  // of the peak, assumed: loops of fused multiply-adds with loads between

int AccumulatorBytes(const FusionShape& shape, const Node& node) {
  return node.overload->monoid == v1::ARG_MAX ? 16 : DataTypeBytes(shape.graph.value(node.result).type.data_type);
}

}  // namespace

void ChooseVector(const FusionShape& shape, std::vector<FusionImplementation>* out) {
  double length = 1;
  int vectors = 0;
  for (int member : shape.members) {
    double extent = 1;
    for (const NodeDimension& dimension : shape.node(member).dimensions) extent *= shape.Size(dimension.extent);
    length = std::max(length, extent);
  }
  for (ValueId value : shape.loads)
    if (!shape.graph.value(value).type.is_scalar()) ++vectors;
  const DeviceDescription& device = shape.model.device();
  auto add = [&](int threads, int width, int unroll) {
    FusionImplementation implementation = shape.Base();
    SkeletonParameters& parameters = implementation.parameters;
    parameters.threads = threads;
    parameters.vector_width = width;
    parameters.unroll = unroll;
    KernelTraits traits = shape.Traits();
    traits.threads = threads;
    traits.registers = 24 + static_cast<int>((vectors + shape.members.size()) * width * unroll * shape.entry_bytes / 4);
    traits.compute_efficiency = kComputeEfficiency;
    int resident = shape.cuda() ? ResidentBlocks(device, threads, traits.registers, 0) : 1;
    if (resident == 0) return;
    parameters.blocks_per_multiprocessor = resident;
    const double tile = double(threads) * width * unroll;
    traits.blocks = static_cast<int64_t>(std::min(length / tile + 1, double(device.multiprocessors()) * resident));
    // Loads of one step are under way together; half of the time the warp waits for them.
    traits.bytes_in_flight_per_block = 0.5 * tile * vectors * shape.entry_bytes;
    implementation.estimate = shape.model.Estimate(traits);
    out->push_back(std::move(implementation));
  };
  if (shape.skeleton.skeleton == Skeleton::kScalar) {
    add(32, 1, 1);
  } else if (shape.cuda()) {
    const int width = 16 / shape.entry_bytes;
    for (int threads : {256, 512, 128})
      for (int unroll : {1, 2, 4}) add(threads, width, unroll);
    add(256, 1, 1);
  } else {
    for (int threads : {1024, 256}) add(threads, 1, 1);
  }
}

void ChooseRowPanel(const FusionShape& shape, std::vector<FusionImplementation>* out, std::string* reason) {
  const Graph& graph = shape.graph;
  const DeviceDescription& device = shape.model.device();
  const RowPanelRoles& panel = shape.skeleton.row_panel;
  const int64_t rows = shape.Size(panel.rows), columns = std::max<int64_t>(1, shape.Size(panel.columns));

  // What lanes must keep: matrix values used in a later phase, operands over columns, column accumulators.
  std::map<ValueId, int> first_phase;
  std::map<ValueId, bool> held;
  std::map<ValueId, bool> column_operands;
  int matrices = 0, row_reductions = 0;
  int64_t accumulator_bytes = 0;
  for (size_t i = 0; i < shape.members.size(); ++i) {
    const Node& node = shape.node(shape.members[i]);
    if (panel.phases[i] == kFinishPhase) continue;
    if (node.is_reduction() && node.dimensions.size() == 2 && panel.roles[i][node.result_map[0]] == 1)
      accumulator_bytes += AccumulatorBytes(shape, node);
    else if (node.is_reduction() && node.dimensions.size() == 2)
      ++row_reductions;
    if (!node.is_reduction() && node.result_map.size() == 2) first_phase.emplace(node.result, panel.phases[i]);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId value = node.operands[k];
      const auto& map = node.operand_maps[k];
      const bool input = std::binary_search(shape.loads.begin(), shape.loads.end(), value);
      if (map.size() == 1 && panel.roles[i][map[0]] == 1 && input) column_operands[value] = true;
      if (map.size() != 2) continue;
      auto [it, inserted] = first_phase.emplace(value, panel.phases[i]);
      if (panel.phases[i] > it->second) held[value] = true;
    }
  }
  int held_inputs = 0, held_computed = 0;
  for (ValueId value : shape.loads)
    if (graph.value(value).type.extents.size() == 2) ++matrices;
  for (const auto& [value, yes] : held)
    (std::binary_search(shape.loads.begin(), shape.loads.end(), value) ? held_inputs : held_computed) += 1;
  const int words = shape.entry_bytes / 4;
  const int accumulator_words = static_cast<int>(accumulator_bytes / 4);

  auto add = [&](int threads, int per_row, int width, int chunks, int stages, bool hold_columns) {
    FusionImplementation implementation = shape.Base();
    SkeletonParameters& parameters = implementation.parameters;
    parameters.threads = threads;
    parameters.threads_per_row = per_row;
    parameters.vector_width = width;
    parameters.chunks = chunks;
    parameters.stages = stages;
    parameters.hold_columns = hold_columns;
    parameters.load_path = stages > 0 ? LoadPath::kStaged : LoadPath::kDirect;
    const int groups = threads / per_row;
    KernelTraits traits = shape.Traits();
    traits.threads = threads;
    traits.compute_efficiency = kComputeEfficiency;
    const int temporaries =
        width * words * static_cast<int>(shape.members.size() + shape.loads.size());
    traits.registers = 30 + temporaries;
    if (chunks > 0) {
      const int per_lane = (stages > 0 ? held_computed : held_inputs + held_computed) * words + accumulator_words +
                           (hold_columns ? static_cast<int>(column_operands.size()) * words : 0);
      traits.registers += chunks * width * per_lane;
      if (stages == 0) traits.registers += std::min(chunks, 4) * width * matrices * words;  // loads under way
    }
    if (chunks > 0)
      traits.shared_bytes = int64_t{stages} * chunks * threads * width * matrices * shape.entry_bytes;
    else
      traits.shared_bytes = accumulator_bytes * groups * columns;
    if (traits.shared_bytes > device.shared_bytes_per_block()) {
      *reason = absl::StrCat("rows of ", columns, " columns need ", traits.shared_bytes,
                             " bytes of shared memory; the device has ", device.shared_bytes_per_block());
      return;
    }
    if (shape.cuda() && traits.registers > std::min(240, 65536 / threads)) {
      *reason = absl::StrCat("rows of ", columns, " columns need about ", traits.registers,
                             " registers per thread; the device permits ", std::min(255, 65536 / threads));
      return;
    }
    const int resident = shape.cuda() ? ResidentBlocks(device, threads, traits.registers, traits.shared_bytes) : 1;
    if (resident == 0) return;
    parameters.blocks_per_multiprocessor = resident;
    const double blocks = std::min(double(rows) / groups + 1, double(device.multiprocessors()) * resident);
    traits.blocks = static_cast<int64_t>(std::max(1.0, blocks));
    const double row_bytes = double(columns) * matrices * shape.entry_bytes;
    if (chunks == 0)
      traits.bytes_in_flight_per_block = 0.5 * std::min(row_bytes * groups, double(threads) * width * shape.entry_bytes * matrices);
    else if (stages > 0)
      traits.bytes_in_flight_per_block = row_bytes * groups * (stages - 1);
    else  // as many loads as registers hold
      traits.bytes_in_flight_per_block =
          0.5 * std::min(row_bytes * groups, double(threads) * std::min(chunks, 4) * width * shape.entry_bytes * matrices);
    // Lanes without columns idle; unaligned rows are read entry by entry; a row that is not held is read again.
    const double covered = chunks > 0 ? double(columns) / (double(chunks) * per_row * width) : 1;
    traits.access_efficiency = shape.cuda() ? 0.6 + 0.4 * covered : 1;
    if (shape.cuda() && width > 1 && columns % width != 0) traits.access_efficiency *= 0.7;
    // A few warps cannot issue the loads and multiply-adds of long rows fast enough, whatever is in flight.
    if (shape.cuda()) traits.access_efficiency *= std::sqrt(std::min(1.0, double(threads) * resident / 384));
    // Operands over the columns that are not held come from the L1 cache for every row, beside the matrix.
    if (shape.cuda() && !hold_columns && !column_operands.empty()) traits.access_efficiency *= 0.75;
    if (chunks == 0 && held_inputs > 0) traits.access_efficiency *= shape.cuda() ? 0.75 : 0.9;
    // A row reduction stops the block, unless another block of the multiprocessor goes on: fitted by hand to one
    // run of ATAX, 16384 x 16384, on an H200: 256, 512 and 1024 threads a row took 298, 284 and 361 us (floor 252 us).
    if (shape.cuda() && per_row > 32)
      traits.barrier_seconds = row_reductions * double(rows) / blocks * (0.05e-6 + 0.02e-6 * threads / 32) / resident;
    // Partial results to and from the workspace.
    traits.bytes_written += blocks * groups * columns * accumulator_bytes;
    traits.bytes_read += blocks * groups * columns * accumulator_bytes;
    implementation.estimate = shape.model.Estimate(traits);
    out->push_back(std::move(implementation));
  };

  if (!shape.cuda()) {
    for (int threads : {1024, 256}) add(threads, threads, 1, 0, 0, false);
    return;
  }
  const int vector = 16 / shape.entry_bytes;
  std::vector<int> widths = {1};
  if (columns % vector == 0) widths.insert(widths.begin(), vector);
  const bool has_columns = !column_operands.empty();
  for (int width : widths) {
    for (int threads : {256, 512, 1024, 128}) {
      for (int per_row : {threads, 32}) {
        const int64_t chunks = (columns + int64_t{per_row} * width - 1) / (int64_t{per_row} * width);
        if (chunks > 32) continue;
        if (per_row > 128 && int64_t{per_row} * width >= 2 * columns) continue;  // mostly idle lanes
        for (int stages : {0, 2, 3, 4}) {
          if (stages > 0 && matrices == 0) continue;
          add(threads, per_row, width, static_cast<int>(chunks), stages, has_columns);
          if (has_columns) add(threads, per_row, width, static_cast<int>(chunks), stages, false);
        }
      }
      add(threads, threads, width, 0, 0, false);
    }
  }
}

}  // namespace fusion
