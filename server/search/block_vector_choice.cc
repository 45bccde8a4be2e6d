// Parameters of vectors that one block has in its registers. They save launches, barriers of the grid, and
// what later sweeps would read again; but one multiprocessor does all the work, so vectors must be short.
#include <algorithm>

#include "server/search/fusion_shape.h"

namespace fusion {
namespace {

// Entries of a vector that one block is given at most: 16 a thread.
constexpr int64_t kMostEntries = 16384;
// Vectors of 16 bytes that a lane has of each value at most.
constexpr int kMostChunks = 8;

}  // namespace

void ChooseBlockVector(const Graph& graph, const NodeSet& nodes, const std::vector<FusionShape>& sweeps,
                       std::vector<FusionImplementation>* out) {
  const FusionShape shape = ShapeOfFusion(graph, nodes, sweeps[0].sizes, sweeps[0].model,
                                          {.feasible = true, .skeleton = Skeleton::kVector});
  if (shape.grid_reductions == 0) return;  // nothing to wait for, so the whole device may work
  const Extent* extent = nullptr;
  for (int member : shape.members) {
    const auto& dimensions = shape.node(member).dimensions;
    if (dimensions.empty()) continue;
    if (dimensions.size() > 1 || (extent != nullptr && dimensions[0].extent != *extent)) return;
    extent = &dimensions[0].extent;
  }
  const int64_t length = extent == nullptr ? 0 : shape.Size(*extent);
  if (length == 0 || length > kMostEntries) return;
  int vectors = 0;
  for (ValueId value : shape.loads) vectors += !graph.value(value).type.is_scalar();
  const DeviceDescription& device = shape.model.device();
  for (int threads : {1024, 512, 256}) {
    FusionImplementation implementation = shape.Base();
    SkeletonParameters& parameters = implementation.parameters;
    parameters.threads = threads;
    parameters.vector_width = 16 / shape.entry_bytes;
    const int64_t per_chunk = int64_t{threads} * parameters.vector_width;
    if (length > kMostChunks * per_chunk) continue;
    parameters.chunks = static_cast<int>((length + per_chunk - 1) / per_chunk);
    KernelTraits traits = shape.Traits();
    traits.threads = threads;
    traits.blocks = 1;
    traits.launches = 1;
    traits.registers = 24 + MostLiveVectors(shape) * parameters.chunks * 4;
    if (ResidentBlocks(device, threads, traits.registers, 0) == 0) continue;
    traits.compute_efficiency = kLoopComputeEfficiency;
    // Address, load or store, guard.
    traits.instructions = shape.instructions + 3.0 * double(length) / parameters.vector_width *
                                                   double(vectors + shape.stores.size());
    // All loads are under way together.
    traits.bytes_in_flight_per_block = double(length) * vectors * shape.entry_bytes;
    traits.barrier_seconds = shape.grid_reductions * kBlockBarrierSeconds;
    implementation.estimate = shape.model.Estimate(traits);
    out->push_back(std::move(implementation));
  }
}

}  // namespace fusion
