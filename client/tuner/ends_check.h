// Whether what a search has found is really faster than the host alone and the device alone. A search in
// noise may have tried the ends once, in a bad moment; here they run in turn with what was found, so that
// drift and other programs touch all alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fusion {

// C++17. Next, then Add of the same kind, until decided.
class EndsCheck {
 public:
  enum Kind { kFound, kHostAlone, kDeviceAlone };

  EndsCheck(bool check_host, bool check_device) : alive_{true, check_host, check_device} {}

  Kind Next() const {
    size_t next = kFound;
    for (size_t kind = 0; kind < 3; ++kind) {
      if (alive_[kind] && seconds_[kind].size() < seconds_[next].size()) next = kind;
    }
    return static_cast<Kind>(next);
  }
  void Add(Kind kind, double seconds) {
    seconds_[kind].push_back(seconds);
    // An end that is far away costs two runs.
    for (size_t end : {kHostAlone, kDeviceAlone}) {
      if (seconds_[end].size() >= 2 && seconds_[kFound].size() >= 2 &&
          *std::min_element(seconds_[end].begin(), seconds_[end].end()) > kFar * Median(kFound)) {
        alive_[end] = false;
      }
    }
    decided_ = true;
    for (size_t each = 0; each < 3; ++each) {
      if (alive_[each] && seconds_[each].size() < kRuns) decided_ = false;
    }
    if (!alive_[kHostAlone] && !alive_[kDeviceAlone]) decided_ = true;
    if (!decided_) return;
    double best = Median(kFound) * kLeastGain;
    for (Kind end : {kHostAlone, kDeviceAlone}) {
      if (!alive_[end] || Median(end) >= best) continue;
      best = Median(end);
      winner_ = end;
    }
  }
  bool decided() const { return decided_; }
  Kind winner() const { return winner_; }

 private:
  static constexpr size_t kRuns = 9;
  static constexpr double kFar = 1.3;
  static constexpr double kLeastGain = 0.99;  // what is less may be chance

  double Median(size_t kind) const {
    std::vector<double> sorted = seconds_[kind];
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

  bool alive_[3];
  std::vector<double> seconds_[3];
  bool decided_ = false;
  Kind winner_ = kFound;
};

}  // namespace fusion
