// Kernels over rows: whether they fit the device, and how long they take.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/plan/grid.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/shared/host_costs.h"

namespace fusion {
namespace {

int AccumulatorBytes(const FusionShape& shape, const Node& node) {
  return node.overload->monoid == v1::ARG_MAX ? 16
                                              : DataTypeBytes(shape.graph.value(node.result).type.data_type);
}

// A sum in f32 has a long sum beside its accumulator (fu_long).
int LongSumBytes(const FusionShape& shape, const Node& node) {
  return node.overload->monoid == v1::SUM && shape.graph.value(node.result).type.data_type == v1::F32 ? 8 : 0;
}

// Of static shared memory, that a kernel may have.
constexpr int64_t kMostStaticSharedBytes = 48 << 10;

// What a second kernel that adds up partial results costs beyond its launch and its bytes: of one part for
// each multiprocessor, or row if there are fewer, bytes a second. With atomic sums ATAX, BiCGK and GEMVER
// take 2 to 7 us less on four H100s, where 0.4 to 0.8 were predicted (docs/decisions/0007).
constexpr double kPartsBytesPerSecond = 1.2e12;

// Of rows that blocks reduce in part: bytes of a part, at most, and what the second kernel takes beyond its
// launch and its bytes, to wait for the loads of parts and to reduce them in a block. Assumed.
constexpr double kRowPartBytes = 16, kRowFinishSeconds = 2e-6;

// A grid that walks over many rows loses against one row a block, where the device starts the loads of new
// blocks while old ones still store: as VADD of 2^26 entries by hand, 0.94 to 0.96 of the rate on an H200
// (tests/bench/device, results/h200-device.txt).
constexpr double kPersistentEfficiency = 0.94;

// On the host, of all lanes (KernelTraits::instructions); rows are read and computed again in each phase that
// needs them.
double HostRowOperations(const FusionShape& shape, const RowPanelNeeds& needs, int lanes) {
  const LoopRoles& panel = shape.roles;
  const int phases = std::max(1, panel.phase_count);
  const double entries = double(shape.Size(panel.rows)) * double(shape.Size(panel.columns));
  double operations =
      shape.instructions + entries * shape.profile().lane_access().value() *
                               (needs.matrices * phases + needs.stored_matrices + needs.column_operands +
                                (needs.accumulator_bytes > 0 ? 2 : 0));
  // In which phases each computed matrix is needed; the last nodes first, as these need others.
  std::map<ValueId, std::set<int>> needed;
  for (size_t i = shape.members.size(); i-- > 0;) {
    const Node& node = shape.node(shape.members[i]);
    if (node.dimensions.size() != 2 || panel.phases[i] == kFinishPhase) continue;
    const bool matrix = !node.is_reduction() && node.result_map.size() == 2;
    std::set<int> in = matrix ? needed[node.result] : std::set<int>{panel.phases[i]};
    if (matrix && std::binary_search(shape.stores.begin(), shape.stores.end(), node.result))
      in.insert(panel.phases[i]);
    for (ValueId operand : node.operands) needed[operand].insert(in.begin(), in.end());
    if (matrix && in.size() > 1) operations += double(in.size() - 1) * shape.InstructionsOf(node);
  }
  return operations * HostFactorOfLanes(shape.profile(), lanes);
}

}  // namespace

RowPanelNeeds NeedsOfRowPanel(const FusionShape& shape) {
  const LoopRoles& panel = shape.roles;
  RowPanelNeeds needs;
  std::map<ValueId, int> first_phase, last_phase;
  std::set<ValueId> held, column_operands;
  for (size_t i = 0; i < shape.members.size(); ++i) {
    const Node& node = shape.node(shape.members[i]);
    if (panel.phases[i] == kFinishPhase) continue;
    const bool over_columns =
        std::find(panel.roles[i].begin(), panel.roles[i].end(), 1) != panel.roles[i].end();
    const bool to_columns =
        !node.is_reduction() || (node.result_map.size() == 1 && panel.roles[i][node.result_map[0]] == 1);
    needs.columns_alone &= node.dimensions.empty() || (over_columns && to_columns);
    const bool over_matrix = node.dimensions.size() == 2;
    needs.row_parts &= !over_matrix || panel.phases[i] == 0;
    needs.row_parts &= !node.is_reduction() || (over_matrix && !node.result_map.empty());
    if (node.is_reduction() && node.dimensions.size() == 2 && !node.result_map.empty()) {
      if (shape.IsGridReduction(i)) {
        needs.accumulator_bytes += AccumulatorBytes(shape, node);
        needs.long_sum_bytes += LongSumBytes(shape, node);
      } else
        ++needs.row_reductions;
    }
    if (!node.is_reduction() && node.result_map.size() == 2)
      first_phase.emplace(node.result, panel.phases[i]);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId value = node.operands[k];
      const auto& map = node.operand_maps[k];
      const bool input = std::binary_search(shape.loads.begin(), shape.loads.end(), value);
      // What a column reduction is finished with is read once, behind the rows.
      const auto& terms = node.overload->term_operands;
      if (node.is_reduction() && map.size() == 1 && panel.roles[i][map[0]] == 1 &&
          std::find(terms.begin(), terms.end(), static_cast<int>(k)) == terms.end())
        continue;
      if (map.size() == 1 && panel.roles[i][map[0]] == 1 && input) column_operands.insert(value);
      if (map.size() != 2) continue;
      auto [it, inserted] = first_phase.emplace(value, panel.phases[i]);
      if (panel.phases[i] > it->second) held.insert(value);
      int& last = last_phase[value];
      last = std::max(last, panel.phases[i]);
    }
  }
  for (int phase = 0; phase < panel.phase_count; ++phase) {
    int live = 0, computed = 0;
    for (ValueId value : held) {
      if (first_phase[value] > phase || last_phase[value] <= phase) continue;
      ++live;
      if (!std::binary_search(shape.loads.begin(), shape.loads.end(), value)) ++computed;
    }
    needs.live_rows = std::max(needs.live_rows, live);
    needs.live_computed_rows = std::max(needs.live_computed_rows, computed);
  }
  for (ValueId value : shape.loads)
    if (shape.graph.value(value).type.extents.size() == 2) ++needs.matrices;
  for (ValueId value : shape.stores)
    if (shape.graph.value(value).type.extents.size() == 2) ++needs.stored_matrices;
  for (ValueId value : held)
    needs.held_inputs += std::binary_search(shape.loads.begin(), shape.loads.end(), value);
  needs.column_operands = static_cast<int>(column_operands.size());
  return needs;
}

int64_t RowSlotBytes(const FusionShape& shape, const RowPanelParameters& parameters) {
  return int64_t{parameters.chunks} * parameters.threads * parameters.vector_width * shape.entry_bytes +
         (parameters.load_path == LoadPath::kBulk ? int64_t{16} * parameters.threads / 32 : 0);
}

std::optional<FusionImplementation> MakeRowPanel(const FusionShape& shape, const RowPanelNeeds& needs,
                                                 const RowPanelParameters& given, int64_t kept_bytes,
                                                 KernelTraits* out, NearestMiss* miss) {
  const DeviceDescription& device = shape.model.device();
  const LoopRoles& panel = shape.roles;
  const int64_t rows = shape.Size(panel.rows), columns = std::max<int64_t>(1, shape.Size(panel.columns));
  RowPanelParameters parameters = given;
  const int threads = parameters.threads, per_row = parameters.threads_per_row,
            width = parameters.vector_width, chunks = parameters.chunks, stages = parameters.stages,
            cluster = parameters.cluster_blocks, groups = cluster > 1 ? 1 : threads / per_row,
            together = parameters.rows_per_step;
  const bool one_shot = parameters.blocks_per_multiprocessor == 0;
  const bool in_batches = stages == 0 && together > 1;
  const bool cold = shape.simt() && !shape.model.back_to_back(), few_rows = HasFewRows(shape);
  const int words = shape.entry_bytes / 4;
  KernelTraits traits = shape.Traits();
  traits.threads = threads;
  traits.compute_efficiency = kLoopComputeEfficiency;
  const int most_registers = MostRegisters(device, std::max(1, threads * parameters.resident_blocks));
  // Few of the values of a chunk live at once.
  traits.registers =
      28 + width * words * std::min(4, static_cast<int>(shape.members.size() + shape.loads.size()));
  if (chunks > 0) {
    const int rows = stages > 0   ? needs.live_computed_rows
                     : in_batches ? std::max(needs.live_rows, needs.matrices)
                                  : needs.live_rows;
    const int per_lane = rows * words * together + static_cast<int>(needs.accumulator_bytes / 4) +
                         (parameters.hold_columns ? needs.column_operands * words : 0);
    traits.registers += chunks * width * per_lane + (in_batches     ? together
                                                     : together > 1 ? together * width * words
                                                                    : 0);
    if (stages == 0 && !in_batches) {
      // Loads under way: into the registers of rows that stay, and as many others as there is room for.
      const int one = width * (needs.matrices - needs.held_inputs) * words;
      const int room = shape.simt() ? most_registers - traits.registers : 4 * one;
      traits.registers += one == 0 ? 0 : std::clamp(room / one, 0, std::min(chunks, 4)) * one;
    }
    traits.shared_bytes = int64_t{stages} * together * needs.matrices * RowSlotBytes(shape, parameters);
    if (parameters.load_path == LoadPath::kBulk)
      traits.shared_bytes += int64_t{8} * stages * threads / 32 + 16;
  } else {
    traits.shared_bytes = (needs.accumulator_bytes + needs.long_sum_bytes) * groups * columns;
  }
  traits.shared_bytes += kept_bytes;
  // Beside it, what reductions exchange (fu_scratch).
  const int64_t scratch_bytes = ReductionScratchBytes(together * cluster);
  if (shape.simt() && scratch_bytes > kMostStaticSharedBytes) {
    miss->Note(
        scratch_bytes, kMostStaticSharedBytes,
        absl::StrCat("reductions of ", together, " rows by ", cluster, " blocks exchange ", scratch_bytes,
                     " bytes; a kernel can have ", kMostStaticSharedBytes, " bytes of static shared memory"));
    return std::nullopt;
  }
  if (shape.simt()) traits.shared_bytes += scratch_bytes;
  if (traits.shared_bytes > device.shared_bytes_per_block()) {
    miss->Note(traits.shared_bytes, device.shared_bytes_per_block(),
               absl::StrCat("rows of ", columns, " columns need ", traits.shared_bytes,
                            " bytes of shared memory; the device has ", device.shared_bytes_per_block()));
    return std::nullopt;
  }
  // Loads of ragged rows stand in one run, so that what is over spills: layer norm of 4093 x 5001 with 512
  // threads, 42 estimated and 32 permitted, 185 us instead of 74 on an H100.
  const int slack =
      HasRaggedRows(parameters, columns) ? std::min(kRegisterSlack, most_registers / 4) : kRegisterSlack;
  if (shape.simt() && traits.registers > most_registers && traits.registers <= most_registers + slack)
    traits.registers = most_registers;
  if (shape.simt() && traits.registers > most_registers) {
    miss->Note(traits.registers, most_registers,
               absl::StrCat("rows of ", columns, " columns need about ", traits.registers,
                            " registers per thread; the device permits ", most_registers));
    return std::nullopt;
  }
  const int resident =
      shape.simt() ? ResidentBlocks(device, threads, traits.registers, traits.shared_bytes) : 1;
  if (resident < parameters.resident_blocks) return std::nullopt;
  // The same with the bound that it can keep is a choice of its own.
  if (shape.simt() && one_shot && needs.held_inputs > 0 &&
      parameters.resident_blocks < std::min(resident, kMostResident))
    return std::nullopt;
  if (!one_shot)
    parameters.blocks_per_multiprocessor = std::min(parameters.blocks_per_multiprocessor, resident);
  const double lane_columns = double(chunks) * per_row * width;
  const double column_parts = parameters.tile_rows > 0 ? std::ceil(columns / lane_columns) : 1;
  const double tiles = parameters.tile_rows > 0
                           ? std::ceil(double(rows) / parameters.tile_rows) * column_parts
                           : (double(rows) / groups + 1) * cluster;
  const double blocks = one_shot
                            ? tiles
                            : std::min(tiles, double(GridMultiprocessors(device.multiprocessors(), cluster)) *
                                                  parameters.blocks_per_multiprocessor);
  // Of the rows that blocks reduce in part.
  const double row_parts = parameters.tile_rows > 0 ? rows * column_parts * needs.row_reductions : 0;
  const double parts = blocks / cluster * groups / column_parts;  // of the grid, each with results of its own
  traits.blocks = static_cast<int64_t>(std::max(1.0, blocks));
  const double row_bytes =
      double(columns) * needs.matrices * shape.entry_bytes / (cluster * column_parts);  // of a block
  // Of what each thread loads at once, all: SGEMV and BiCGK of 8192 square on an H200 by plain loads are as
  // fast as by others, where half of it would not do.
  if (stages > 0)
    traits.bytes_in_flight_per_block = row_bytes * groups * (stages - 1) * together;
  else if (in_batches)
    traits.bytes_in_flight_per_block = row_bytes * groups * together;
  else if (chunks > 0) {  // as many loads as registers hold
    const int under_way = needs.held_inputs == needs.matrices ? chunks : std::min(chunks, 4);
    traits.bytes_in_flight_per_block = std::min(
        row_bytes * groups, double(threads) * under_way * width * shape.entry_bytes * needs.matrices);
  }
  // Lanes without columns idle; unaligned rows are read entry by entry; a row that is not held is read again.
  const double covered = chunks > 0 && (!parameters.column_tiles || parameters.tile_rows > 0)
                             ? columns / (lane_columns * column_parts)
                             : 1;
  traits.access_efficiency = shape.simt() ? 0.6 + 0.4 * covered : 1;
  if (shape.simt() && width > 1 && columns % width != 0) traits.access_efficiency *= 0.7;
  if (shape.simt())
    traits.latency_seconds = RowLatencySeconds(shape, needs, parameters, resident, rows, columns);
  // A few warps cannot issue the loads and multiply-adds of long rows fast enough, whatever is in flight; 256
  // threads can (SGEMV of 8192 square on an H200, four rows of each at once in registers, as fast as any).
  if (shape.simt()) traits.access_efficiency *= std::sqrt(std::min(1.0, double(threads) * resident / 256));
  // Rows that are read again come from the L1 cache if those of all blocks fit it, else from L2: assumed, not
  // measured.
  const double l1_bytes = shape.profile().first_cache_bytes().value();
  if (chunks == 0 && needs.held_inputs > 0)
    traits.access_efficiency *= !shape.simt() || row_bytes * groups * resident <= l1_bytes ? 0.9 : 0.6;
  // Operands over the columns that are not held come from the caches for every row, beside the matrix.
  // Lanes that walk over many rows find theirs in the L1 cache, mostly.
  // SGEMV of 8192 square on an H200 loses 1 % so.
  const bool operands_in_l1 = double(columns) * needs.column_operands * shape.entry_bytes <= l1_bytes;
  if (shape.simt() && !one_shot && !parameters.hold_columns && needs.column_operands > 0)
    traits.access_efficiency *= operands_in_l1 ? 0.97 : 0.75;
  // An only block of a multiprocessor waits where it has nothing under way: with bulk copies of several rows,
  // whose slots are all read before they are filled again (ATAX and BiCGK of 8192 square on three H100s, 0.84
  // to 0.93 of the time was predicted), and with a batch of rows in registers that is stored after their
  // reductions (softmax, 0.66 to 0.70). Bulk copies by any blocks are slower than staged ones of the same
  // shape: by 2 to 9 % on four H100s, and where rows are stored after their reductions by half (softmax).
  const bool only_block = parameters.blocks_per_multiprocessor == 1 && together > 1,
             stores_after_reductions = needs.stored_matrices > 0 && panel.phase_count > 1;
  if (cold && width > 1) {
    if (parameters.load_path == LoadPath::kBulk && stages > 0)
      traits.access_efficiency *= (stores_after_reductions ? 0.65 : 0.95) * (only_block ? 0.95 : 1);
    if (only_block && in_batches && stores_after_reductions) traits.access_efficiency *= 0.7;
  }
  // Blocks that store while others load do so best where each ends with its tile.
  if (shape.simt() && !one_shot && needs.stored_matrices > 0)
    traits.access_efficiency *= kPersistentEfficiency;
  // Blocks that have a tile each and store a matrix begin and end together where there are few turns of them:
  // GEMVER of 8192 square on four H100s, 1.05 to 1.13 of the time that was predicted, rows 0.98 to 1.02.
  if (cold && one_shot && parameters.tile_rows > 0 && needs.stored_matrices > 0)
    traits.access_efficiency *=
        1 - 0.12 / std::max(1.0, blocks / (device.multiprocessors() * std::max(1.0, double(resident))));
  // Those of blocks that end with their row come from there too: layer norm over rows of 16384 at 0.98 of the
  // rate on an H200, SGEMV of 8192 square at 0.99 of that of the best.
  if (shape.simt() && one_shot && !operands_in_l1 && !parameters.hold_columns)
    traits.cache_bytes = double(rows) * columns * needs.column_operands * shape.entry_bytes;
  // A row reduction stops the block, unless another block of the multiprocessor goes on, while its loads go
  // on: of rows of 16384 and 8192 in f32 on an H200 the time over the floor is about a third of what the
  // barriers take by themselves. That of a cluster of two is no dearer: ATAX in f64, 512 threads a block, 512
  // us (floor 504 us).
  constexpr double kNotOverlapped = 0.3;
  if (shape.simt() && per_row > 32)
    traits.barrier_seconds = needs.row_reductions * double(rows) * column_parts * cluster / together /
                             std::min(std::max(1.0, blocks), double(device.multiprocessors()) * resident) *
                             kNotOverlapped * (0.05e-6 + 0.02e-6 * threads / 32) / resident;
  // Loads and stores with their addresses, the way through shared memory, operands over the columns that are
  // not held, guards of lanes that may have no column; rows that are read again in each phase.
  const double entries = double(rows) * columns;
  double per_entry = (2.0 * needs.matrices * (chunks == 0 ? std::max(1, panel.phase_count) : 1) +
                      2.0 * needs.stored_matrices + (stages > 0 ? 2.0 * needs.matrices : 0) +
                      (parameters.hold_columns ? 0 : 2.0 * needs.column_operands)) /
                     width;
  if (covered < 1) per_entry += 1.0 / width;
  traits.instructions = shape.instructions + entries * per_entry / std::max(covered, 0.1);
  if (!shape.simt()) {
    traits.instructions = HostRowOperations(shape, needs, per_row);
    traits.issue_overlap = shape.profile().lane_overlap().value();
  }
  // Partial results to and from the workspace.
  // A tile with all rows has none.
  const bool all_rows = parameters.tile_rows >= rows;
  const double sums_bytes = all_rows ? 0 : double(columns) * needs.accumulator_bytes;  // of a block
  traits.bytes_written += parts * sums_bytes;
  if (parameters.atomic) {
    traits.barrier_seconds += AtomicSeconds(shape.profile(), parts, sums_bytes, shape.entry_bytes);
  } else {
    traits.bytes_read += parts * sums_bytes;
    const double added =
        std::min<double>(parameters.tile_rows > 0 && few_rows ? parts : rows, device.multiprocessors());
    if (cold) traits.barrier_seconds += sums_bytes * added / kPartsBytesPerSecond;
  }
  if (row_parts > 0) {
    const double bytes = row_parts * kRowPartBytes;
    traits.bytes_read += bytes;
    traits.bytes_written += bytes;
    traits.launches = 2;
    if (cold) traits.barrier_seconds += kRowFinishSeconds;
  }
  ReadFromL2(shape, {.percent = parameters.l2_percent}, &traits);
  parameters.roles = panel;
  FusionImplementation implementation = shape.Base();
  implementation.parameters = std::move(parameters);
  implementation.estimate = shape.model.Estimate(traits);
  *out = traits;
  return implementation;
}

}  // namespace fusion
