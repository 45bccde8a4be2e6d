// What the corrections of predicted times see of a kernel.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "server/model/residual.h"

namespace fusion {
namespace {

constexpr int kOfOthers = 55;  // features of kernels that are not over elements; those of elements follow

double Logarithm(double value, double of_one) { return value > 0 ? std::log2(value / of_one) : 0; }

}  // namespace

const std::array<const char*, kResidualFeatures>& ResidualFeatureNames() {
  static constexpr std::array<const char*, kResidualFeatures> kNames = {
      "every kernel", "row panels", "cooperative", "staged copies", "bulk copies", "one tile a block",
      "rows together in registers", "rows read again", "rows kept on chip", "atomic sums", "clusters",
      "single entries a load", "computation", "barriers", "launches", "low occupancy", "columns held",
      "threads a block", "rows a step", "stages", "registers", "vectors a thread", "short kernels",
      "chunks a row", "shared memory", "bulk copies of single entries",
      "rows of single entries together in registers", "bulk copies of several rows",
      // What issuing instructions adds to waiting for memory, by what overlaps the two.
      "instructions: vectors", "instructions: rows, one tile a block", "instructions: rows, persistent",
      "instructions: staged rows", "instructions: bulk rows", "instructions: rows together in registers",
      "instructions: rows read again", "instructions: few warps",
      // How well memory is kept busy.
      "little under way", "little under way: bulk", "little under way: together in registers",
      "few loads under way", "few loads of single entries under way", "the last wave", "few waves",
      // Structures of single entries, and bounds of registers.
      "one tile a block of single entries", "staged copies of single entries", "chunks of single entries",
      "registers bounded", "registers bounded: registers", "one warp a row", "partial results",
      "bulk copies: threads", "bulk copies of single entries: threads",
      "bulk copies of several rows of single entries", "vectors in one block", "share kept in L2",
      // Of kernels over elements.
      "every element kernel", "elements: staged", "elements: one tile a block",
      "elements: several threads each", "elements: computation", "elements: launches",
      "elements: low occupancy", "elements: threads a block", "elements: registers",
      "elements: short kernels", "elements: tile", "elements: shared memory", "elements: measured routines",
      "elements: one after the other", "elements: exchanged"};
  return kNames;
}

bool IsConstantFeature(int feature) { return feature == 0 || feature == kOfOthers; }

ResidualFeatures FeaturesOf(const FusionImplementation& kernel) {
  const SkeletonParameters& p = kernel.parameters;
  const RunTimeEstimate& e = kernel.estimate;
  const double seconds = e.memory_seconds + e.compute_seconds + e.barrier_seconds + e.launch_seconds;
  const auto share = [&](double part) { return seconds > 0 ? part / seconds : 0; };
  // The sweeps of a cooperative kernel have what it has not itself.
  const SkeletonParameters& rows = kernel.sweeps.empty() ? p : kernel.sweeps.front().parameters;
  bool keeps = false, several = false;
  for (const FusionImplementation& sweep : kernel.sweeps) keeps |= sweep.kept.any();
  for (int choice : kernel.implementations) several |= choice > 0;
  constexpr double kShortSeconds = 10e-6, kLargeShared = 200e3;
  const double total = e.total_seconds / std::max(e.correction, 1e-3);  // as the model made it
  const double is_short = kShortSeconds / (kShortSeconds + total), threads = Logarithm(rows.threads, 256) / 2,
               registers = e.registers / 255.0, shared = e.shared_bytes / kLargeShared,
               one_tile = p.blocks_per_multiprocessor == 0, staged = rows.load_path == LoadPath::kStaged;
  ResidualFeatures features{};
  const double busy = std::max({e.memory_seconds, e.compute_seconds, 1e-9});
  if (kernel.skeleton == Skeleton::kElement) {
    const double of_elements[] = {1,
                                  staged,
                                  one_tile,
                                  double(several),
                                  share(e.compute_seconds),
                                  share(e.launch_seconds),
                                  1 - e.occupancy,
                                  threads,
                                  registers,
                                  is_short,
                                  Logarithm(p.elements_per_block, 32) / 3,
                                  shared,
                                  double(e.measured_routines),
                                  total > 0 ? e.alone_seconds / total : 0,
                                  double(p.load_path == LoadPath::kExchanged)};
    static_assert(kOfOthers + int{std::size(of_elements)} == kResidualFeatures);
    std::copy(std::begin(of_elements), std::end(of_elements), features.begin() + kOfOthers);
    return features;
  }
  const bool panel = kernel.skeleton == Skeleton::kRowPanel || kernel.skeleton == Skeleton::kCooperative;
  // Shares of the time beside memory, in logarithms as errors are.
  const double issue = std::log1p(std::min(e.issue_seconds / busy, 3.0)),
               resident_threads = e.resident_blocks * rows.threads;
  const double few_warps = std::clamp(std::log2(2048 / std::max(resident_threads, 32.0)), 0.0, 4.0) / 4;
  const double little = std::clamp(-std::log2(std::max(e.load, 1e-3)), -3.0, 3.0) / 3;
  // Where the compiler keeps loads in order, each thread waits for one at a time.
  const double few_loads =
      std::clamp(std::log2(8192.0 / std::max(resident_threads * rows.vector_width, 32.0)), 0.0, 6.0) / 6;
  const bool again = kernel.skeleton == Skeleton::kRowPanel && p.chunks == 0;
  const bool bulk = rows.load_path == LoadPath::kBulk,
             together = panel && rows.stages == 0 && rows.rows_per_step > 1, single = rows.vector_width == 1,
             plain = panel && !again && !together && rows.load_path == LoadPath::kDirect;
  const double of_others[] = {1,
                              double(kernel.skeleton == Skeleton::kRowPanel),
                              double(kernel.skeleton == Skeleton::kCooperative),
                              staged,
                              double(bulk),
                              one_tile,
                              double(together),
                              double(kernel.skeleton == Skeleton::kRowPanel && p.chunks == 0),
                              double(keeps),
                              double(p.atomic),
                              double(p.cluster_blocks > 1),
                              double(single),
                              share(e.compute_seconds),
                              share(e.barrier_seconds),
                              share(e.launch_seconds),
                              1 - e.occupancy,
                              double(rows.hold_columns),
                              threads,
                              panel ? Logarithm(rows.rows_per_step, 1) / 3 : 0,
                              rows.stages > 0 ? (rows.stages - 2) / 2.0 : 0,
                              registers,
                              panel ? 0 : Logarithm(p.unroll, 1) / 2,
                              is_short,
                              panel ? Logarithm(rows.chunks, 4) / 3 : 0,
                              shared,
                              double(bulk && single),
                              double(together && single),
                              bulk ? Logarithm(rows.rows_per_step, 1) / 3 : 0,
                              panel ? 0 : issue,
                              plain && one_tile ? issue : 0,
                              plain && !one_tile ? issue : 0,
                              panel && staged ? issue : 0,
                              panel && bulk ? issue : 0,
                              together ? issue : 0,
                              again ? issue : 0,
                              issue * few_warps,
                              panel && !bulk && !together ? little : 0,
                              bulk ? little : 0,
                              together ? little : 0,
                              plain || again ? few_loads : 0,
                              (plain || again) && single ? few_loads : 0,
                              one_tile ? std::log(std::ceil(e.waves) / e.waves) : 0,
                              one_tile ? 1 / (1 + e.waves) : 0,
                              double(panel && one_tile && single),
                              double(panel && staged && single),
                              panel && single ? Logarithm(rows.chunks, 4) / 3 : 0,
                              double(p.resident_blocks > 1),
                              p.resident_blocks > 1 ? registers : 0,
                              double(panel && rows.threads_per_row == 32),
                              double(kernel.skeleton == Skeleton::kCooperative && !p.atomic),
                              bulk ? threads : 0,
                              bulk && single ? threads : 0,
                              bulk && single ? Logarithm(rows.rows_per_step, 1) / 3 : 0,
                              double(kernel.skeleton == Skeleton::kVector && p.chunks > 0),
                              p.l2_percent / 100.0};
  static_assert(std::size(of_others) == size_t{kOfOthers});
  std::copy(std::begin(of_others), std::end(of_others), features.begin());
  return features;
}

}  // namespace fusion
