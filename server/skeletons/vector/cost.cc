// Kernels over vectors: how long they take.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "server/skeletons/shared/host_costs.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

// Returns the rate of blocks that end with their tile, by the bytes that a thread loads of each vector, over
// that of a copy with 16. WAXPBY of 2^26 f32 took 265.5 us with 8 bytes, 268.3 with 16, 268.9 with two loads
// of 16 and 272.2 with four (H100, kernels by hand; 128 to 512 threads agree within 0.3 us). With 4 bytes
// there are too few on their way: 295 to 322 us.
double OneShotEfficiency(int bytes) {
  return bytes < 8 ? 0.9 : bytes == 8 ? 1.01 : bytes <= 16 ? 1 : bytes <= 32 ? 0.997 : 0.985;
}

// Grids that walk over vectors much longer than the L2 cache and store some lose against one tile a block: of
// 2^26 entries in f32 on an H100 SSCAL 5 %, WAXPBY and MADD 5, Adam 4.5, VADD 3.5; on an H200 3 to 5
// (docs/decisions/0016).
constexpr double kPersistentVectorEfficiency = 0.96;

}  // namespace

// The instructions that are issued while others wait come from the other blocks of the
// multiprocessor, and from the other steps of the same thread where they are unrolled and no loop follows.
// Black-Scholes of 2^26 entries on an H100, where instructions take 0.6 of memory's time or more: 596 us with
// two blocks of one step, 497 with five, 480 with ten, 458 with seven of two steps (docs/decisions/0007).
double IssueOverlap(double blocks, int steps) { return 1.1 + 0.2 * blocks * steps; }

int MostLiveVectors(const FusionShape& shape) {
  std::map<ValueId, size_t> last;
  for (size_t i = 0; i < shape.members.size(); ++i)
    for (ValueId operand : shape.node(shape.members[i]).operands) last[operand] = i;
  std::vector<int> ends(shape.members.size(), 0);
  int live = 0;
  for (ValueId value : shape.loads)
    if (!shape.graph.value(value).type.is_scalar()) ++live, ++ends[last.at(value)];
  int most = live;
  for (size_t i = 0; i < shape.members.size(); ++i) {
    const Node& node = shape.node(shape.members[i]);
    most = std::max(most, ++live);
    live -= ends[i];
    if (node.is_reduction()) continue;
    const auto read = last.find(node.result);
    if (read == last.end())
      --live;
    else
      ++ends[read->second];
  }
  return most;
}

std::optional<FusionImplementation> MakeVector(const FusionShape& shape, const VectorParameters& given,
                                               KernelTraits* out) {
  double length = 1;
  int vectors = 0;
  for (int member : shape.members) {
    double extent = 1;
    for (const NodeDimension& dimension : shape.node(member).dimensions)
      extent *= shape.Size(dimension.extent);
    length = std::max(length, extent);
  }
  for (ValueId value : shape.loads)
    if (!shape.graph.value(value).type.is_scalar()) ++vectors;
  const DeviceDescription& device = shape.model.device();
  VectorParameters parameters = given;
  KernelTraits traits = shape.Traits();
  const int threads = traits.threads = parameters.threads, width = parameters.vector_width,
            unroll = parameters.unroll;
  traits.registers = 24 + MostLiveVectors(shape) * width * unroll * shape.entry_bytes / 4;
  traits.compute_efficiency = kLoopComputeEfficiency;
  const bool one_shot = parameters.blocks_per_multiprocessor == 0;
  if (shape.simt() && one_shot)
    traits.access_efficiency = OneShotEfficiency(width * unroll * shape.entry_bytes);
  // Address, load or store, guard.
  int stored = 0;
  for (ValueId value : shape.stores) stored += !shape.graph.value(value).type.is_scalar();
  traits.instructions =
      shape.instructions + length * (2.0 * (vectors + stored) / width + 2.0 / (width * unroll));
  if (!shape.simt()) {
    traits.instructions =
        (shape.instructions + shape.profile().lane_access().value() * length * (vectors + stored)) *
        HostFactorOfLanes(shape.profile(), threads);
    traits.issue_overlap = shape.profile().lane_overlap().value();
  }
  const int resident = shape.simt() ? ResidentBlocks(device, threads, traits.registers, 0) : 1;
  if (resident == 0) return std::nullopt;
  const double tile = double(threads) * width * unroll, tiles = std::ceil(length / tile);
  if (!one_shot)
    parameters.blocks_per_multiprocessor = std::min(resident, parameters.blocks_per_multiprocessor);
  traits.blocks = static_cast<int64_t>(
      one_shot ? tiles
               : std::min(tiles, double(device.multiprocessors()) * parameters.blocks_per_multiprocessor));
  // Loads of one step are under way together; half of the time the warp waits for them, unless new blocks
  // take the place of those that are done.
  traits.bytes_in_flight_per_block = (one_shot ? 0.8 : 0.5) * tile * vectors * shape.entry_bytes;
  if (shape.simt()) {
    const double most = one_shot ? resident : parameters.blocks_per_multiprocessor,
                 tiles_each = tiles / device.multiprocessors();
    traits.issue_overlap = IssueOverlap(std::min(most, std::ceil(tiles_each)), one_shot ? unroll : 1);
    // In few turns the first loads and the last computations have nothing to overlap with: Black-Scholes of
    // 10^6 entries on four H100s, 12.2 us with 1.5 turns of one step and 13.0 and 13.6 with one of two and
    // four.
    if (!shape.model.back_to_back())
      traits.issue_overlap = std::min(traits.issue_overlap, 1 + tiles_each / most);
    if (!one_shot && stored > 0 && shape.bytes_read + shape.bytes_written > 2.0 * device.l2_bytes())
      traits.access_efficiency *= kPersistentVectorEfficiency;
  }
  // One partial result a block, to the workspace and back.
  traits.bytes_read += double(traits.blocks) * shape.grid_reductions * shape.entry_bytes;
  traits.bytes_written += double(traits.blocks) * shape.grid_reductions * shape.entry_bytes;
  if (parameters.atomic)
    traits.barrier_seconds = AtomicSeconds(shape.profile(), double(traits.blocks),
                                           shape.grid_reductions * shape.entry_bytes, shape.entry_bytes);
  ReadFromL2(shape, {.percent = parameters.l2_percent, .vectors = true}, &traits);
  FusionImplementation implementation = shape.Base();
  implementation.parameters = parameters;
  implementation.estimate = shape.model.Estimate(traits);
  *out = traits;
  return implementation;
}

}  // namespace fusion
