#include "client/partition/partitioner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <utility>

#include "client/partition/check.h"
#include "client/partition/cuda_device.h"
#include "client/partition/simulated_device.h"

namespace fusion {
namespace {

int64_t IterationsOf(double share, int64_t iterations) {
  if (share >= 1) return iterations;
  return std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(iterations) + 0.5), 0,
                             iterations);
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Partitioner::Partitioner(const PartitionSettings& settings, DeviceStart::Make make)
    : settings_(settings), make_(std::move(make)) {
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
  // In a child that was forked while another thread was inside this stays so for ever.
  if (inside_.exchange(true, std::memory_order_acquire)) {
    loop->Count(PartitionReason::kBusy);
    return 0;
  }
  bool done = false;
  try {
    done = RunInside(LoopCall{*site, iterations, context, facts}, work, *loop);
  } catch (const std::exception&) {
    loop->Count(PartitionReason::kNoMemory);
  }
  inside_.store(false, std::memory_order_release);
  return done ? 1 : 0;
}

bool Partitioner::RunInside(const LoopCall& call, double work, LoopRecord& loop) {
  const auto refuse = [&loop](PartitionReason reason) {
    loop.Count(reason);
    return false;
  };
  if (start_.IsLost() || (pool_ != nullptr && pool_->IsLost())) return refuse(PartitionReason::kForked);
  if (pool_ != nullptr && !pool_->ComputesAsHere()) return refuse(PartitionReason::kRounding);
  if (!whole_.Find(call.site, call.facts, 0, call.iterations)) return refuse(PartitionReason::kRanges);
  if (PairsMeet(call.site, whole_.arrays())) return refuse(PartitionReason::kOverlap);

  const Way way = ChooseWay(call, work, loop);
  const bool one_thread = way == Way::kOneThread;
  if (!one_thread) MakePool();
  const auto start = std::chrono::steady_clock::now();
  if (one_thread) {
    RunAlone(call, work, loop);
  } else if (!RunPartitioned(call, way == Way::kDevice ? 1 : DeviceShare(), loop)) {
    return false;
  }
  const double seconds = SecondsSince(start);
  seconds_ += seconds;
  if (!one_thread) {
    loop.ways.Saw(way, work, seconds);
    loop.threads = pool_->threads();
  }
  loop.calls = loop.calls + 1;
  loop.iterations = loop.iterations + static_cast<double>(call.iterations);
  loop.seconds = loop.seconds + seconds;
  return true;
}

// On one thread, until the loops have earned threads, or it is known how long that takes: threads do what is
// left of a long loop then.
void Partitioner::RunAlone(const LoopCall& call, double work, LoopRecord& loop) {
  const bool is_known = loop.ways.IsKnown(Way::kOneThread);
  double most_seconds = std::numeric_limits<double>::infinity();
  if (settings_.mode == PartitionMode::kAuto && settings_.threads > 1) {
    if (seconds_ < settings_.earned_seconds) {
      most_seconds = settings_.earned_seconds - seconds_;
    } else if (is_known) {
      // Iterations may differ: what the first of them took says little of a triangle.
      most_seconds = 1.5 * loop.ways.Seconds(Way::kOneThread, work) + Ways::kLongSeconds;
    } else {
      most_seconds = Ways::kLongSeconds;
    }
  }
  constexpr int64_t kParts = 64;
  const int64_t parts = std::isinf(most_seconds) ? 1 : std::min(kParts, call.iterations);
  const auto start = std::chrono::steady_clock::now();
  const auto share = [&call](int64_t iterations) {
    return static_cast<double>(iterations) / static_cast<double>(call.iterations);
  };
  int64_t next = 0;
  for (int64_t part = 1; part <= parts && (part == 1 || SecondsSince(start) < most_seconds); ++part) {
    const int64_t end = IterationsOf(static_cast<double>(part) / static_cast<double>(parts), call.iterations);
    if (next < end) call.site.body(next, end, call.context);
    next = end;
  }
  const double alone = SecondsSince(start);
  if (is_known && next < call.iterations) {
    loop.ways.Exceeded(Way::kOneThread, work * share(next), alone);
  } else {
    loop.ways.Saw(Way::kOneThread, work * share(next), alone);
  }
  if (next == call.iterations) return;
  MakePool();
  pool_->Begin(call.site.body, call.context, next, call.iterations);
  pool_->Finish();
  loop.ways.Saw(Way::kThreads, work * (1 - share(next)), SecondsSince(start) - alone);
  loop.threads = pool_->threads();
}

void Partitioner::MakePool() {
  if (pool_ != nullptr) return;
  pool_ = std::make_unique<HostPool>(settings_.threads);
  has_threads_ = true;
}

// No program pays for threads, or a driver, before its loops have taken long enough to earn them.
Way Partitioner::ChooseWay(const LoopCall& call, double work, LoopRecord& loop) {
  if (settings_.mode != PartitionMode::kAuto) {
    FindDevice(DeviceShare() > 0);
    return Way::kThreads;
  }
  if (seconds_ < settings_.earned_seconds) return Way::kOneThread;
  // A loop whose share is set has it with threads. Otherwise the device is a way of its own, for loops that
  // have taken long themselves: the driver compiles their kernels first.
  const bool is_set = DeviceShare() > 0;
  const bool may_win = !settings_.split.has_value() && loop.seconds >= settings_.earned_seconds &&
                       DeviceMayWin(call, work, loop);
  FindDevice(is_set || may_win);
  return loop.ways.Next(settings_.threads > 1 || (is_set && device_ != nullptr),
                        may_win && device_ != nullptr);
}

bool Partitioner::DeviceMayWin(const LoopCall& call, double work, const LoopRecord& loop) const {
  if (settings_.device == PartitionDeviceKind::kSimulated || call.site.kernel == nullptr) return false;
  constexpr double kBytesPerSecond =
      12e9;  // of memory that is not pinned, over PCIe 4.0 and 5.0: rather more than less
  constexpr double kSecondsPerCall = 50e-6;
  double bytes = 0;
  for (const ArrayRange& array : whole_.arrays()) {
    if (array.is_unbounded) return false;
    bytes += static_cast<double>(array.read.bytes() + array.written.bytes());
  }
  return bytes / kBytesPerSecond + kSecondsPerCall < loop.ways.HostSeconds(work);
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
void Partitioner::FindDevice(bool is_wanted) {
  if (device_ != nullptr || settings_.device == PartitionDeviceKind::kSimulated || !is_wanted) return;
  const bool is_auto = settings_.mode == PartitionMode::kAuto;
  has_threads_ = true;
  start_.Begin(make_);
  if (!is_auto) start_.Wait();
  device_ = start_.Take();
}

int64_t Partitioner::DeviceIterations(const LoopCall& call, double share, LoopRecord& loop) {
  const int64_t iterations = IterationsOf(share, call.iterations);
  if (iterations == 0) return 0;
  const auto refuse = [&loop](PartitionReason reason) {
    loop.Count(reason);
    return 0;
  };
  if (call.site.sums != 0) return refuse(PartitionReason::kNoKernel);
  if (device_ == nullptr) {
    if (settings_.mode == PartitionMode::kDevice && !has_complained_)
      std::fputs("fusion: FUSION_PARTITION=device, but there is no device: loops run on the host's threads\n",
                 stderr);
    has_complained_ = true;
    return 0;
  }
  // Kernels compute as a thread does for which nothing was set.
  if (RoundingOfThread() != kDefaultRounding) return 0;
  for (const ArrayRange& array : whole_.arrays())
    if (array.is_unbounded) return refuse(PartitionReason::kUnbounded);
  if (device_->IsLost()) return refuse(PartitionReason::kFault);
  if (!device_->CanRun(call.site))
    return refuse(device_->IsLost() ? PartitionReason::kFault : PartitionReason::kNoKernel);
  return iterations;
}

bool Partitioner::RunPartitioned(const LoopCall& call, double share, LoopRecord& loop) {
  std::unique_ptr<SequentialCheck> check;
  if (settings_.mode == PartitionMode::kCheck) {
    check = std::make_unique<SequentialCheck>(call, whole_);
    if (const auto reason = check->Prepare()) {
      loop.Count(*reason);
      return false;
    }
  }
  const SplitResult result =
      RunSplit(call, DeviceIterations(call, share, loop), settings_.chunks, device_.get(), *pool_);
  if (result.reason.has_value()) loop.Count(*result.reason);
  loop.device_iterations = loop.device_iterations + static_cast<double>(result.device_iterations);
  if (check == nullptr || check->Agrees()) return true;
  check->Restore();
  loop.is_off = true;
  loop.Count(PartitionReason::kWrong);
  std::fprintf(stderr,
               "fusion: %s %s: the partitioned loop's results were wrong; it runs as written from now on\n",
               loop.place.c_str(), loop.function.c_str());
  return false;
}

}  // namespace fusion
