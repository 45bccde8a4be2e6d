// The ways in which a loop may run: what was measured decides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace fusion {

enum class Way { kOneThread, kThreads, kDevice };

// First each way that there is is tried a few times; then the fastest one is used. The others are tried
// again, in turn, as often as what they take beyond it is a small share of the loop's time.
class Ways {
 public:
  static constexpr int kFirstTries = 3;
  static constexpr double kLongSeconds = 0.05;
  static constexpr double kShareOfTries = 0.01;  // of each way

  // One thread can always be had.
  Way Next(bool has_threads, bool has_device) {
    const std::array<bool, 3> has = {true, has_threads, has_device};
    size_t best = 0;
    for (size_t way = 0; way < has.size(); ++way) {
      if (!has[way]) continue;
      if (seen_[way].calls < kFirstTries) return static_cast<Way>(way);
      if (seen_[way].seconds_per_work < seen_[best].seconds_per_work) best = way;
    }
    best_ = static_cast<Way>(best);
    for (size_t way = 0; way < has.size(); ++way) {
      const double excess = (seen_[way].seconds_per_work - seen_[best].seconds_per_work) * last_work_;
      if (!has[way] || way == best || seen_[way].credit < excess) continue;
      seen_[way].credit = 0;
      return static_cast<Way>(way);
    }
    return best_;
  }
  // work: instructions, as the compiled program estimates them.
  void Saw(Way way, double work, double seconds) {
    // The first call finds a driver that has yet to compile the kernel.
    if (way == Way::kDevice && !std::exchange(device_is_warm_, true)) return;
    last_work_ = work > 1 ? work : 1;
    Seen& seen = seen_[static_cast<size_t>(way)];
    const double rate = seconds / last_work_;
    // The fastest of the first calls counts, as they find caches cold. A later call counts a quarter, so a
    // loop that changes is followed.
    if (seen.calls == 0 || (seen.calls < kFirstTries && rate < seen.seconds_per_work)) {
      seen.seconds_per_work = rate;
    } else if (seen.calls >= kFirstTries) {
      seen.seconds_per_work += (rate - seen.seconds_per_work) / 4;
    }
    // A long call is no matter of chance.
    if (seen.calls < kFirstTries) seen.calls = seconds >= kLongSeconds ? kFirstTries : seen.calls + 1;
    if (way != best_) return;
    for (Seen& other : seen_) other.credit += kShareOfTries * seconds;
  }

  // Part of a call took much longer than was expected: it counts alone.
  void Exceeded(Way way, double work, double seconds) {
    Seen& seen = seen_[static_cast<size_t>(way)];
    seen.seconds_per_work = std::max(seen.seconds_per_work, seconds / (work > 1 ? work : 1));
  }

  // Returns about how long a call would take.
  double Seconds(Way way, double work) const {
    return seen_[static_cast<size_t>(way)].seconds_per_work * work;
  }
  // The way was tried often enough.
  bool IsKnown(Way way) const { return seen_[static_cast<size_t>(way)].calls >= kFirstTries; }
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
    double credit = 0;  // seconds that a try may take beyond the fastest way
  };
  std::array<Seen, 3> seen_;
  Way best_ = Way::kOneThread;
  bool device_is_warm_ = false;
  double last_work_ = 1;
};

}  // namespace fusion
