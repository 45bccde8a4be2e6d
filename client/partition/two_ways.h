// One thread or several: what a loop runs on, by what was measured.
#pragma once

#include <cstdint>

namespace fusion {

// First each way is tried a few times; then the faster one is used, and the other is tried now and then.
class TwoWays {
 public:
  static constexpr int kFirstTries = 3;
  static constexpr int kCallsBetweenTries = 64;

  // Returns true when several threads are to run the next call.
  bool NextIsSeveral() {
    if (one_.calls < kFirstTries) return false;
    if (several_.calls < kFirstTries) return true;
    const bool several_faster = several_.seconds_per_work < one_.seconds_per_work;
    return ++calls_ % kCallsBetweenTries == 0 ? !several_faster : several_faster;
  }
  void Saw(bool several, double work, double seconds) {
    Way& way = several ? several_ : one_;
    const double rate = seconds / (work > 1 ? work : 1);
    // A new call counts a quarter, so a loop that changes is followed; of the first calls the fastest counts,
    // as they find caches cold.
    if (way.calls == 0 || (way.calls < kFirstTries && rate < way.seconds_per_work)) {
      way.seconds_per_work = rate;
    } else if (way.calls >= kFirstTries) {
      way.seconds_per_work += (rate - way.seconds_per_work) / 4;
    }
    if (way.calls < kFirstTries) ++way.calls;
  }

 private:
  struct Way {
    int calls = 0;  // up to kFirstTries
    double seconds_per_work = 0;
  };
  Way one_, several_;
  int64_t calls_ = 0;
};

}  // namespace fusion
