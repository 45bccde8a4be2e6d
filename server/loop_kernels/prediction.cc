#include "server/loop_kernels/prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "server/loop_kernels/loop_time.h"
#include "server/loop_kernels/modelled_kernel.h"
#include "server/loop_kernels/nest_values.h"
#include "server/parse/error_list.h"

namespace fusion {
namespace {

// Estimated: an access with its index; what is computed for each entry that is written, with the loop around
// it; an entry that is brought into shared memory.
constexpr double kInstructionsOfAccess = 3, kInstructionsOfResult = 3, kInstructionsOfFill = 20;
constexpr double kHostLanes = 8, kInstructionsOfHostBlock = 60;

}  // namespace

LoopPredictor::LoopPredictor(const MappedLoops& mapped, const std::set<std::string>& constants) {
  const std::vector<ModelledKernel> modelled = ModelledKernels(mapped);
  for (const CRegion& region : mapped.program.regions) {
    ErrorList scratch("");
    const std::shared_ptr<const Nest> nest = BuildNest(mapped.program, region, &scratch);
    for (KernelLoops& loops : KernelsOf(*nest)) {
      std::vector<TouchedBox> boxes = BoxesOf(*nest, loops);
      LoopWorkCounter counter(nest, loops, modelled[kernels_.size()], constants);
      kernels_.push_back({nest, std::move(loops), std::move(boxes), std::move(counter)});
    }
  }
}

KernelTraits LoopPredictor::Traits(size_t kernel, const IntegerValues& known, bool cached) const {
  const Nest& nest = *kernels_[kernel].nest;
  const KernelLoops& loops = kernels_[kernel].loops;
  const std::vector<TouchedBox>& boxes = kernels_[kernel].boxes;
  NestValues values(nest, known);
  std::map<int, double> trips;
  const auto is_inside = [&](int loop) {
    for (int at = loop; at >= 0; at = nest.loops[at].parent)
      if (at == loops.root) return true;
    return false;
  };
  double blocks = 1, threads = 1;
  for (int loop = 0; loop < static_cast<int>(nest.loops.size()); ++loop) {
    if (!is_inside(loop)) continue;
    const auto range = values.RangeOf(nest.loops[loop]);
    trips[loop] = range ? std::max<double>(
                              0, static_cast<double>(range->second) - static_cast<double>(range->first) + 1)
                        : 1;
    // The middle stands for all iterations where the ranges of inner loops depend on it.
    if (range) values.Set(nest.loops[loop].symbol, range->first + (range->second - range->first) / 2);
    const auto meta = std::find(loops.metas.begin(), loops.metas.end(), loop);
    if (meta != loops.metas.end())
      (static_cast<size_t>(meta - loops.metas.begin()) < loops.metas.size() / 2 ? blocks : threads) *=
          trips[loop];
  }
  const NestLoop& lane = nest.loops[loops.metas.back()];
  const double lane_trips = std::max(trips[loops.metas.back()], 1.0);

  KernelTraits traits;
  traits.blocks = static_cast<int64_t>(std::clamp(blocks, 1.0, 2147483647.0));
  traits.threads = static_cast<int>(std::clamp(threads, 1.0, 1024.0));
  const auto executions = [&](const NestAccess& access) {
    double count = 1;
    for (int loop : access.loops)
      if (is_inside(loop)) count *= trips[loop];
    return count;
  };
  const auto entry_bytes = [&](const NestAccess& access) {
    const CType type = nest.arrays[access.array].variable.type;
    return type == CType::kDouble || type == CType::kLong ? 8.0 : 4.0;
  };
  std::map<int, double> largest_boxes;  // bytes of an array that all blocks touch, each for itself
  std::map<int, bool> in_shared;
  for (const TouchedBox& box : boxes) {
    double entries = 1;
    bool known = true;
    for (const Polynomial& extent : box.extents) {
      const std::optional<int64_t> value = values.Of(extent);
      known &= value.has_value();
      entries *= static_cast<double>(std::max<int64_t>(value.value_or(1), 1));
    }
    const NestAccess& first = nest.accesses[box.uses[0].access];
    // The box is touched once in each iteration of the loops around the threads, those over blocks among
    // them.
    double times = 1;
    for (int loop : first.loops)
      if (is_inside(loop) && std::find(loops.local.begin(), loops.local.end(), loop) == loops.local.end())
        times *= trips[loop];
    largest_boxes[box.array] +=
        known ? entries * times * entry_bytes(first) : std::numeric_limits<double>::infinity();
    if (!cached || !known) continue;
    if (entries * entry_bytes(first) > static_cast<double>(1 << 18)) continue;
    for (const TouchedBox::Use& use : box.uses)
      if (!nest.accesses[use.access].writes) in_shared[use.access] = true;
    traits.shared_bytes += static_cast<int64_t>(entries * entry_bytes(first));
    traits.instructions += entries * times * kInstructionsOfFill;
  }
  for (int number = 0; number < static_cast<int>(nest.accesses.size()); ++number) {
    const NestAccess& access = nest.accesses[number];
    if (access.loops.empty() ||
        !is_inside(access.loops[0] == loops.root ? loops.root : access.loops.back()) ||
        nest.arrays[access.array].local)
      continue;
    if (access.writes) traits.instructions += executions(access) * kInstructionsOfResult;
    // An entry that is the same for all parts of a thread, or all along the innermost loop, is accessed once.
    const Polynomial flat = FlatIndex(nest, access);
    double count = executions(access);
    for (int loop : access.loops) {
      const bool innermost = loop == access.loops.back() &&
                             std::find(loops.metas.begin(), loops.metas.end(), loop) == loops.metas.end();
      if ((nest.loops[loop].parts || innermost) && flat.exact() && !flat.Has(nest.loops[loop].symbol))
        count /= std::max(trips[loop], 1.0);
    }
    traits.instructions += count * kInstructionsOfAccess;
    if (in_shared.count(number) > 0) continue;
    // The stride says how far apart the entries of neighbouring lanes lie.
    double stride = 2;
    if (flat.exact()) {
      const std::vector<Polynomial> coefficients = flat.CoefficientsOf(lane.symbol);
      const auto step = coefficients.size() < 2 ? std::optional<int64_t>(0) : values.Of(coefficients[1]);
      if (step) stride = std::abs(static_cast<double>(*step));
    }
    if (stride > 1) {
      traits.instructions += count * 4;
    } else if (access.loops.back() == loops.metas.back()) {
      // A host goes through lanes with vectors, where no loop is inside.
      traits.instructions -= count * kInstructionsOfAccess * (1 - 1 / std::min(lane_trips, kHostLanes));
    }
  }
  traits.instructions += blocks * kInstructionsOfHostBlock;
  for (const NestArray& array : nest.arrays) {
    if (array.local) continue;
    double entries = 1;
    for (const Polynomial& extent : array.extents)
      entries *= static_cast<double>(values.Of(extent).value_or(1));
    const int number = static_cast<int>(&array - nest.arrays.data());
    bool reads = false, writes = false;
    for (const NestAccess& access : nest.accesses)
      if (access.array == number && !access.loops.empty() && is_inside(access.loops.back()))
        (access.writes ? writes : reads) = true;
    const double touched =
        largest_boxes.count(number) > 0 ? std::min(entries * 4, largest_boxes[number]) : entries * 4;
    if (reads) traits.bytes_read += touched;
    if (writes) traits.bytes_written += touched;
  }
  traits.flops = traits.instructions / 2;
  return traits;
}

RunTimeEstimate LoopPredictor::Estimate(size_t kernel, const IntegerValues& values, bool cached, bool warm,
                                        const CostModel& model) const {
  return model.target().simt() ? EstimateLoopKernel(Work(kernel, values, cached, warm), model)
                               : model.Estimate(Traits(kernel, values, cached));
}

}  // namespace fusion
