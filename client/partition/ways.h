// The ways in which a loop may run: what was measured decides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace fusion {

enum class Way { kOneThread, kThreads, kDevice };

// First each way of the host is tried a few times; then the faster one is used. The other is tried again as
// often as what it takes beyond it is a small share of the loop's time. Whether the device is faster depends
// on where the arrays are, which is not known here.
class Ways {
 public:
  static constexpr int kFirstTries = 3;
  static constexpr double kLongSeconds = 0.05;
  static constexpr double kShareOfTries = 0.01;

  // Returns a way of the host. One thread can always be had.
  Way Next(bool has_threads) {
    const Seen &one = Of(Way::kOneThread), &threads = Of(Way::kThreads);
    if (!IsKnown(Way::kOneThread) || !has_threads) return best_ = Way::kOneThread;
    if (!IsKnown(Way::kThreads)) return Way::kThreads;
    best_ = threads.seconds_per_work < one.seconds_per_work ? Way::kThreads : Way::kOneThread;
    const Way other = best_ == Way::kThreads ? Way::kOneThread : Way::kThreads;
    const double excess = (Of(other).seconds_per_work - Of(best_).seconds_per_work) * last_work_;
    if (credit_ < excess) return best_;
    credit_ = 0;
    return other;
  }
  // work: instructions, as the compiled program estimates them.
  void Saw(Way way, double work, double seconds) {
    // The first call finds a driver that has yet to compile the kernel.
    if (way == Way::kDevice && !std::exchange(device_is_warm_, true)) return;
    if (way != Way::kDevice) last_work_ = work > 1 ? work : 1;
    Seen& seen = seen_[static_cast<size_t>(way)];
    const double rate = seconds / (work > 1 ? work : 1);
    // The fastest of the first calls counts, as they find caches cold. A later call counts a quarter, so a
    // loop that changes is followed.
    if (seen.calls == 0 || (seen.calls < kFirstTries && rate < seen.seconds_per_work)) {
      seen.seconds_per_work = rate;
    } else if (seen.calls >= kFirstTries) {
      seen.seconds_per_work += (rate - seen.seconds_per_work) / 4;
    }
    // A long call is no matter of chance.
    if (seen.calls < kFirstTries) seen.calls = seconds >= kLongSeconds ? kFirstTries : seen.calls + 1;
    if (way == best_) credit_ += kShareOfTries * seconds;
  }

  // An earlier process has seen these, in seconds per instruction; 0: it has not.
  void Learn(double one_thread, double threads, double device) {
    const double learned[] = {one_thread, threads, device};
    for (size_t way = 0; way < seen_.size(); ++way)
      if (learned[way] > 0 && seen_[way].calls == 0) seen_[way] = {kFirstTries, learned[way]};
    device_is_warm_ = false;
  }
  // Part of a call took much longer than was expected: it counts alone.
  void Exceeded(Way way, double work, double seconds) {
    Seen& seen = seen_[static_cast<size_t>(way)];
    seen.seconds_per_work = std::max(seen.seconds_per_work, seconds / (work > 1 ? work : 1));
  }

  // Returns about how long a call would take, on the device without copies; 0 where it is not known.
  double Seconds(Way way, double work) const { return Of(way).seconds_per_work * work; }
  // The way was tried often enough.
  bool IsKnown(Way way) const { return Of(way).calls >= kFirstTries; }
  bool IsHostKnown(bool has_threads) const {
    return IsKnown(Way::kOneThread) && (!has_threads || IsKnown(Way::kThreads));
  }
  // Returns about how long a call would take on the host at best: where so many threads were not seen yet, as
  // if each of them were as fast as one alone.
  double HostSecondsAtBest(double work, int threads) const {
    const double alone = Seconds(Way::kOneThread, work);
    return threads > 1 && !IsKnown(Way::kThreads) ? alone / threads : HostSeconds(work);
  }
  // Returns about how long a call would take without a device, 0 where none was seen.
  double HostSeconds(double work) const {
    const Seen &one = seen_[0], &threads = seen_[1];
    if (one.calls == 0 && threads.calls == 0) return 0;
    const bool use_threads =
        one.calls == 0 || (threads.calls > 0 && threads.seconds_per_work < one.seconds_per_work);
    return (use_threads ? threads : one).seconds_per_work * work;
  }

 private:
  struct Seen {
    int calls = 0;  // up to kFirstTries
    double seconds_per_work = 0;
  };
  const Seen& Of(Way way) const { return seen_[static_cast<size_t>(way)]; }

  std::array<Seen, 3> seen_;
  Way best_ = Way::kOneThread;
  bool device_is_warm_ = false;
  double last_work_ = 1;
  double credit_ = 0;  // seconds that a try may take beyond the faster way
};

}  // namespace fusion
