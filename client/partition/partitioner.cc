#include "client/partition/partitioner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include "client/partition/check.h"
#include "client/partition/cuda_device.h"
#include "client/partition/host_run.h"
#include "client/partition/seconds.h"
#include "client/partition/simulated_device.h"

namespace fusion {
namespace {

int64_t IterationsOf(double share, int64_t iterations) {
  if (share >= 1) return iterations;
  return std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(iterations) + 0.5), 0,
                             iterations);
}

void SetLeastWork(double work) { __atomic_store(&fusion_partition_least_work, &work, __ATOMIC_RELAXED); }

// An address that no other thread has.
const void* CallingThread() {
  static thread_local const char thread = 0;
  return &thread;
}

// Returns the estimate that ends the facts.
double WorkOfFirst(const LoopCall& call) {
  double work;
  const size_t at = call.site.arrays + 4 * size_t{call.site.accesses} + (call.site.has_columns != 0 ? 2 : 0);
  std::memcpy(&work, call.facts + at, sizeof(work));
  return work;
}

}  // namespace

Partitioner::Partitioner(const PartitionSettings& settings, BackgroundStart<PartitionDevice>::Make make,
                         TunerStart::Make make_tuner)
    : settings_(settings),
      tuner_start_(std::move(make_tuner)),
      learned_(settings.learned_path),
      make_(std::move(make)) {
  if (settings.device == PartitionDeviceKind::kSimulated)
    device_ = std::make_unique<SimulatedDevice>(settings.simulated);
}

void Partitioner::Refuse(fusion_partition_site* site) noexcept {
  if (settings_.mode == PartitionMode::kOff || site->version != FUSION_PARTITION_VERSION) return;
  if (LoopRecord* loop = loops_.Of(site)) loop->Count(PartitionReason::kConditions);
}

int Partitioner::Enter(fusion_partition_site* site, int64_t iterations, double work, void* context,
                       const int64_t* facts) noexcept {
  if (settings_.mode == PartitionMode::kOff || site->version != FUSION_PARTITION_VERSION || iterations < 1)
    return 0;
  LoopRecord* const loop = loops_.Of(site);
  if (loop == nullptr) return 0;
  if (loop->is_off) {
    loop->Count(PartitionReason::kWrong);
    return 0;
  }
  if (!GoInside()) {
    loop->Count(PartitionReason::kBusy);
    return 0;
  }
  if (const void* const owner = owner_; owner != nullptr && owner != CallingThread()) {
    if (IsResident()) {
      GoOutside();
      loop->Count(PartitionReason::kBusy);
      return 0;
    }
    CloseEpisode();
  }
  bool done = false;
  try {
    done = RunInside(LoopCall{*site, 0, iterations, context, facts}, work, *loop);
  } catch (const std::exception&) {
    loop->Count(PartitionReason::kNoMemory);
  }
  GoOutside();
  return done ? 1 : 0;
}

// Returns true when loops may run on a device that is there already.
bool Partitioner::HasDevice() {
  if (settings_.mode != PartitionMode::kAuto || settings_.device == PartitionDeviceKind::kSimulated ||
      !GoInside())
    return false;
  const bool has_device = device_ != nullptr && !device_->IsLost();
  GoOutside();
  return has_device;
}

// The other order goes through all of its arrays at each time: it is for a device, or for more threads than
// can be busy with the order as written. Nests of little work have loops that are not worth a call.
int Partitioner::Reorders(fusion_partition_site* site, int64_t iterations, double work,
                          const int64_t* facts) noexcept {
  // Before there are threads the nest has to be long enough to earn them.
  const double loops = settings_.mode != PartitionMode::kAuto || has_threads_ ? 100 : 50000;
  constexpr int kFewestThreads = 4;
  if (settings_.mode == PartitionMode::kOff || site->version != FUSION_PARTITION_VERSION || iterations < 1 ||
      work < loops * settings_.least_work)
    return 0;
  const bool may_use_device =
      settings_.mode == PartitionMode::kDevice || settings_.mode == PartitionMode::kCheck;
  if (settings_.threads < kFewestThreads && !may_use_device && !HasDevice()) return 0;
  LoopRecord* const nest = loops_.Of(site);
  if (nest == nullptr) return 0;
  try {
    LoopRanges ranges;
    const bool is_found = ranges.Find(*site, facts, 0, iterations);
    if (!is_found || PairsMeet(*site, ranges.arrays())) {
      nest->Count(is_found ? PartitionReason::kOverlap : PartitionReason::kRanges);
      return 0;
    }
  } catch (const std::exception&) {
    nest->Count(PartitionReason::kNoMemory);
    return 0;
  }
  nest->reordered.fetch_add(1, std::memory_order_relaxed);
  return 1;
}

// In a child that was forked while another thread was inside it is never possible.
bool Partitioner::GoInside() {
  const void* nobody = nullptr;
  return inside_.compare_exchange_strong(nobody, CallingThread(), std::memory_order_acquire);
}

void Partitioner::GoOutside() { inside_.store(nullptr, std::memory_order_release); }

// A program that does much between its loops ends the episode, as each of these calls takes time.
void Partitioner::Touch(const void* address, int64_t bytes, bool is_written) noexcept {
  constexpr int kMostTouches = 256;
  const int64_t first = reinterpret_cast<int64_t>(address);
  const ByteRange range{first, first + bytes};
  CloseIf([&] {
    return ++touches_ > kMostTouches ||
           (IsResident() ? resident_->Meets(range, is_written) : episode_.Meets(range, is_written));
  });
}

void Partitioner::Sync() noexcept {
  CloseIf([] { return true; });
}

template <class Condition>
void Partitioner::CloseIf(const Condition& must_close) noexcept {
  // A handler of a signal that came while this thread was inside has nothing to wait for.
  while (owner_ == CallingThread() && inside_ != CallingThread()) {
    if (!GoInside()) {
      // Another thread looks whether it may run a loop.
      std::this_thread::yield();
      continue;
    }
    if (owner_ == CallingThread() && must_close()) CloseEpisode();
    GoOutside();
    return;
  }
}

void Partitioner::OpenEpisode(LoopRecord& loop) {
  if (owner_ == nullptr) first_of_episode_ = &loop;
  owner_ = CallingThread();
  // Small loops are met too: they would run where the arrays are.
  SetLeastWork(-std::numeric_limits<double>::infinity());
  __atomic_store_n(&fusion_partition_open, 1, __ATOMIC_RELAXED);
}

void Partitioner::CloseEpisode() {
  StoreResident();
  episode_.End(first_of_episode_->episodes, bytes_per_second_);
  owner_ = nullptr;
  SetLeastWork(settings_.least_work);
  __atomic_store_n(&fusion_partition_open, 0, __ATOMIC_RELAXED);
}

void Partitioner::StoreResident() {
  if (!IsResident()) return;
  const auto start = std::chrono::steady_clock::now();
  if (!resident_->Store()) last_on_device_->Count(PartitionReason::kFault);
  const double seconds = SecondsSince(start);
  episode_.Copied(seconds);
  episode_.Left();
  seconds_ += seconds;
  saved_seconds_ -= seconds;
  last_on_device_->device_saved -= seconds;
  last_on_device_->seconds = last_on_device_->seconds + seconds;
}

bool Partitioner::RunInside(const LoopCall& call, double work, LoopRecord& loop) {
  const auto refuse = [&loop](PartitionReason reason) {
    loop.Count(reason);
    return false;
  };
  if (start_.IsLost() || (pool_ != nullptr && pool_->IsLost())) return refuse(PartitionReason::kForked);
  if (pool_ != nullptr && !pool_->ComputesAsHere()) return refuse(PartitionReason::kRounding);
  if (!whole_.Find(call.site, call.facts, call.first, call.last)) return refuse(PartitionReason::kRanges);
  if (PairsMeet(call.site, whole_.arrays())) return refuse(PartitionReason::kOverlap);

  if (settings_.mode == PartitionMode::kAuto) Learn(work, loop);
  const auto start = std::chrono::steady_clock::now();
  // Results that are stored meanwhile count by themselves.
  const double counted = seconds_;
  if (!RunBest(call, work, loop)) return false;
  const double seconds = SecondsSince(start) - (seconds_ - counted);
  seconds_ += seconds;
  loop.Ran(call.iterations(), seconds);
  return true;
}

bool Partitioner::RunBest(const LoopCall& call, double work, LoopRecord& loop) {
  if (work < settings_.least_work && owner_ != nullptr && !IsResident()) return RunSmall(call);
  small_loops_ = touches_ = 0;
  const LoopWork of_loop(work, WorkOfFirst(call), call.iterations());
  const Way way = ChooseWay(call, work, loop);
  if (settings_.mode == PartitionMode::kAuto && RunTuned(call, work, way, loop)) return true;
  if (way != Way::kOneThread) MakePool();
  LoopPlan plan;
  plan.device_share = way == Way::kDevice ? 1 : DeviceShare();
  plan.chunks = settings_.chunks;
  plan.threads = settings_.threads;
  if (plan.device_share >= 1 && way != Way::kOneThread && settings_.mode != PartitionMode::kCheck) {
    if (RunResident(call, work, BlockShape(), loop)) return true;
    plan.device_share = 0;
  }
  StoreResident();
  if (way == Way::kOneThread) {
    RunAlone(call, of_loop, loop);
    return true;
  }
  if (plan.device_share <= 0 && settings_.mode != PartitionMode::kCheck) {
    RunOnThreads(call, of_loop, loop);
    return true;
  }
  return RunPartitioned(call, plan, loop);
}

// A loop that is not worth a call, between others of an episode. Where there are many the episode ends, as
// each of them would take longer.
bool Partitioner::RunSmall(const LoopCall& call) {
  constexpr int kMostSmallLoops = 4;
  if (++small_loops_ > kMostSmallLoops) {
    CloseEpisode();
    return false;
  }
  episode_.Meet(whole_);
  call.site.body(call.first, call.last, call.context);
  return true;
}

// Threads run the loop, in parts where it is long: as soon as a device is there that is faster it does what
// is left. Some of the loop may have run before, so nothing is thrown.
void Partitioner::RunOnThreads(LoopCall call, const LoopWork& of_loop, LoopRecord& loop) noexcept {
  try {
    MakePool();
  } catch (const std::exception&) {
    call.site.body(call.first, call.last, call.context);
    return;
  }
  const double threads = pool_->threads();
  bool may_leave = settings_.mode == PartitionMode::kAuto && DeviceIsWay(call);
  double seconds_per_work = loop.ways.HostSecondsAtBest(1, pool_->threads());
  while (call.first < call.last) {
    const double work = of_loop.Of(call.first, call.last), expected = seconds_per_work * work;
    try {
      if (may_leave && DeviceTakesRest(call, work, expected, loop)) {
        // Where it fails it is not tried again.
        may_leave = false;
        if (RunResident(call, work, BlockShape(), loop)) return;
        StoreResident();
      }
    } catch (const std::exception&) {
      may_leave = false;
    }
    LoopCall part = call;
    // Iterations may take longer than was thought: no part is most of what is left, but of a loop that is
    // known to be short.
    if (may_leave && (expected > 2 * Ways::kLongSeconds || !loop.ways.IsKnown(Way::kThreads))) {
      const double wanted = Ways::kLongSeconds / (seconds_per_work * of_loop.Of(call.first, call.first + 1));
      const double iterations = static_cast<double>(call.iterations());
      part.last =
          call.first + static_cast<int64_t>(std::clamp(std::min(wanted, iterations / 8),
                                                       std::min(2 * threads, iterations), iterations));
    }
    const auto start = std::chrono::steady_clock::now();
    HostRun(part, *pool_).Finish();
    const double seconds = SecondsSince(start), of_part = of_loop.Of(part.first, part.last);
    SawThreads(of_part, seconds, loop);
    seconds_per_work = seconds / std::max(of_part, 1.0);
    call.first = part.last;
  }
}

// A device is worth its beginning where the rest takes threads longer than that, which save as much
// meanwhile.
bool Partitioner::DeviceTakesRest(const LoopCall& call, double work, double expected, LoopRecord& loop) {
  if (owner_ == nullptr) {
    OpenEpisode(loop);
    episode_.Meet(whole_);
  }
  if (!episode_.IsWorthCopies(expected - loop.ways.Seconds(Way::kDevice, work), first_of_episode_->episodes,
                              bytes_per_second_))
    return false;
  const double saving = loop.ways.Seconds(Way::kOneThread, work) - expected;
  FindDevice(call.site, has_device_begun_ || (expected > settings_.device_seconds &&
                                              HasEarned(settings_.device_seconds - std::max(0.0, saving))));
  return device_ != nullptr && whole_.Find(call.site, call.facts, call.first, call.last);
}

void Partitioner::SawThreads(double work, double seconds, LoopRecord& loop) {
  saved_seconds_ += loop.ways.Seconds(Way::kOneThread, work) - seconds;
  loop.ways.Saw(Way::kThreads, work, seconds);
  loop.threads = pool_->threads();
}

// A part on the device may be best for a loop that copies its arrays in each call, alone in its episodes.
bool Partitioner::CopiesInEachCall(const LoopRecord& loop) const {
  constexpr double kMostCalls = 1.5;
  return first_of_episode_ == &loop && loop.episodes.calls > 0 && loop.episodes.calls < kMostCalls;
}

bool Partitioner::RunTuned(const LoopCall& call, double work, Way known, LoopRecord& loop) {
  constexpr double kLeastSeconds = 200e-6;  // the tuner takes some millionths
  if (settings_.split.has_value() || IsResident() ||
      (!loop.ways.IsHostKnown(settings_.threads > 1) && known != Way::kDevice) ||
      loop.ways.HostSeconds(work) < kLeastSeconds || (known == Way::kDevice && !CopiesInEachCall(loop)))
    return false;
  if (settings_.tuner && !has_tuner_begun_ && HasEarned(settings_.tuner_seconds)) {
    has_tuner_begun_ = has_threads_ = true;
    saved_seconds_ -= settings_.tuner_seconds;
    tuner_start_.Begin();
  }
  MakePool();
  const LoopSpace space{
      settings_.threads,
      device_ != nullptr && DeviceIsWay(call) && CopiesInEachCall(loop) && device_->CanRun(call.site),
      call.site.has_columns != 0};
  LoopTuner* const tuner = has_tuner_begun_ ? tuner_start_.Get() : nullptr;
  LoopPlan plan;
  plan.device_share = known == Way::kDevice ? 1 : 0;
  plan.threads = known == Way::kOneThread ? 1 : settings_.threads;
  const int size_class = SizeClassOf(work);
  const auto learned = loop.learned_plans.find(size_class);
  const bool is_learned = learned != loop.learned_plans.end();
  if (is_learned) plan = learned->second;
  if (tuner != nullptr) {
    LoopPlan& in_force = loop.plans.try_emplace(size_class, plan).first->second;
    plan = tuner->Next(loop.key, call.iterations(), work, plan, space);
    if (!tuner->IsTrial()) in_force = plan;
  } else if (!is_learned || plan.threads > settings_.threads ||
             (plan.device_share > 0 && !space.has_device)) {
    return false;
  }
  const auto start = std::chrono::steady_clock::now();
  const bool is_done = RunPlan(call, work, plan, loop);
  const double seconds = SecondsSince(start);
  if (tuner != nullptr && is_done) tuner->Done(seconds);
  if (tuner != nullptr && !is_done) tuner->Failed();
  return true;
}

// Returns false where the host had to do the device's part.
bool Partitioner::RunPlan(const LoopCall& call, double work, const LoopPlan& plan, LoopRecord& loop) {
  LoopPlan on_host = plan;
  if (plan.device_share >= 1) {
    if (RunResident(call, work, BlockShape{plan.block_x, plan.block_y}, loop)) {
      CloseEpisode();
      return true;
    }
    StoreResident();
    on_host.device_share = 0;
    on_host.threads = settings_.threads;
  }
  const auto start = std::chrono::steady_clock::now();
  const double on_device = loop.device_iterations;
  if (on_host.device_share <= 0 && on_host.threads <= 1) {
    call.site.body(call.first, call.last, call.context);
  } else {
    RunPartitioned(call, on_host, loop);
  }
  const double seconds = SecondsSince(start);
  if (on_host.device_share <= 0 && on_host.threads <= 1) loop.ways.Saw(Way::kOneThread, work, seconds);
  if (on_host.device_share <= 0 && on_host.threads == settings_.threads) SawThreads(work, seconds, loop);
  return plan.device_share <= 0 || loop.device_iterations > on_device;
}

bool Partitioner::RunResident(const LoopCall& call, double work, BlockShape block, LoopRecord& loop) {
  if (!DeviceCanRun(call, loop)) return false;
  if (resident_ == nullptr) resident_ = std::make_unique<ResidentArrays>(*device_, *pool_);
  const bool was_resident = IsResident();
  const double bytes = static_cast<double>(resident_->BytesToCopy(whole_));
  OpenEpisode(loop);
  last_on_device_ = &loop;
  const ResidentArrays::Result result = resident_->Run(call, whole_, block);
  episode_.Copied(result.copied_seconds, was_resident);
  if (result.reason.has_value()) {
    loop.Count(*result.reason);
    return false;
  }
  constexpr double kManyBytes = 1 << 20;
  if (bytes >= kManyBytes) {
    // The first copy has to make memory to go through.
    if (has_copied_) bytes_per_second_ += (bytes / result.copied_seconds - bytes_per_second_) / 4;
    has_copied_ = true;
  }
  loop.ways.Saw(Way::kDevice, work, result.ran_seconds);
  const double seconds = result.copied_seconds + result.ran_seconds;
  saved_seconds_ += loop.ways.Seconds(Way::kOneThread, work) - seconds;
  loop.device_saved += loop.ways.HostSecondsAtBest(work, settings_.threads) - seconds;
  loop.device_iterations = loop.device_iterations + static_cast<double>(call.iterations());
  if (call.site.may_stay == 0) CloseEpisode();
  return true;
}

// On one thread, until the loops have earned threads, or it is known how long that takes: threads do what is
// left of a long loop then.
void Partitioner::RunAlone(const LoopCall& call, const LoopWork& of_loop, LoopRecord& loop) {
  const double expected = loop.ways.Seconds(Way::kOneThread, of_loop.Of(call.first, call.last));
  const bool is_known = loop.ways.IsKnown(Way::kOneThread);
  const bool may_leave = settings_.mode == PartitionMode::kAuto && settings_.threads > 1;
  double most_seconds =
      seconds_ < settings_.earned_seconds ? settings_.earned_seconds - seconds_ : Ways::kLongSeconds;
  if (is_known) most_seconds = std::max(most_seconds, 1.5 * expected + Ways::kLongSeconds);
  // Parts become longer, as nobody knows how long an iteration takes.
  constexpr int64_t kParts = 8;
  const bool is_short = is_known && expected < Ways::kLongSeconds / kParts;
  int64_t part = !may_leave || is_short ? call.iterations()
                 : is_known             ? (call.iterations() + kParts - 1) / kParts
                                        : 1;
  const auto start = std::chrono::steady_clock::now();
  LoopCall rest = call;
  double alone = 0;
  while (rest.first < rest.last && (rest.first == call.first || alone < most_seconds)) {
    const int64_t end = rest.first + std::min(part, rest.iterations());
    call.site.body(rest.first, end, call.context);
    const double now = SecondsSince(start);
    if (now - alone < most_seconds / kParts) part = std::min(2 * part, call.iterations());
    alone = now;
    rest.first = end;
  }
  const double done = of_loop.Of(call.first, rest.first);
  if (is_known && rest.first < rest.last) {
    loop.ways.Exceeded(Way::kOneThread, done, alone);
  } else {
    loop.ways.Saw(Way::kOneThread, done, alone);
  }
  if (rest.first < rest.last) RunOnThreads(rest, of_loop, loop);
}

void Partitioner::MakePool() {
  if (pool_ != nullptr) return;
  pool_ = std::make_unique<HostPool>(settings_.threads);
  has_threads_ = true;
}

// No program pays for threads, or a driver, before its loops have taken long enough to earn them.
Way Partitioner::ChooseWay(const LoopCall& call, double work, LoopRecord& loop) {
  if (settings_.mode != PartitionMode::kAuto) {
    FindDevice(call.site, DeviceShare() > 0);
    return Way::kThreads;
  }
  if (seconds_ < settings_.earned_seconds && !loop.has_learned) return Way::kOneThread;
  // A loop whose share is set has it with threads. Otherwise the device is a way of its own.
  const bool is_set = DeviceShare() > 0;
  if (is_set) FindDevice(call.site, true);
  if (DeviceIsWay(call)) {
    OpenEpisode(loop);
    episode_.Meet(whole_);
    const bool is_faster = DeviceIsFaster(work, loop);
    episode_.Saves(DeviceSaves(work, loop), IsResident());
    FindDevice(call.site, is_faster && (has_device_begun_ || HasEarned(settings_.device_seconds)));
    if (is_faster && device_ != nullptr) return Way::kDevice;
  }
  return loop.ways.Next(settings_.threads > 1 || (is_set && device_ != nullptr));
}

// A program that ends while a device begins has to wait for it. That takes no more than what threads have
// saved before, or than what nobody notices.
bool Partitioner::HasEarned(double seconds) const {
  constexpr double kNoticed = 0.03;
  return saved_seconds_ + kNoticed * seconds_ >= seconds;
}

// The file tells what an earlier process has seen of calls of this size.
void Partitioner::Learn(double work, LoopRecord& loop) {
  const int size_class = SizeClassOf(work);
  if (loop.classes.test(static_cast<size_t>(size_class))) return;
  loop.classes.set(static_cast<size_t>(size_class));
  const LearnedLoop* const known = learned_.Find({loop.key, loop.shape}, size_class);
  if (known == nullptr) return;
  if (known->plan.has_value()) loop.learned_plans.emplace(size_class, *known->plan);
  if (std::exchange(loop.has_learned, true)) return;
  loop.ways.Learn(known->one_thread, known->threads, known->device);
  loop.episodes = known->episodes;
  saved_seconds_ += std::max(0.0, known->device_saved);
}

void Partitioner::NoteLearned() {
  // Shorter programs need nothing to be known.
  if (settings_.learned_path.empty() || (seconds_ < 10 * settings_.earned_seconds && !has_device_begun_))
    return;
  loops_.ForEach([this](LoopRecord& loop) {
    LearnedLoop learned;
    learned.one_thread = loop.ways.Seconds(Way::kOneThread, 1);
    learned.threads = loop.ways.Seconds(Way::kThreads, 1);
    learned.device = loop.ways.Seconds(Way::kDevice, 1);
    learned.episodes = loop.episodes;
    learned.device_saved = loop.device_saved;
    for (int size_class = 0; size_class < kSizeClasses; ++size_class) {
      if (!loop.classes.test(static_cast<size_t>(size_class))) continue;
      learned.plan.reset();
      for (const auto* plans : {&loop.learned_plans, &loop.plans})
        if (const auto plan = plans->find(size_class); plan != plans->end()) learned.plan = plan->second;
      learned_.Note({loop.key, loop.shape}, size_class, learned);
    }
  });
}

void Partitioner::End() {
  if (GoInside()) {
    NoteLearned();
    GoOutside();
  }
  tuner_start_.End();
  learned_.Save();
  start_.End();
}

// A device of which nothing is known yet is taken to need no time: so it is tried.
double Partitioner::DeviceSaves(double work, const LoopRecord& loop) const {
  if (!loop.ways.IsKnown(Way::kOneThread)) return 0;
  return loop.ways.HostSecondsAtBest(work, settings_.threads) - loop.ways.Seconds(Way::kDevice, work);
}

bool Partitioner::DeviceIsFaster(double work, const LoopRecord& loop) const {
  const double saving = DeviceSaves(work, loop);
  // To leave the device is to copy all of it, and to come back again.
  if (IsResident()) return !episode_.HasLost(2 * static_cast<double>(resident_->Bytes()) / bytes_per_second_);
  if (!loop.ways.IsKnown(Way::kOneThread) ||
      (!loop.ways.IsHostKnown(settings_.threads > 1) && loop.ways.Seconds(Way::kDevice, work) == 0))
    return false;
  return episode_.IsWorthCopies(saving, first_of_episode_->episodes, bytes_per_second_);
}

bool Partitioner::DeviceIsWay(const LoopCall& call) const {
  if (has_no_device_ || (device_ != nullptr && device_->IsLost())) return false;
  if (settings_.split.has_value() || settings_.device == PartitionDeviceKind::kSimulated ||
      call.site.kernel == nullptr)
    return false;
  return std::none_of(whole_.arrays().begin(), whole_.arrays().end(),
                      [](const ArrayRange& array) { return array.is_unbounded; });
}

double Partitioner::DeviceShare() const {
  if (settings_.mode == PartitionMode::kHost) return 0;
  return settings_.split.value_or(settings_.mode == PartitionMode::kAuto ? 0 : 0.5);
}

std::unique_ptr<PartitionDevice> Partitioner::MakeCudaDevice() {
  const CudaDriver* const driver = LoadCudaDriver();
  return driver == nullptr ? nullptr : CudaDevice::Make(*driver);
}

// In kAuto a driver has to be earned, as threads have, and loops do not wait for it.
void Partitioner::FindDevice(const fusion_partition_site& site, bool is_wanted) {
  if (device_ != nullptr || settings_.device == PartitionDeviceKind::kSimulated || !is_wanted) return;
  const bool is_auto = settings_.mode == PartitionMode::kAuto;
  has_threads_ = true;
  if (!std::exchange(has_device_begun_, true)) saved_seconds_ -= settings_.device_seconds;
  // The driver compiles the loop's file first. The program may unload the file meanwhile: this is a copy.
  struct Copy {
    explicit Copy(const fusion_partition_site& loop)
        : site(loop), file(loop.file), code(loop.device_code), kernel(loop.kernel) {
      site.file = file.c_str();
      site.device_code = code.c_str();
      site.kernel = kernel.c_str();
    }
    fusion_partition_site site;
    const std::string file, code, kernel;
  };
  start_.Begin([this, make = make_,
                copy = site.kernel == nullptr || site.device_code == nullptr ? nullptr
                                                                             : std::make_shared<Copy>(site)] {
    std::unique_ptr<PartitionDevice> device = make();
    if (device != nullptr && copy != nullptr && !start_.IsEnding()) device->CanRun(copy->site);
    return device;
  });
  if (!is_auto) start_.Wait();
  // Once it is done, it is done for ever.
  const bool is_done = start_.IsDone();
  device_ = start_.Take();
  has_no_device_ = is_done && device_ == nullptr;
}

bool Partitioner::DeviceCanRun(const LoopCall& call, LoopRecord& loop) {
  const auto refuse = [&loop](PartitionReason reason) {
    loop.Count(reason);
    return false;
  };
  if (call.site.sums != 0 || HasPrivateArrays(call.site)) return refuse(PartitionReason::kNoKernel);
  if (device_ == nullptr) {
    if (settings_.mode == PartitionMode::kDevice && !has_complained_)
      std::fputs("fusion: FUSION_PARTITION=device, but there is no device: loops run on the host's threads\n",
                 stderr);
    has_complained_ = true;
    return false;
  }
  // Kernels compute as a thread does for which nothing was set.
  if (RoundingOfThread() != kDefaultRounding) return false;
  for (const ArrayRange& array : whole_.arrays())
    if (array.is_unbounded) return refuse(PartitionReason::kUnbounded);
  if (device_->IsLost()) return refuse(PartitionReason::kFault);
  if (!device_->CanRun(call.site))
    return refuse(device_->IsLost() ? PartitionReason::kFault : PartitionReason::kNoKernel);
  return true;
}

bool Partitioner::RunPartitioned(const LoopCall& call, const LoopPlan& plan, LoopRecord& loop) {
  std::unique_ptr<SequentialCheck> check;
  if (settings_.mode == PartitionMode::kCheck) {
    check = std::make_unique<SequentialCheck>(call, whole_);
    if (const auto reason = check->Prepare()) {
      loop.Count(*reason);
      return false;
    }
  }
  int64_t device_iterations = IterationsOf(plan.device_share, call.iterations());
  if (device_iterations > 0 && !DeviceCanRun(call, loop)) device_iterations = 0;
  const SplitResult result = RunSplit(call, device_iterations, plan, device_.get(), *pool_);
  loop.threads = std::max<int>(loop.threads, std::min(plan.threads, pool_->threads()));
  if (result.reason.has_value()) loop.Count(*result.reason);
  loop.device_iterations = loop.device_iterations + static_cast<double>(result.device_iterations);
  if (check == nullptr || check->Agrees()) return true;
  check->Restore();
  loop.is_off = true;
  loop.Count(PartitionReason::kWrong);
  std::fprintf(stderr,
               "fusion: %s %s: the partitioned loop's results were wrong; it runs as written from now on\n",
               loop.key.place.c_str(), loop.key.function.c_str());
  return false;
}

}  // namespace fusion
