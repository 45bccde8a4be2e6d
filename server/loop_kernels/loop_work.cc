#include "server/loop_kernels/loop_work.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "server/loop_kernels/nest_values.h"

namespace fusion {
namespace {

// Bytes that caches and memory bring at once.
constexpr double kSector = 32, kLine = 128, kPiece = 64;
constexpr double kCopiedBytes = 16;  // at most, by an instruction
constexpr int kBanks = 32;
// A compiler takes so many iterations of a loop together, where one has no more loads and operations than
// that (NVRTC 13 for sm_90, loops of trips that it does not know).
constexpr double kUnrolled = 4, kMostOfUnrolled = 17;
// Instructions of a thread, counted in code of NVRTC 13: to begin; to find its place in the grid for each
// loop over blocks but the last, a division; accesses with their indices, outside of loops, in them, and of
// shared memory in them; to bring an entry into shared memory, for each dimension; and of guards and loops.
constexpr double kInstructionsOfStart = 10, kInstructionsOfBlockLoop = 40, kInstructionsOfAccess = 4,
                 kInstructionsOfInnerAccess = 2, kInstructionsOfSharedAccess = 1, kInstructionsOfFill = 20,
                 kInstructionsOfIteration = 1, kInstructionsOfGuard = 3;
// In loops a product and its sum are one instruction, and parts share most of what else there is.
constexpr double kOperationsOfSum = 2, kShareOfOthers = 0.25;
// The first cache looks for two lines at once, and brings four sectors (rows of 4096 that each thread adds up
// for itself).
constexpr double kLinesOfTurn = 2, kSectorsOfTurn = 4;
// Registers of a thread by the same compiler, with and without a loop in it; for each load of the loop, which
// has an address, and for each that is from shared memory; loads that are under way at once outside of loops.
constexpr double kRegistersOfLoop = 40, kRegistersWithoutLoop = 20, kRegistersOfLoad = 2,
                 kRegistersOfSharedLoad = 0.5, kRegistersOfLoads = 12, kRegistersOfUnderWay = 0.75;
// An entry that a block shares is stored before it is loaded again.
constexpr double kTurnsOfLocal = 2;
// A loop of so few iterations, whose number is known, is unrolled whole.
constexpr double kLongestUnrolledWhole = 32, kRegistersOfUnrolled = 0.5, kMostRegistersOfUnrolled = 90;
// Loads and stores of an entry that does not fit, in each iteration.
constexpr double kMovesOfSpilled = 4;
constexpr double kRegistersOfMultiprocessor = 65536;
constexpr double kMostSharedEntries = 65536;  // of an array's part, as LowerLoops has it
constexpr double kMostPartsAtOnce = 64;       // likewise, that a thread has side by side

double EntryBytesOf(const NestArray& array) {
  const CType type = array.variable.type;
  return type == CType::kDouble || type == CType::kLong ? 8 : 4;
}

bool Contains(const std::vector<int>& loops, int loop) {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

// The first cache serves these at once.
struct Request {
  double sectors = 1, lines = 1, conflicts = 1, entries = 1;
};

// `steps`, `trips`: of the loops over threads, the innermost first; steps in entries.
Request RequestOf(const std::vector<std::pair<int64_t, int64_t>>& steps, double bytes) {
  std::set<int64_t> sectors, lines, entries;
  std::vector<std::set<int64_t>> banks(kBanks);
  for (int64_t lane = 0; lane < static_cast<int64_t>(kWarpThreads); ++lane) {
    int64_t rest = lane, entry = 0;
    for (const auto& [step, trips] : steps) entry += step * (rest % trips), rest /= trips;
    if (rest > 0) break;  // the block has no such lane
    const int64_t at = entry * static_cast<int64_t>(bytes);
    const auto floor = [&](double size) {
      return static_cast<int64_t>(std::floor(static_cast<double>(at) / size));
    };
    entries.insert(entry);
    sectors.insert(floor(kSector)), lines.insert(floor(kLine));
    banks[static_cast<size_t>(floor(4) & (kBanks - 1))].insert(floor(4));
  }
  Request request{static_cast<double>(sectors.size()), static_cast<double>(lines.size()), 1,
                  static_cast<double>(entries.size())};
  for (const std::set<int64_t>& bank : banks)
    request.conflicts = std::max(request.conflicts, static_cast<double>(bank.size()));
  return request;
}

}  // namespace

LoopWorkCounter::LoopWorkCounter(std::shared_ptr<const Nest> nest, KernelLoops loops, ModelledKernel modelled,
                                 std::set<std::string> constants)
    : nest_(std::move(nest)),
      loops_(std::move(loops)),
      modelled_(std::move(modelled)),
      constants_(std::move(constants)),
      boxes_(BoxesOf(*nest_, loops_)) {
  const auto steps_of = [&](const Polynomial& polynomial, const NestAccess& access) {
    std::vector<Polynomial> steps;
    for (int loop : access.loops) {
      if (!polynomial.exact()) continue;
      const std::vector<Polynomial> parts = polynomial.CoefficientsOf(nest_->loops[loop].symbol);
      steps.push_back(parts.size() < 2 ? Polynomial(0) : parts[1]);
    }
    return steps;
  };
  for (const NestAccess& access : nest_->accesses) {
    if (!Contains(access.loops, loops_.root)) continue;
    Access& added = accesses_.emplace_back();
    added.access = &access;
    added.flat = FlatIndex(*nest_, access);
    added.steps = steps_of(added.flat, access);
    for (const NestGuard& guard : access.guards)
      for (const Polynomial& value : guard.conditions) {
        Polynomial uniform = value;
        for (int loop : access.loops)
          if (IsInside(loop)) uniform = uniform.Substitute(nest_->loops[loop].symbol, Polynomial(0));
        added.conditions.push_back({(value - uniform).ToString(), value, steps_of(value, access)});
      }
  }
}

bool LoopWorkCounter::IsInside(int loop) const {
  for (int at = loop; at >= 0; at = nest_->loops[at].parent)
    if (at == loops_.root) return true;
  return false;
}

// Counts at some values.
class LoopWorkCounter::Counting {
 public:
  Counting(const LoopWorkCounter& counter, const IntegerValues& known, bool cached, bool warm)
      : counter_(counter),
        nest_(*counter.nest_),
        known_(known),
        cached_(cached),
        warm_(warm),
        values_(nest_, known) {}

  LoopWork Do() {
    FindTrips();
    FindShares();
    CountBoxes();
    CountAccesses();
    CountOperations();
    CountMemory();
    CountWaits();
    FindRegisters();
    return work_;
  }

 private:
  struct SharedUse {
    double turns = 1, at_once = 1;  // turns of an entry; entries that a request loads
  };
  struct Array {
    bool known = true;  // what blocks touch of it
    double box_bytes = 0, read_entries = 0, written_entries = 0,
           in_pieces = 0;                 // that blocks touch, each for itself
    double requested = 0, distinct = 0;   // bytes that warps ask the first cache for
    double missed = 0, missed_twice = 0;  // shares of loads that do not find it there, and of those
  };
  struct Fill {
    int array;
    double rounds, times;  // entries of a thread; for a block
  };
  // Loads that are made together, as they are in the same serial loops.
  struct Path {
    double turns = 1;
    bool in_order = false;
    double parts = 1;
    double each = 0, unrolled = 1;  // loads and operations of an iteration; iterations taken together
    std::map<int, double> loads;    // of a thread, by array
  };

  bool IsMeta(int loop) const { return nest_.loops[loop].claim == Claim::kMetaFor; }
  bool IsOverBlocks(int loop) const {
    const std::vector<int>& metas = counter_.loops_.metas;
    const auto at = std::find(metas.begin(), metas.end(), loop);
    return at != metas.end() && static_cast<size_t>(at - metas.begin()) < metas.size() / 2;
  }
  bool IsOverThreads(int loop) const { return IsMeta(loop) && !IsOverBlocks(loop); }
  bool IsSerial(int loop) const { return counter_.IsInside(loop) && !IsMeta(loop); }
  bool IsConstant(const Polynomial& polynomial) const {
    const std::set<std::string> symbols = polynomial.Symbols();
    return polynomial.exact() && std::all_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) {
             return counter_.constants_.count(symbol) > 0;
           });
  }
  // Parts of a thread's work that the code has side by side.
  bool IsOfParts(int loop) const {
    const NestLoop& one = nest_.loops[loop];
    return one.parts && one.highs.size() == 1 && IsConstant(one.highs[0]) &&
           trips_.at(loop) <= kMostPartsAtOnce;
  }
  bool HasConstantTrips(int loop) const {
    const NestLoop& one = nest_.loops[loop];
    return !one.highs.empty() && !one.lows.empty() && IsConstant(one.highs[0] - one.lows[0]);
  }
  // A loop around the threads over which they keep what they add to an array.
  bool IsKeptOver(int loop, int array) const {
    if (IsMeta(loop) || Contains(counter_.loops_.local, loop)) return false;
    bool writes = false;
    for (const Access& one : counter_.accesses_) {
      if (one.access->array != array || !Contains(one.access->loops, loop)) continue;
      if (!one.flat.exact() || one.flat.Has(nest_.loops[loop].symbol)) return false;
      writes |= one.access->writes;
    }
    return writes;
  }
  bool IsInnermost(const NestAccess& access, int loop) const {
    return loop == access.loops.back() && !IsMeta(loop) && !IsOfParts(loop);
  }

  void FindTrips() {
    std::vector<int> unknown;  // loops over blocks
    double threads = 1;
    for (int loop = 0; loop < static_cast<int>(nest_.loops.size()); ++loop) {
      if (!counter_.IsInside(loop)) continue;
      const auto range = values_.RangeOf(nest_.loops[loop]);
      double trips = 1;
      if (range) trips = std::max(0.0, static_cast<double>(range->second - range->first) + 1);
      trips_[loop] = trips;
      // The middle stands for all iterations where the ranges of inner loops depend on it.
      if (range) values_.Set(nest_.loops[loop].symbol, range->first + (range->second - range->first) / 2);
      if (IsOverBlocks(loop)) {
        work_.blocks *= trips;
        if (!range) unknown.push_back(loop);
      } else if (Contains(counter_.loops_.metas, loop)) {
        threads *= trips;
      }
    }
    NestValues modelled(*counter_.modelled_.nest, known_);
    if (const auto blocks = modelled.Of(counter_.modelled_.counts.blocks); blocks && !unknown.empty()) {
      // All that is not known goes to one of them.
      trips_[unknown[0]] = std::max(1.0, static_cast<double>(*blocks) / std::max(work_.blocks, 1.0));
      work_.blocks = static_cast<double>(*blocks);
      for (int loop : unknown)
        values_.Set(nest_.loops[loop].symbol, static_cast<int64_t>((trips_[loop] - 1) / 2));
    }
    work_.blocks = std::clamp(work_.blocks, 1.0, 2147483647.0);
    work_.threads = std::clamp(threads, 1.0, 1024.0);
    work_.warps = std::ceil(work_.threads / kWarpThreads);
  }

  // The share of the iterations around an access in which its guards hold.
  double ShareOf(const Access& one) const {
    double share = 1;
    for (const NestGuard& guard : one.access->guards) {
      if (const auto value = EvaluateC(*guard.condition, known_)) {
        if ((*value != 0) != guard.holds) return 0;
      } else if (guard.conditions.empty()) {
        share /= 2;
      }
    }
    std::map<std::string, double> each;
    for (const Access::Condition& condition : one.conditions) {
      const std::optional<int64_t> middle = values_.Of(condition.value);
      if (!middle) continue;
      double spread = 0, centre = static_cast<double>(*middle);
      for (size_t i = 0; i < condition.steps.size(); ++i) {
        const int loop = one.access->loops[i];
        if (!counter_.IsInside(loop)) continue;
        const double step = static_cast<double>(values_.Of(condition.steps[i]).value_or(0));
        spread += std::abs(step) * (trips_.at(loop) - 1) / 2;
        centre += step * ((trips_.at(loop) - 1) / 2 - std::floor((trips_.at(loop) - 1) / 2));
      }
      // Its values are taken to be spread evenly.
      const double holds = std::clamp((centre + spread + 1) / (2 * spread + 1), 0.0, 1.0);
      const auto [at, added] = each.try_emplace(condition.key, holds);
      at->second = std::min(at->second, holds);
    }
    for (const auto& [key, holds] : each) share *= holds;
    return share;
  }
  void FindShares() {
    work_.active = 0;
    for (const Access& one : counter_.accesses_) {
      shares_.push_back(ShareOf(one));
      work_.active = std::max(work_.active, shares_.back());
    }
    if (counter_.accesses_.empty()) work_.active = 1;
  }

  double TripsOver(const std::vector<int>& loops, bool (Counting::*which)(int) const) const {
    double trips = 1;
    for (int loop : loops)
      if (counter_.IsInside(loop) && (this->*which)(loop)) trips *= trips_.at(loop);
    return trips;
  }
  // Warps of a block that come to an access.
  double WarpsOf(const NestAccess& access) const {
    return std::ceil(TripsOver(access.loops, &Counting::IsOverThreads) / kWarpThreads);
  }
  // Adds for each time that warps of a block do something.
  void Issue(double warps, double instructions) { work_.instructions += instructions * warps / work_.warps; }

  // --- Parts in shared memory, and what blocks touch ---
  void CountBoxes() {
    for (const TouchedBox& box : counter_.boxes_) {
      const NestArray& array = nest_.arrays[box.array];
      const double bytes = EntryBytesOf(array);
      std::vector<double> extents;
      double entries = 1;
      bool known = true;
      for (const Polynomial& extent : box.extents) {
        const std::optional<int64_t> value = values_.Of(extent);
        known &= value.has_value();
        extents.push_back(static_cast<double>(std::max<int64_t>(value.value_or(1), 1)));
        entries *= extents.back();
      }
      const NestAccess& first = nest_.accesses[box.uses[0].access];
      // The box is touched in each iteration of loops around the threads; while it stays the same, the first
      // cache keeps it.
      double times = 1, different = 1;
      for (int loop : first.loops) {
        if (!counter_.IsInside(loop) || Contains(counter_.loops_.local, loop)) continue;
        times *= trips_.at(loop);
        const bool moves = std::any_of(box.first.begin(), box.first.end(), [&](const Polynomial& one) {
          return !one.exact() || one.Has(nest_.loops[loop].symbol);
        });
        if (IsOverBlocks(loop) || moves) different *= trips_.at(loop);
      }
      double share = 0;
      for (size_t i = 0; i < counter_.accesses_.size(); ++i)
        if (counter_.accesses_[i].access == &first) share = shares_[i];
      const double row = extents.empty() ? 1 : extents.back();
      const std::optional<int64_t> stride = box.strides.empty() ? 1 : values_.Of(box.strides.back());
      // Rows that begin anywhere touch a part of one sector more.
      const double row_bytes = row * bytes;
      const double sectors = std::fmod(row_bytes, kSector) == 0 && row_bytes > 0
                                 ? row_bytes / kSector
                                 : std::max(1.0, std::ceil((row_bytes + kSector - bytes) / kSector - 0.5));
      const double box_bytes = stride == 1 ? entries / row * sectors * kSector : entries * kSector;
      Array& touched = arrays_[box.array];
      touched.known &= known;
      touched.box_bytes += box_bytes * different * share;
      bool reads = false, writes = false;
      for (const TouchedBox::Use& use : box.uses) (nest_.accesses[use.access].writes ? writes : reads) = true;
      // Memory is read in pieces, of which blocks that run at other times need the rest.
      double piece = 1;
      if (stride == 1 && !MovesInside(box, first)) piece = std::max(1.0, kPiece / row_bytes);
      if (reads) touched.read_entries += entries * different * share;
      if (reads) touched.in_pieces += entries * different * share * piece;
      if (writes) touched.written_entries += entries * different * share;
      if (cached_ && known && IsCached(box) && entries <= kMostSharedEntries)
        CountPart(box, extents, entries, times, share, &touched);
    }
    if (fills_.empty()) return;
    double times = 0;
    for (const Fill& fill : fills_) times = std::max(times, fill.times);
    int64_t largest = 0;  // of branches one has its parts
    for (const auto& [branch, bytes] : branches_) largest = std::max(largest, bytes);
    work_.shared_bytes += largest;
    ahead_ = times > 1 && branches_.empty() && KeepsOverLoops();
    if (ahead_) work_.shared_bytes *= 2;
    work_.barriers += (ahead_ ? 1 : 2) * times;
  }
  // It says whether the rows of a box go on in the next iteration of a loop that the block goes through.
  bool MovesInside(const TouchedBox& box, const NestAccess& access) const {
    return std::any_of(access.loops.begin(), access.loops.end(), [&](int loop) {
      return counter_.IsInside(loop) && !IsOverBlocks(loop) && !Contains(counter_.loops_.local, loop) &&
             (!box.first.back().exact() || box.first.back().Has(nest_.loops[loop].symbol));
    });
  }
  // All threads bring a part into shared memory; the copies of a part are under way at once.
  void CountPart(const TouchedBox& box, const std::vector<double>& extents, double entries, double times,
                 double share, Array* touched) {
    const double bytes = EntryBytesOf(nest_.arrays[box.array]), row = extents.back();
    const double unit = kCopiedBytes / bytes;
    const double padding = extents.size() < 2 ? 0 : std::fmod(row, unit) == 0 ? unit : 1 - std::fmod(row, 2);
    for (const TouchedBox::Use& use : box.uses)
      if (!nest_.accesses[use.access].writes)
        in_shared_[use.access] = SharedUseOf(box, use, extents, row + padding, padding >= unit);
    const auto taken = static_cast<int64_t>(std::ceil(entries / row * (row + padding) * bytes / 16) * 16);
    (box.guard == nullptr ? work_.shared_bytes : branches_[box.guard->holds]) += taken;
    // A thread copies 16 bytes at a time, by as many instructions as there are entries where rows do not
    // begin where 16 bytes begin.
    double copies = 1;
    for (size_t i = 0; i + 1 < box.strides.size() && padding >= unit; ++i)
      if (values_.Of(box.strides[i]).value_or(1) % static_cast<int64_t>(unit) != 0) copies = unit;
    const double together = padding >= unit ? unit : 1;
    const double lanes = std::min(row / together, kWarpThreads);
    const double sectors_of_warp = kWarpThreads / lanes * std::ceil(lanes * together * bytes / kSector);
    const double rounds = std::ceil(entries / together / work_.threads),
                 of_block = times / work_.blocks * share;
    Issue(work_.warps, rounds * kInstructionsOfFill * static_cast<double>(extents.size()) * of_block);
    work_.turns += rounds * copies * of_block * std::max(1.0, sectors_of_warp / 4) * 2;
    const double requested = rounds * work_.warps * times * share * sectors_of_warp * kSector;
    touched->requested += requested;
    touched->distinct += requested;
    fills_.push_back({box.array, rounds, times / work_.blocks});
  }
  bool KeepsOverLoops() const {
    for (const Access& one : counter_.accesses_)
      for (int loop : one.access->loops)
        if (counter_.IsInside(loop) && IsKeptOver(loop, one.access->array)) return true;
    return false;
  }
  // The choice is that of LowerLoops.
  bool IsCached(const TouchedBox& box) const {
    if (!std::all_of(box.extents.begin(), box.extents.end(),
                     [&](const Polynomial& extent) { return IsConstant(extent); }))
      return false;
    bool writes = false, reads = false;
    for (const NestAccess& access : nest_.accesses)
      if (access.array == box.array && Contains(access.loops, counter_.loops_.root)) writes |= access.writes;
    for (const TouchedBox::Use& use : box.uses) reads |= !nest_.accesses[use.access].writes;
    return reads && !(writes && box.first.size() > 1);
  }
  // Turns of a load from a part with this pitch; `aligned`: four entries of a row may be loaded at once.
  SharedUse SharedUseOf(const TouchedBox& box, const TouchedBox::Use& use, const std::vector<double>& extents,
                        double pitch, bool aligned) const {
    Polynomial place = use.place.empty() ? Polynomial(0) : use.place[0];
    for (size_t i = 1; i < use.place.size(); ++i)
      place = place * Polynomial(static_cast<int64_t>(i + 1 == use.place.size() ? pitch : extents[i])) +
              use.place[i];
    const NestAccess& access = nest_.accesses[use.access];
    std::vector<Polynomial> steps;
    for (int loop : access.loops) {
      const std::vector<Polynomial> parts = place.CoefficientsOf(nest_.loops[loop].symbol);
      steps.push_back(parts.size() < 2 ? Polynomial(0) : parts[1]);
    }
    const int last = access.loops.back();
    const bool vector = aligned && IsSerial(last) && !IsOfParts(last) && steps.back() == Polynomial(1);
    const double bytes = EntryBytesOf(nest_.arrays[box.array]);
    const Request request = RequestOf(LaneSteps(access, steps), bytes);
    if (!vector) return {request.conflicts, 1};
    return {std::max(bytes / kCopiedBytes, request.entries * bytes / kLine), kCopiedBytes / bytes};
  }
  std::vector<std::pair<int64_t, int64_t>> LaneSteps(const NestAccess& access,
                                                     const std::vector<Polynomial>& steps) const {
    std::vector<std::pair<int64_t, int64_t>> lanes;
    for (size_t i = access.loops.size(); i-- > 0;)
      if (counter_.IsInside(access.loops[i]) && IsOverThreads(access.loops[i]))
        lanes.emplace_back(steps.empty() ? kBanks : values_.Of(steps[i]).value_or(kBanks),
                           std::max<int64_t>(1, static_cast<int64_t>(trips_.at(access.loops[i]))));
    return lanes;
  }

  // --- Accesses ---
  void CountAccesses() {
    std::set<int> written;
    for (const Access& one : counter_.accesses_)
      if (one.access->writes) written.insert(one.access->array);
    for (size_t i = 0; i < counter_.accesses_.size(); ++i) {
      const Access& one = counter_.accesses_[i];
      const NestAccess& access = *one.access;
      const NestArray& array = nest_.arrays[access.array];
      if (shares_[i] <= 0) continue;
      // A register holds what is the same for all parts, or all along the innermost loop.
      double times = 1, parts = 1;
      std::vector<int> path;  // serial loops in which it is accessed again
      for (size_t j = 0; j < access.loops.size(); ++j) {
        const int loop = access.loops[j];
        if (!counter_.IsInside(loop) || !IsSerial(loop)) continue;
        const bool held = (IsOfParts(loop) || IsInnermost(access, loop) || IsKeptOver(loop, access.array)) &&
                          one.flat.exact() && !one.flat.Has(nest_.loops[loop].symbol);
        if (held) continue;
        times *= trips_.at(loop);
        if (IsOfParts(loop))
          parts *= trips_.at(loop);
        else
          path.push_back(loop);
      }
      const bool inner = !path.empty();
      const double warps = WarpsOf(access);
      const int number = static_cast<int>(&access - nest_.accesses.data());
      const auto part = in_shared_.find(number);
      const bool shared = part != in_shared_.end();
      Issue(warps, times * shares_[i] *
                       (!inner   ? kInstructionsOfAccess
                        : shared ? kInstructionsOfSharedAccess
                                 : kInstructionsOfInnerAccess));
      CountRegisters(access, inner, shared, parts);
      if (array.local) {
        work_.turns += times * shares_[i] * warps / work_.warps;
        if (!access.writes) near_[path] += 1;
        continue;
      }
      if (shared) {
        work_.turns += times * shares_[i] * part->second.turns * warps / work_.warps;
        paths_[path].each += parts;
        continue;
      }
      const Request request = one.flat.exact() ? RequestOf(LaneSteps(access, one.steps), EntryBytesOf(array))
                                               : Request{kWarpThreads, kWarpThreads, 1, kWarpThreads};
      const double requests = times * shares_[i] * warps;
      work_.turns +=
          requests / work_.warps * std::max(request.lines / kLinesOfTurn, request.sectors / kSectorsOfTurn);
      const double bytes = requests * work_.blocks * request.sectors * kSector;
      if (access.writes) {
        work_.stored_bytes += bytes;
        continue;
      }
      arrays_[access.array].requested += bytes;
      arrays_[access.array].distinct += bytes / times * DistinctOf(one, request);
      Path& batch = paths_[path];
      // The kernel may read next what it writes, so that loads do not go before stores.
      const bool in_order = written.count(access.array) > 0 && parts > 1;
      batch.turns = std::max(batch.turns, in_order ? parts : 1);
      batch.in_order |= written.count(access.array) > 0 && inner;
      batch.loads[access.array] += in_order ? 1 : parts;
      batch.each += parts;
      double all = 1;
      for (int loop : access.loops)
        if (counter_.IsInside(loop) && IsOfParts(loop)) all *= trips_.at(loop);
      batch.parts = std::max(batch.parts, all);
      for (const Access::Condition& condition : one.conditions)
        for (size_t j = 0; j < condition.steps.size(); ++j)
          uneven_ |= shares_[i] < 1 && IsOfParts(access.loops[j]) && trips_.at(access.loops[j]) > 1 &&
                     !condition.steps[j].IsZero();
    }
  }
  // It says whether the index is another one in each iteration: the loop's counter is in it, or in the range
  // of one that is.
  bool MovesIndex(const Access& one, int loop) const {
    const std::string& symbol = nest_.loops[loop].symbol;
    return one.flat.Has(symbol) ||
           std::any_of(one.access->loops.begin(), one.access->loops.end(), [&](int other) {
             const std::vector<Polynomial>& lows = nest_.loops[other].lows;
             return one.flat.Has(nest_.loops[other].symbol) &&
                    std::any_of(lows.begin(), lows.end(),
                                [&](const Polynomial& low) { return low.Has(symbol); });
           });
  }
  // A block asks so often for other sectors: warps that differ in a loop that is in no index ask
  // for the same.
  double DistinctOf(const Access& one, const Request& request) const {
    if (!one.flat.exact()) return 1e300;
    double entries = 1;
    for (size_t i = 0; i < one.access->loops.size(); ++i) {
      const int loop = one.access->loops[i];
      if (counter_.IsInside(loop) && !IsOverBlocks(loop) && MovesIndex(one, loop)) entries *= trips_.at(loop);
    }
    return entries / std::max(1.0, request.entries * WarpsOf(*one.access));
  }
  // Entries that a loop adds to, addresses, and loads that are under way.
  void CountRegisters(const NestAccess& access, bool inner, bool shared, double parts) {
    const bool in_loop = std::any_of(access.loops.begin(), access.loops.end(),
                                     [&](int loop) { return IsSerial(loop) && IsInnermost(access, loop); });
    if (in_loop) looped_ = true;
    if (access.writes) {
      if (in_loop) registers_ += parts;
    } else if (inner) {
      registers_ += parts * (shared ? kRegistersOfSharedLoad : kRegistersOfLoad);
    } else if (!shared) {
      loads_ += parts, most_loads_ += kRegistersOfLoads;
    }
  }

  void CountOperations() {
    const ModelledKernel& modelled = counter_.modelled_;
    const NestValues values(*modelled.nest, known_);
    const double operations = static_cast<double>(values.Of(modelled.counts.thread.operations).value_or(0));
    double blocks = 0;
    for (int loop : counter_.loops_.metas) blocks += IsOverBlocks(loop);
    double guards = 0, parts = 1;
    for (int loop : counter_.loops_.local)
      if (IsOfParts(loop)) parts *= trips_[loop];
    for (const Access& one : counter_.accesses_)
      guards = std::max(guards, static_cast<double>(one.conditions.size()));
    work_.instructions += kInstructionsOfStart + kInstructionsOfBlockLoop * (blocks - 1) +
                          guards * parts * kInstructionsOfGuard;
    double iterations = 0, longest = 1;
    for (auto& [path, batch] : paths_) {
      double trips = 1;
      for (int loop : path) trips *= trips_.at(loop);
      longest = std::max(longest, trips);
    }
    double fused = operations;
    if (const double of_part = operations / (longest * parts); longest > 1 && of_part > 1)
      fused = longest * parts * (1 + std::max(0.0, of_part - kOperationsOfSum) * kShareOfOthers);
    for (auto& [path, batch] : paths_) {
      if (path.empty()) continue;
      double trips = 1;
      for (int loop : path) trips *= trips_.at(loop);
      batch.each += fused / trips;
      const double last = trips_.at(path.back());
      batch.unrolled = batch.each > kMostOfUnrolled ? 1 : std::min(last, kUnrolled);
      if (HasConstantTrips(path.back()) && last <= kLongestUnrolledWhole) {
        batch.unrolled = last;
        unrolled_registers_ =
            std::min(kMostRegistersOfUnrolled, kRegistersOfUnrolled * batch.each * batch.unrolled);
      }
      iterations += trips * kInstructionsOfIteration;
      work_.additions = std::max(work_.additions, trips);
    }
    work_.instructions += (iterations + fused) * work_.active;
  }
  // Entries that do not fit lie in the first cache, and go there and back in each iteration.
  void FindRegisters() {
    const double most =
        std::min(255.0, std::floor(kRegistersOfMultiprocessor / (work_.warps * kWarpThreads) / 8) * 8);
    const double needed = looped_
                              ? kRegistersOfLoop + registers_
                              : kRegistersWithoutLoop + std::min(kRegistersOfUnderWay * loads_, most_loads_);
    work_.registers = static_cast<int>(std::min(needed + unrolled_registers_, most));
    if (!looped_ || needed <= most) return;
    const double moved = kMovesOfSpilled * (needed - most) * work_.additions * work_.active;
    work_.instructions += moved;
    work_.turns += moved;
  }

  // --- Memory ---
  void CountMemory() {
    for (const NestArray& array : nest_.arrays) {
      if (array.local) continue;
      const int number = static_cast<int>(&array - nest_.arrays.data());
      bool reads = false, writes = false;
      double share = 0;
      for (size_t i = 0; i < counter_.accesses_.size(); ++i) {
        const NestAccess& access = *counter_.accesses_[i].access;
        if (access.array != number || shares_[i] <= 0) continue;
        (access.writes ? writes : reads) = true;
        share = std::max(share, shares_[i]);
      }
      if (!reads && !writes) continue;
      double all = EntryBytesOf(array);
      for (const Polynomial& extent : array.extents)
        all *= static_cast<double>(values_.Of(extent).value_or(1));
      Array& touched = arrays_[number];
      if (!touched.known || touched.box_bytes <= 0)
        touched.box_bytes = touched.read_entries = touched.written_entries = touched.in_pieces = 1e300;
      double bytes = reads ? std::min(all, touched.read_entries * EntryBytesOf(array)) : 0;
      if (touched.in_pieces > 0) bytes *= touched.in_pieces / touched.read_entries;
      const double written = writes ? std::min(all, touched.written_entries * EntryBytesOf(array)) : 0;
      work_.memory_bytes += warm_ ? 0 : bytes + written;
      const double reused = std::min({touched.requested, touched.box_bytes, touched.distinct});
      work_.requested_bytes += touched.requested;
      work_.reused_bytes += reused;
      touched.missed = touched.requested > 0 ? reused / touched.requested : 0;
      touched.missed_twice = warm_ || reused <= 0 ? 0 : std::min(1.0, bytes / reused);
    }
  }

  // --- Waits ---
  void CountWaits() {
    for (const auto& [path, batch] : paths_) {
      double waits = batch.turns, together = 1;
      // Where a guard may fail for some of a thread's parts, they go through their loops one after the other.
      if (!path.empty() && uneven_) {
        double slow = batch.parts;
        for (int loop : path) slow *= trips_.at(loop);
        work_.uneven_waits += slow / kUnrolled;
        work_.uneven_additions = std::max(work_.uneven_additions, slow);
      }
      for (int loop : path) {
        const bool last = loop == path.back();
        const double trips = trips_.at(loop);
        if (last && !batch.in_order) together = batch.unrolled;
        waits *= last && !batch.in_order ? trips / batch.unrolled : trips;
      }
      double far = 0, memory = 0;
      for (const auto& [array, loads] : batch.loads) {
        const Array& touched = arrays_[array];
        far += loads * together * touched.missed;
        memory += loads * together * touched.missed * touched.missed_twice;
      }
      Wait(waits, far, memory);
    }
    double times = 0, far = 0, memory = 0;  // all parts come at once
    for (const Fill& fill : fills_) {
      const Array& touched = arrays_[fill.array];
      times = std::max(times, fill.times);
      far += fill.rounds * touched.missed;
      memory += fill.rounds * touched.missed * touched.missed_twice;
    }
    if (ahead_) {
      work_.ahead_waits = times;
      work_.ahead_memory_waits = times * std::min(1.0, memory);
    } else {
      Wait(times, far, memory);
    }
    for (const auto& [path, loads] : near_) {
      double trips = 1;
      for (int loop : path) trips *= trips_.at(loop);
      work_.waits += trips * kTurnsOfLocal;
    }
  }
  void Wait(double times, double far, double memory) {
    work_.waits += times;
    work_.far_waits += times * std::min(1.0, far);
    work_.memory_waits += times * std::min(1.0, memory);
  }

  const LoopWorkCounter& counter_;
  const Nest& nest_;
  const IntegerValues& known_;
  const bool cached_, warm_;
  NestValues values_;
  LoopWork work_;
  std::map<int, double> trips_;         // by loop
  std::vector<double> shares_;          // by access of the counter
  std::map<int, SharedUse> in_shared_;  // by access of the nest
  std::map<bool, int64_t> branches_;    // bytes of parts that a branch has, and of those of the other
  bool ahead_ = false;  // parts of the next iteration come while threads use those of this one
  std::map<int, Array> arrays_;
  std::vector<Fill> fills_;
  std::map<std::vector<int>, Path> paths_;
  std::map<std::vector<int>, double> near_;
  double registers_ = 0, unrolled_registers_ = 0, loads_ = 0, most_loads_ = 0;
  bool looped_ = false, uneven_ = false;
};

LoopWork LoopWorkCounter::Count(const IntegerValues& known, bool cached, bool warm) const {
  return Counting(*this, known, cached, warm).Do();
}

}  // namespace fusion
