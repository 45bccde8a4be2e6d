// Kernels over rows: whether they fit the device, and how long they take.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/plan/grid.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/row_panel/row_panel_nodes.h"
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

// A kernel may have so much static shared memory.
constexpr int64_t kMostStaticSharedBytes = 48 << 10;

// A second kernel that adds up partial results costs this beyond its launch and its bytes: of one part for
// each multiprocessor, or row if there are fewer, bytes a second. With atomic sums ATAX, BiCGK and GEMVER
// take 2 to 7 us less on four H100s, where 0.4 to 0.8 were predicted (docs/decisions/0007).
constexpr double kPartsBytesPerSecond = 1.2e12;

// Where blocks reduce rows in part, these are the bytes of a part, at most, and the seconds that the second
// kernel takes beyond its launch and its bytes, to wait for the loads of parts and to reduce them in a block.
// Both are assumed.
constexpr double kRowPartBytes = 16, kRowFinishSeconds = 2e-6;

// A grid that walks over many rows loses against one row a block, where the device starts the loads of new
// blocks while old ones still store: as VADD of 2^26 entries by hand, 0.94 to 0.96 of the rate on an H200
// (tests/bench/device, results/h200-device.txt).
constexpr double kPersistentEfficiency = 0.94;

std::vector<ValueId> KeptResults(const FusionShape& shape) {
  std::vector<NodeId> order;
  for (int member : shape.members) order.push_back(NodeId{member});
  return DearResults(shape.graph, order, shape.roles);
}

// On the host, of all lanes (KernelTraits::instructions); rows are read and, unless results are kept,
// computed again in each phase that needs them.
double HostRowOperations(const FusionShape& shape, const RowPanelNeeds& needs, bool keeps_results,
                         int lanes) {
  const LoopRoles& panel = shape.roles;
  const int phases = std::max(1, panel.phase_count);
  const double entries = double(shape.Size(panel.rows)) * double(shape.Size(panel.columns));
  double operations =
      shape.instructions + entries * shape.profile().lane_access().value() *
                               (needs.matrices * phases + needs.stored_matrices + needs.column_operands +
                                (needs.accumulator_bytes > 0 ? 2 : 0));
  const std::vector<ValueId> kept = keeps_results ? KeptResults(shape) : std::vector<ValueId>();
  // In which phases each computed matrix is needed; the last nodes first, as these need others.
  std::map<ValueId, std::set<int>> needed;
  for (size_t i = shape.members.size(); i-- > 0;) {
    const Node& node = shape.node(shape.members[i]);
    if (node.dimensions.size() != 2 || panel.phases[i] == kFinishPhase) continue;
    const bool matrix = !node.is_reduction() && node.result_map.size() == 2;
    std::set<int> in = matrix ? needed[node.result] : std::set<int>{panel.phases[i]};
    if (matrix && Contains(kept, node.result)) {
      operations += entries * shape.profile().lane_access().value() * double(in.size());
      in = {panel.phases[i]};
    }
    if (matrix && std::binary_search(shape.stores.begin(), shape.stores.end(), node.result))
      in.insert(panel.phases[i]);
    for (ValueId operand : node.operands) needed[operand].insert(in.begin(), in.end());
    if (matrix && in.size() > 1) operations += double(in.size() - 1) * shape.InstructionsOf(node);
  }
  return operations * HostFactorOfLanes(shape.profile(), lanes);
}

}  // namespace

int64_t KeptResultBytes(const FusionShape& shape) {
  int64_t bytes = 0;
  for (ValueId value : KeptResults(shape)) bytes += DataTypeBytes(shape.graph.value(value).type.data_type);
  return bytes;
}

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
      // Operands that finish a column reduction are read once, behind the rows.
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

namespace {

// A kernel whose traits are put together, part by part.
class RowPanelKernel {
 public:
  RowPanelKernel(const FusionShape& shape, const RowPanelNeeds& needs, const RowPanelParameters& given,
                 int64_t kept_bytes)
      : shape_(shape),
        needs_(needs),
        device_(shape.model.device()),
        panel_(shape.roles),
        rows_(shape.Size(shape.roles.rows)),
        columns_(std::max<int64_t>(1, shape.Size(shape.roles.columns))),
        kept_bytes_(kept_bytes),
        parameters_(given) {
    traits_.threads = threads_;
    traits_.compute_efficiency = kLoopComputeEfficiency;
  }

  // Counts registers and shared memory. False when the kernel does not fit, of which *miss is told.
  bool Fits(NearestMiss* miss) {
    CountRegisters();
    return FitsSharedMemory(miss) && FitsRegisters(miss);
  }

  FusionImplementation Made(KernelTraits* out) {
    ChooseGrid();
    CountLoads();
    EstimateAccesses();
    EstimateBlocks();
    EstimateBarriers();
    CountInstructions();
    AddPartialResults();
    ReadFromL2(shape_, {.percent = parameters_.l2_percent}, &traits_);
    parameters_.roles = panel_;
    FusionImplementation implementation = shape_.Base();
    implementation.parameters = std::move(parameters_);
    implementation.estimate = shape_.model.Estimate(traits_);
    *out = traits_;
    return implementation;
  }

 private:
  void CountRegisters() {
    // Few of the values of a chunk live at once.
    traits_.registers =
        28 + width_ * words_ * std::min(4, static_cast<int>(shape_.members.size() + shape_.loads.size()));
    if (chunks_ > 0) {
      const int held = stages_ > 0   ? needs_.live_computed_rows
                       : in_batches_ ? std::max(needs_.live_rows, needs_.matrices)
                                     : needs_.live_rows;
      const int per_lane = held * words_ * together_ + static_cast<int>(needs_.accumulator_bytes / 4) +
                           (parameters_.hold_columns ? needs_.column_operands * words_ : 0);
      traits_.registers += chunks_ * width_ * per_lane + (in_batches_     ? together_
                                                          : together_ > 1 ? together_ * width_ * words_
                                                                          : 0);
      if (stages_ == 0 && !in_batches_) {
        // Loads under way: into the registers of rows that stay, and as many others as there is room for.
        const int one = width_ * (needs_.matrices - needs_.held_inputs) * words_;
        const int room = shape_.simt() ? most_registers_ - traits_.registers : 4 * one;
        traits_.registers += one == 0 ? 0 : std::clamp(room / one, 0, std::min(chunks_, 4)) * one;
      }
      traits_.shared_bytes =
          int64_t{stages_} * together_ * needs_.matrices * RowSlotBytes(shape_, parameters_);
      if (parameters_.load_path == LoadPath::kBulk)
        traits_.shared_bytes += int64_t{8} * stages_ * threads_ / 32 + 16;
    } else {
      traits_.shared_bytes = (needs_.accumulator_bytes + needs_.long_sum_bytes +
                              (parameters_.keeps_results ? KeptResultBytes(shape_) : 0)) *
                             groups_ * columns_;
    }
  }

  bool FitsSharedMemory(NearestMiss* miss) {
    traits_.shared_bytes += kept_bytes_;
    // Beside it, what reductions exchange (fu_scratch).
    const int64_t scratch_bytes = ReductionScratchBytes(together_ * cluster_);
    if (shape_.simt() && scratch_bytes > kMostStaticSharedBytes) {
      miss->Note(scratch_bytes, kMostStaticSharedBytes,
                 absl::StrCat("reductions of ", together_, " rows by ", cluster_, " blocks exchange ",
                              scratch_bytes, " bytes; a kernel can have ", kMostStaticSharedBytes,
                              " bytes of static shared memory"));
      return false;
    }
    if (shape_.simt()) traits_.shared_bytes += scratch_bytes;
    if (traits_.shared_bytes > device_.shared_bytes_per_block()) {
      miss->Note(traits_.shared_bytes, device_.shared_bytes_per_block(),
                 absl::StrCat("rows of ", columns_, " columns need ", traits_.shared_bytes,
                              " bytes of shared memory; the device has ", device_.shared_bytes_per_block()));
      return false;
    }
    return true;
  }

  bool FitsRegisters(NearestMiss* miss) {
    // Loads of ragged rows stand in one run, so that what is over spills: layer norm of 4093 x 5001 with 512
    // threads, 42 estimated and 32 permitted, 185 us instead of 74 on an H100.
    const int slack =
        HasRaggedRows(parameters_, columns_) ? std::min(kRegisterSlack, most_registers_ / 4) : kRegisterSlack;
    if (shape_.simt() && traits_.registers > most_registers_ && traits_.registers <= most_registers_ + slack)
      traits_.registers = most_registers_;
    if (shape_.simt() && traits_.registers > most_registers_) {
      miss->Note(traits_.registers, most_registers_,
                 absl::StrCat("rows of ", columns_, " columns need about ", traits_.registers,
                              " registers per thread; the device permits ", most_registers_));
      return false;
    }
    resident_ =
        shape_.simt() ? ResidentBlocks(device_, threads_, traits_.registers, traits_.shared_bytes) : 1;
    if (resident_ < parameters_.resident_blocks) return false;
    // This kernel with the bound that it can keep is a choice of its own.
    if (shape_.simt() && one_shot_ && needs_.held_inputs > 0 &&
        parameters_.resident_blocks < std::min(resident_, kMostResident))
      return false;
    return true;
  }

  void ChooseGrid() {
    if (!one_shot_)
      parameters_.blocks_per_multiprocessor = std::min(parameters_.blocks_per_multiprocessor, resident_);
    lane_columns_ = double(chunks_) * per_row_ * width_;
    column_parts_ = parameters_.tile_rows > 0 ? std::ceil(columns_ / lane_columns_) : 1;
    const double tiles = parameters_.tile_rows > 0
                             ? std::ceil(double(rows_) / parameters_.tile_rows) * column_parts_
                             : (double(rows_) / groups_ + 1) * cluster_;
    blocks_ = one_shot_ ? tiles
                        : std::min(tiles, double(GridMultiprocessors(device_.multiprocessors(), cluster_)) *
                                              parameters_.blocks_per_multiprocessor);
    parts_ = blocks_ / cluster_ * groups_ / column_parts_;
  }

  void CountLoads() {
    traits_.blocks = static_cast<int64_t>(std::max(1.0, blocks_));
    row_bytes_ = double(columns_) * needs_.matrices * shape_.entry_bytes / (cluster_ * column_parts_);
    // All that each thread loads at once counts: SGEMV and BiCGK of 8192 square on an H200 by plain loads are
    // as fast as by others, where half of it would not do.
    if (stages_ > 0)
      traits_.bytes_in_flight_per_block = row_bytes_ * groups_ * (stages_ - 1) * together_;
    else if (in_batches_)
      traits_.bytes_in_flight_per_block = row_bytes_ * groups_ * together_;
    else if (chunks_ > 0) {  // as many loads as registers hold
      const int under_way = needs_.held_inputs == needs_.matrices ? chunks_ : std::min(chunks_, 4);
      traits_.bytes_in_flight_per_block = std::min(
          row_bytes_ * groups_, double(threads_) * under_way * width_ * shape_.entry_bytes * needs_.matrices);
    }
  }

  // Returns whether the operands over the columns fit the L1 cache.
  bool OperandsInL1() const {
    return double(columns_) * needs_.column_operands * shape_.entry_bytes <=
           shape_.profile().first_cache_bytes().value();
  }
  // Estimates the share of the bandwidth that accesses to rows and operands leave.
  void EstimateAccesses() {
    // Lanes without columns idle; unaligned rows are read entry by entry; a row that is not held is read
    // again.
    covered_ = chunks_ > 0 && (!parameters_.column_tiles || parameters_.tile_rows > 0)
                   ? columns_ / (lane_columns_ * column_parts_)
                   : 1;
    traits_.access_efficiency = shape_.simt() ? 0.6 + 0.4 * covered_ : 1;
    if (shape_.simt() && width_ > 1 && columns_ % width_ != 0) traits_.access_efficiency *= 0.7;
    if (shape_.simt())
      traits_.latency_seconds = RowLatencySeconds(shape_, needs_, parameters_, resident_, rows_, columns_);
    // A few warps cannot issue the loads and multiply-adds of long rows fast enough, whatever is in flight;
    // 256 threads can (SGEMV of 8192 square on an H200, four rows of each at once in registers, as fast as
    // any).
    if (shape_.simt())
      traits_.access_efficiency *= std::sqrt(std::min(1.0, double(threads_) * resident_ / 256));
    // Rows that are read again come from the L1 cache if those of all blocks fit it, else from L2: assumed,
    // not measured.
    const double l1_bytes = shape_.profile().first_cache_bytes().value();
    if (chunks_ == 0 && needs_.held_inputs > 0)
      traits_.access_efficiency *= !shape_.simt() || row_bytes_ * groups_ * resident_ <= l1_bytes ? 0.9 : 0.6;
    // Operands over the columns that are not held come from the caches for every row, beside the matrix.
    // Lanes that walk over many rows find theirs in the L1 cache, mostly.
    // SGEMV of 8192 square on an H200 loses 1 % so.
    if (shape_.simt() && !one_shot_ && !parameters_.hold_columns && needs_.column_operands > 0)
      traits_.access_efficiency *= OperandsInL1() ? 0.97 : 0.75;
  }

  // Estimates the share that is left where blocks begin, store and end together.
  void EstimateBlocks() {
    // An only block of a multiprocessor waits where it has nothing under way: with bulk copies of several
    // rows, whose slots are all read before they are filled again (ATAX and BiCGK of 8192 square on three
    // H100s, 0.84 to 0.93 of the time was predicted), and with a batch of rows in registers that is stored
    // after their reductions (softmax, 0.66 to 0.70). Bulk copies by any blocks are slower than staged ones
    // of the same shape: by 2 to 9 % on four H100s, and where rows are stored after their reductions by half
    // (softmax).
    const bool only_block = parameters_.blocks_per_multiprocessor == 1 && together_ > 1,
               stores_after_reductions = needs_.stored_matrices > 0 && panel_.phase_count > 1;
    if (cold_ && width_ > 1) {
      if (parameters_.load_path == LoadPath::kBulk && stages_ > 0)
        traits_.access_efficiency *= (stores_after_reductions ? 0.65 : 0.95) * (only_block ? 0.95 : 1);
      if (only_block && in_batches_ && stores_after_reductions) traits_.access_efficiency *= 0.7;
    }
    // Blocks that store while others load do so best where each ends with its tile.
    if (shape_.simt() && !one_shot_ && needs_.stored_matrices > 0)
      traits_.access_efficiency *= kPersistentEfficiency;
    // Blocks that have a tile each and store a matrix begin and end together where there are few turns of
    // them: GEMVER of 8192 square on four H100s, 1.05 to 1.13 of the time that was predicted, rows 0.98
    // to 1.02.
    if (cold_ && one_shot_ && parameters_.tile_rows > 0 && needs_.stored_matrices > 0)
      traits_.access_efficiency *=
          1 - 0.12 / std::max(1.0, blocks_ / (device_.multiprocessors() * std::max(1.0, double(resident_))));
    // Operands of blocks that end with their row come from the caches too: layer norm over rows of 16384 at
    // 0.98 of the rate on an H200, SGEMV of 8192 square at 0.99 of that of the best.
    if (shape_.simt() && one_shot_ && !OperandsInL1() && !parameters_.hold_columns)
      traits_.cache_bytes = double(rows_) * columns_ * needs_.column_operands * shape_.entry_bytes;
  }

  void EstimateBarriers() {
    // A row reduction stops the block, unless another block of the multiprocessor goes on, while its loads go
    // on: of rows of 16384 and 8192 in f32 on an H200 the time over the floor is about a third of what the
    // barriers take by themselves. That of a cluster of two is no dearer: ATAX in f64, 512 threads a block,
    // 512 us (floor 504 us).
    constexpr double kNotOverlapped = 0.3;
    if (shape_.simt() && per_row_ > 32)
      traits_.barrier_seconds =
          needs_.row_reductions * double(rows_) * column_parts_ * cluster_ / together_ /
          std::min(std::max(1.0, blocks_), double(device_.multiprocessors()) * resident_) * kNotOverlapped *
          (0.05e-6 + 0.02e-6 * threads_ / 32) / resident_;
  }

  void CountInstructions() {
    // Loads and stores with their addresses, the way through shared memory, operands over the columns that
    // are not held, guards of lanes that may have no column; rows that are read again in each phase.
    const double entries = double(rows_) * columns_;
    double per_entry = (2.0 * needs_.matrices * (chunks_ == 0 ? std::max(1, panel_.phase_count) : 1) +
                        2.0 * needs_.stored_matrices + (stages_ > 0 ? 2.0 * needs_.matrices : 0) +
                        (parameters_.hold_columns ? 0 : 2.0 * needs_.column_operands)) /
                       width_;
    if (covered_ < 1) per_entry += 1.0 / width_;
    traits_.instructions = shape_.instructions + entries * per_entry / std::max(covered_, 0.1);
    if (!shape_.simt()) {
      traits_.instructions = HostRowOperations(shape_, needs_, parameters_.keeps_results, per_row_);
      traits_.issue_overlap = shape_.profile().lane_overlap().value();
    }
  }

  // Counts partial results to and from the workspace, and what their second kernel takes.
  void AddPartialResults() {
    // A tile with all rows has none.
    const bool all_rows = parameters_.tile_rows >= rows_;
    const double sums_bytes = all_rows ? 0 : double(columns_) * needs_.accumulator_bytes;  // of a block
    traits_.bytes_written += parts_ * sums_bytes;
    if (parameters_.atomic) {
      traits_.barrier_seconds += AtomicSeconds(shape_.profile(), parts_, sums_bytes, shape_.entry_bytes);
    } else {
      traits_.bytes_read += parts_ * sums_bytes;
      const double added = std::min<double>(parameters_.tile_rows > 0 && HasFewRows(shape_) ? parts_ : rows_,
                                            device_.multiprocessors());
      if (cold_) traits_.barrier_seconds += sums_bytes * added / kPartsBytesPerSecond;
    }
    // Parts of the rows that blocks reduce in part.
    const double row_parts = parameters_.tile_rows > 0 ? rows_ * column_parts_ * needs_.row_reductions : 0;
    if (row_parts > 0) {
      const double bytes = row_parts * kRowPartBytes;
      traits_.bytes_read += bytes;
      traits_.bytes_written += bytes;
      traits_.launches = 2;
      if (cold_) traits_.barrier_seconds += kRowFinishSeconds;
    }
  }

  const FusionShape& shape_;
  const RowPanelNeeds& needs_;
  const DeviceDescription& device_;
  const LoopRoles& panel_;
  const int64_t rows_, columns_, kept_bytes_;
  RowPanelParameters parameters_;
  const int threads_ = parameters_.threads, per_row_ = parameters_.threads_per_row,
            width_ = parameters_.vector_width, chunks_ = parameters_.chunks, stages_ = parameters_.stages,
            cluster_ = parameters_.cluster_blocks, groups_ = cluster_ > 1 ? 1 : threads_ / per_row_,
            together_ = parameters_.rows_per_step, words_ = shape_.entry_bytes / 4;
  const bool one_shot_ = parameters_.blocks_per_multiprocessor == 0,
             in_batches_ = stages_ == 0 && together_ > 1,
             cold_ = shape_.simt() && !shape_.model.back_to_back();
  const int most_registers_ = MostRegisters(device_, std::max(1, threads_* parameters_.resident_blocks));
  KernelTraits traits_ = shape_.Traits();

  int resident_ = 1;  // blocks on a multiprocessor; set by Fits, all others by ChooseGrid and later
  double lane_columns_ = 0, column_parts_ = 1, blocks_ = 0;
  double parts_ = 0;      // of the grid, each with results of its own
  double row_bytes_ = 0;  // of a block
  double covered_ = 1;    // share of the lanes that have columns
};

}  // namespace

std::optional<FusionImplementation> MakeRowPanel(const FusionShape& shape, const RowPanelNeeds& needs,
                                                 const RowPanelParameters& given, int64_t kept_bytes,
                                                 KernelTraits* out, NearestMiss* miss) {
  RowPanelKernel kernel(shape, needs, given, kept_bytes);
  if (!kernel.Fits(miss)) return std::nullopt;
  return kernel.Made(out);
}

}  // namespace fusion
