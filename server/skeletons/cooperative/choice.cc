// Parameters of cooperative fusions: sweeps in one launch with barriers of the grid between them. They save
// launches, and rows of matrices that a later sweep reads again can stay in shared memory or in registers.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "server/skeletons/cooperative/cooperative.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

// A finish between two barriers waits for device memory and for its own block: fitted by hand to BiCGK, 2048
// square, on an H200.
constexpr double kFinishSeconds = 0.8e-6;

// Matrices that one sweep reads or computes and a later one reads, all of them row panels.
std::vector<ValueId> Reused(const std::vector<FusionShape>& sweeps) {
  std::vector<ValueId> reused;
  for (size_t later = 1; later < sweeps.size(); ++later)
    for (ValueId value : sweeps[later].loads) {
      const FusionShape& reader = sweeps[later];
      if (reader.graph.value(value).type.extents.size() != 2 || Contains(reused, value)) continue;
      bool before = false, panels = true;
      for (const FusionShape& sweep : sweeps) {
        const bool touches = Contains(sweep.loads, value) || Contains(sweep.stores, value);
        if (!touches) continue;
        before |= &sweep < &reader;
        panels &= IsRowPanel(sweep) && sweep.roles.rows == reader.roles.rows &&
                  sweep.roles.columns == reader.roles.columns;
      }
      if (before && panels) reused.push_back(value);
    }
  return reused;
}

// Returns whether the sweep has reductions over the grid that can be sums by atomic additions.
bool HasSums(const FusionShape& sweep) {
  for (size_t i = 0; i < sweep.members.size(); ++i)
    if (sweep.IsGridReduction(i) && sweep.node(sweep.members[i]).overload->monoid == v1::SUM) return true;
  return false;
}

// Returns whether something remains to be done after the sweep's last row: see PlaceGridReduction.
bool FinishNeeded(const Graph& graph, const NodeSet& kernel, const FusionShape& sweep, bool atomic) {
  if (sweep.grid_reductions == 0) return false;
  if (!atomic) return true;
  for (size_t i = 0; i < sweep.members.size(); ++i) {
    const Node& node = sweep.node(sweep.members[i]);
    const bool panel = IsRowPanel(sweep);
    if (panel && sweep.roles.phases[i] == kFinishPhase) return true;
    if (!panel && node.dimensions.empty()) return true;
    if (!sweep.IsGridReduction(i)) continue;
    if (!Contains(sweep.stores, node.result) || !AddsInPlace(graph, node, kernel)) return true;
  }
  return false;
}

int BlocksOf(const FusionImplementation& sweep) {
  return sweep.skeleton == &RowPanelSkeleton() ? sweep.As<RowPanelParameters>().blocks_per_multiprocessor
                                               : sweep.As<VectorParameters>().blocks_per_multiprocessor;
}

// Where rows stay that a later sweep reads again. kAll: as kShared, where no row stays behind.
enum class Keep { kNothing, kRegisters, kShared, kAll };

class CooperativeChooser {
 public:
  CooperativeChooser(const Graph& graph, const NodeSet& nodes, const std::vector<FusionShape>& sweeps,
                     NearestMiss* miss)
      : graph_(graph), nodes_(nodes), sweeps_(sweeps), reused_(Reused(sweeps)), miss_(miss) {}

  // `common`: threads, stages, load_path, hold_columns, rows_per_step, atomic and blocks_per_multiprocessor.
  // In batches of rows (no stages) those of the last step stay in registers, and with kShared and kAll others
  // beside them.
  std::optional<FusionImplementation> Make(const RowPanelParameters& common, int vector_width,
                                           Keep keep) const {
    std::vector<RowPanelParameters> parameters;
    const bool in_batches = common.stages == 0 && common.rows_per_step > 1;
    int64_t other_shared = 0, rows_of_block = 0, slot_bytes = 0;
    for (const FusionShape& sweep : sweeps_) {
      RowPanelParameters own = common;
      own.threads_per_row = common.threads;
      if (IsRowPanel(sweep)) {
        const int64_t per_chunk = int64_t{common.threads} * vector_width;
        const int64_t columns = std::max<int64_t>(1, sweep.Size(sweep.roles.columns));
        if (columns > 32 * per_chunk) return std::nullopt;
        own.vector_width = vector_width;
        own.chunks = static_cast<int>((columns + per_chunk - 1) / per_chunk);
        const RowPanelNeeds needs = NeedsOfRowPanel(sweep);
        if (needs.matrices == 0) own.stages = 0, own.load_path = LoadPath::kDirect;
        const std::vector<int> together =
            in_batches ? RowsInRegisters(sweep, needs, own.chunks * vector_width) : RowsPerStep(sweep, needs);
        if (std::find(together.begin(), together.end(), common.rows_per_step) == together.end())
          own.rows_per_step = 1;
        own.hold_columns = common.hold_columns && needs.column_operands > 0;
        own.ragged = HasRaggedRows(own, columns);
        for (ValueId value : reused_) {
          if (Contains(sweep.loads, value))
            slot_bytes = RowSlotBytes(sweep, own), rows_of_block = RowsOfBlock(sweep, common);
          const bool touches = Contains(sweep.loads, value) || Contains(sweep.stores, value);
          if (keep != Keep::kNothing && in_batches && touches && own.rows_per_step == 1) return std::nullopt;
        }
      } else {
        own.vector_width = sweep.skeleton == &VectorSkeleton() ? 16 / sweep.entry_bytes : 1;
        own.stages = 0;
        own.rows_per_step = 1;
        own.load_path = LoadPath::kDirect;
        own.hold_columns = false;
        own.l2_percent = 0;
      }
      KernelTraits traits;
      const auto made = MakeSweep(sweep, own, 0, &traits);
      if (!made || BlocksOf(*made) < common.blocks_per_multiprocessor) return std::nullopt;
      if (keep != Keep::kNothing && in_batches && !RoomForComputedRows(sweep, own, traits.registers))
        return std::nullopt;
      other_shared = std::max(other_shared, traits.shared_bytes);
      parameters.push_back(own);
    }
    if (keep == Keep::kNothing) return Assemble(parameters, {}, 0, rows_of_block);
    KeptRows kept;
    if (in_batches)
      kept.register_rows = static_cast<int>(std::min<int64_t>(common.rows_per_step, rows_of_block));
    if (keep == Keep::kRegisters) return Assemble(parameters, kept, 0, rows_of_block);
    // The section that reduces most decides how much all of them leave for that.
    const DeviceDescription& device = sweeps_[0].model.device();
    const int64_t block_limit =
        std::min(device.shared_bytes_per_block(),
                 device.shared_bytes_per_multiprocessor() / common.blocks_per_multiprocessor - 1024);
    const int64_t shared_limit = block_limit - other_shared - ReductionScratchBytes(common.rows_per_step);
    const int64_t row_bytes = slot_bytes * static_cast<int64_t>(reused_.size());
    if (row_bytes == 0 || shared_limit < row_bytes) return std::nullopt;
    // The rows of the last step need not be in shared memory too.
    const int64_t others =
        in_batches ? (rows_of_block - 1) / common.rows_per_step * common.rows_per_step : rows_of_block;
    kept.shared_rows = static_cast<int>(std::min(others, shared_limit / row_bytes));
    if (kept.shared_rows == 0 || (keep == Keep::kAll && kept.shared_rows < others)) return std::nullopt;
    return Assemble(parameters, kept, kept.shared_rows * row_bytes, rows_of_block);
  }

  bool reuses() const { return !reused_.empty(); }

 private:
  // Rows that are kept and were computed from others are in registers beside those, all of a step at once;
  // half of them take the others' place. `registers`: the estimate, which has room for the loaded ones alone.
  // GEMVER f64 of 2048 square with 256 threads spills with 8 rows (35 us), with 4 it does not (23.5; H200).
  bool RoomForComputedRows(const FusionShape& sweep, const RowPanelParameters& own, int registers) const {
    int computed = 0;
    for (ValueId value : reused_) computed += Contains(sweep.stores, value);
    if (computed == 0 || !sweep.simt()) return true;
    const int more =
        computed * own.rows_per_step * own.chunks * own.vector_width * (sweep.entry_bytes / 4) / 2;
    return registers + more <=
           MostRegisters(sweep.model.device(), own.threads * own.blocks_per_multiprocessor) + kRegisterSlack;
  }
  int64_t RowsOfBlock(const FusionShape& sweep, const RowPanelParameters& parameters) const {
    const int64_t rows = sweep.Size(sweep.roles.rows),
                  blocks =
                      int64_t{sweep.model.device().multiprocessors()} * parameters.blocks_per_multiprocessor;
    return std::max<int64_t>(1, (rows + blocks - 1) / blocks);
  }
  std::optional<FusionImplementation> MakeSweep(const FusionShape& sweep,
                                                const RowPanelParameters& parameters, int64_t kept_bytes,
                                                KernelTraits* traits) const {
    return IsRowPanel(sweep)
               ? MakeRowPanel(sweep, NeedsOfRowPanel(sweep), parameters, kept_bytes, traits, miss_)
               : MakeVector(sweep,
                            {.threads = parameters.threads,
                             .vector_width = parameters.vector_width,
                             .blocks_per_multiprocessor = parameters.blocks_per_multiprocessor,
                             .atomic = parameters.atomic},
                            traits);
  }

  // `kept`: the numbers of rows, which take `kept_bytes` of shared memory.
  std::optional<FusionImplementation> Assemble(const std::vector<RowPanelParameters>& parameters,
                                               const KeptRows& kept, int64_t kept_bytes,
                                               int64_t rows_of_block) const {
    // The last step of a block may have fewer rows than the others.
    const int64_t last = kept.register_rows > 0 ? (rows_of_block - 1) % kept.register_rows + 1 : 0;
    const double kept_share = kept.any() ? double(kept.shared_rows + last) / double(rows_of_block) : 0;
    CooperativeParameters all{.threads = parameters[0].threads,
                              .blocks_per_multiprocessor = parameters[0].blocks_per_multiprocessor,
                              .load_path = parameters[0].load_path,
                              .stages = parameters[0].stages,
                              .rows_per_step = parameters[0].rows_per_step,
                              .atomic = parameters[0].atomic};
    for (const RowPanelParameters& own : parameters)
      all.l2_percent = std::max(all.l2_percent, own.l2_percent);
    FusionImplementation whole;
    whole.fusion.nodes = nodes_;
    whole.skeleton = &CooperativeSkeleton();
    FindLoadsAndStores(graph_, nodes_, &whole.loads, &whole.stores);
    RunTimeEstimate& total = whole.estimate;
    total.launch_seconds = sweeps_[0].model.device().launch_seconds();
    int sections = 0, finishes = 0;
    int64_t blocks = 1;  // of the grid
    std::vector<ValueId> touched;
    bool backwards = false;  // the last sweep over what was touched
    for (size_t i = 0; i < sweeps_.size(); ++i) {
      const FusionShape& sweep = sweeps_[i];
      RowPanelParameters own = parameters[i];
      // The last rows that a sweep has read are still in the cache, or in registers: the next one begins with
      // them.
      if (std::any_of(sweep.loads.begin(), sweep.loads.end(),
                      [&](ValueId value) { return Contains(touched, value); })) {
        own.reversed = !backwards;
        backwards = own.reversed;
      }
      KernelTraits traits;
      auto made = MakeSweep(sweep, own, kept_bytes, &traits);
      if (!made || BlocksOf(*made) < all.blocks_per_multiprocessor) return std::nullopt;
      KeptRows own_kept = kept;
      for (ValueId value : reused_) {
        const bool loads = Contains(sweep.loads, value);
        if (!loads && !Contains(sweep.stores, value)) continue;
        own_kept.values.push_back(value);
        if (!Contains(touched, value)) {
          touched.push_back(value);
          continue;
        }
        own_kept.filled = true;
        traits.bytes_read -= FoundAgain(value, sweep, kept_share);
      }
      blocks = std::max(blocks, traits.blocks);
      const RunTimeEstimate estimate = sweep.model.Estimate(traits);
      total.bytes += estimate.bytes;
      total.flops += estimate.flops;
      total.memory_seconds += estimate.memory_seconds;
      total.compute_seconds += estimate.compute_seconds;
      total.barrier_seconds += estimate.barrier_seconds;
      total.issue_seconds += estimate.issue_seconds;
      total.resident_blocks = all.blocks_per_multiprocessor;
      total.load = i == 0 ? estimate.load : std::min(total.load, estimate.load);
      total.total_seconds += estimate.total_seconds - estimate.launch_seconds;
      total.occupancy = std::min(total.occupancy, estimate.occupancy);
      total.registers = std::max(total.registers, estimate.registers);
      total.shared_bytes = std::max(total.shared_bytes, estimate.shared_bytes);
      const bool finish = FinishNeeded(graph_, nodes_, sweep, own.atomic);
      ++sections;
      if (finish) ++finishes;
      if (kept.any() && !own_kept.values.empty()) {
        // Values are kept in the same order everywhere.
        if (own_kept.values != reused_) return std::nullopt;
        made->As<RowPanelParameters>().kept = std::move(own_kept);
      }
      made->estimate = estimate;
      whole.order.insert(whole.order.end(), made->order.begin(), made->order.end());
      all.sweeps.push_back(*std::move(made));
    }
    whole.parameters = std::move(all);
    const int barriers = sections + finishes - 1;
    const v1::TargetProfile& profile = sweeps_.front().profile();
    const double waiting =
        blocks == 1 ? barriers * profile.block_barrier_seconds().value()
                    : barriers * profile.grid_barrier_seconds().value() + finishes * kFinishSeconds;
    // Sweeps need not have the same longest term.
    total.waiting_seconds =
        total.total_seconds - total.barrier_seconds - std::max(total.memory_seconds, total.compute_seconds);
    total.barrier_seconds += waiting;
    total.total_seconds += waiting + total.launch_seconds;
    return whole;
  }

  // Bytes of a value read before that `sweep`, going backwards, does not read from device memory: of the rows
  // that its blocks keep, which are the last ones, or of what the L2 cache still has of the last ones, which
  // are the same. What a kernel has written is not found there.
  double FoundAgain(ValueId value, const FusionShape& sweep, double kept_share) const {
    const double bytes = graph_.value(value).type.Bytes(sweep.sizes);
    const bool written = std::any_of(sweeps_.begin(), sweeps_.end(),
                                     [&](const FusionShape& other) { return Contains(other.stores, value); });
    const double in_cache =
        written || sweep.model.back_to_back()
            ? 0
            : sweep.profile().found_in_cache().value() * double(sweep.model.device().l2_bytes());
    return std::max(kept_share * bytes, std::min(in_cache, bytes));
  }

  const Graph& graph_;
  const NodeSet& nodes_;
  const std::vector<FusionShape>& sweeps_;
  const std::vector<ValueId> reused_;
  NearestMiss* const miss_;
};

}  // namespace

void ConfigureCooperative(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                          NearestMiss* miss) {
  const std::vector<FusionShape>& sweeps = problem.sweeps;
  if (sweeps.size() == 1 && sweeps[0].grid_reductions == 0) return;  // one section: an ordinary launch
  const CooperativeChooser chooser(problem.graph, problem.nodes, sweeps, miss);
  int vector_width = 16;
  bool panels = false;
  for (const FusionShape& sweep : sweeps) {
    if (!IsRowPanel(sweep)) continue;
    panels = true;
    vector_width = std::min(vector_width, RowVectorWidths(sweep).front());
  }
  std::vector<int> all_together = {1};
  for (const FusionShape& sweep : sweeps)
    if (IsRowPanel(sweep))
      if (std::vector<int> choices = RowsPerStep(sweep, NeedsOfRowPanel(sweep));
          choices.size() > all_together.size())
        all_together = std::move(choices);
  std::vector<int> in_registers = {1};
  if (panels)
    in_registers.insert(in_registers.end(), std::begin(kRowsInRegisters), std::end(kRowsInRegisters));
  const int l2_percent = panels && vector_width * sweeps[0].entry_bytes == 16
                             ? L2Percent(sweeps[0], sweeps[0].skeleton == &VectorSkeleton())
                             : 0;
  const bool sums = !problem.deterministic && std::any_of(sweeps.begin(), sweeps.end(), HasSums);
  std::vector<std::pair<LoadPath, int>> paths = {{LoadPath::kDirect, 0}};
  if (panels)
    // Several sweeps would copy to the same shared memory in turn. Bulk copies are left out: racecheck
    // reports those of two sweeps as a hazard (GEMVER, 301 x 261, on an H200), and with aligned rows they
    // were slower in all that was measured.
    for (const auto& path : StagedPaths(sweeps[0]))
      if (sweeps.size() == 1 || path.first != LoadPath::kBulk) paths.push_back(path);
  for (int threads : {512, 1024, 256})
    for (const auto& [path, stages] : paths)
      for (bool hold : {true, false}) {
        if (hold && !panels) continue;
        // For atomic and blocks, these are the most rows of a step that registers hold, and the fewest beside
        // which shared memory holds all others: registers are short where the estimate says that they are
        // just enough.
        std::map<std::pair<bool, int>, int> most_in_registers, fewest_with_all;
        for (Keep keep : {Keep::kRegisters, Keep::kAll, Keep::kShared, Keep::kNothing})
          for (int together : stages == 0 ? in_registers : all_together) {
            if (keep != Keep::kNothing && (!chooser.reuses() || (stages == 0 && together == 1))) continue;
            if ((keep == Keep::kRegisters || keep == Keep::kAll) && stages > 0) continue;
            if (!hold && stages == 0 && together > 1) continue;
            RowPanelParameters common;
            common.threads = threads;
            common.stages = stages;
            common.load_path = path;
            common.hold_columns = hold;
            common.rows_per_step = together;
            for (bool atomic : {false, true})
              for (int blocks : {1, 2}) {
                if ((atomic && !sums) || (blocks == 2 && threads == 1024)) continue;
                common.atomic = atomic;
                common.blocks_per_multiprocessor = blocks;
                const std::pair<bool, int> kind = {atomic, blocks};
                if (keep == Keep::kAll && fewest_with_all.count(kind) > 0) continue;
                if (keep == Keep::kShared && stages == 0 &&
                    (together != most_in_registers[kind] || together == fewest_with_all[kind]))
                  continue;
                for (int percent : {0, l2_percent}) {
                  if (percent > 0 && stages > 0) continue;
                  common.l2_percent = percent;
                  auto made = chooser.Make(common, panels ? vector_width : 1, keep);
                  if (made && keep == Keep::kRegisters)
                    most_in_registers[kind] = std::max(most_in_registers[kind], together);
                  if (made && keep == Keep::kAll) fewest_with_all[kind] = together;
                  if (made) out->push_back(*std::move(made));
                  if (l2_percent == 0) break;
                }
              }
          }
      }
}

}  // namespace fusion
