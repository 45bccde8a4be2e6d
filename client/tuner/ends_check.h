// The check tells whether what a search has found is really faster than the host alone and the device alone.
// A search in noise may have tried the ends once, in a bad moment; here they run in turn with what was found,
// so that drift and other programs touch all alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace fusion {

// C++17. Rivals are numbered from 1, what was found is 0. The caller calls Next, then Add of the same, until
// decided.
class EndsCheck {
 public:
  static constexpr size_t kFound = 0;

  // takes_part[i]: whether rival i + 1 is compared.
  explicit EndsCheck(const std::vector<bool>& takes_part) : alive_{true}, seconds_(takes_part.size() + 1) {
    alive_.insert(alive_.end(), takes_part.begin(), takes_part.end());
  }

  size_t Next() const {
    size_t next = kFound;
    for (size_t each = 0; each < alive_.size(); ++each) {
      if (alive_[each] && seconds_[each].size() < seconds_[next].size()) next = each;
    }
    return next;
  }
  void Add(size_t which, double seconds) {
    seconds_[which].push_back(seconds);
    // A rival that is far away costs few runs.
    for (size_t rival = 1; rival < alive_.size(); ++rival) {
      if (!Seen(rival, kFirst) || !Seen(kFound, kFirst)) continue;
      const bool few = !Seen(rival, kFew) || !Seen(kFound, kFew);
      const double far = (few ? kFar : kNotNear) * Median(kFound);
      if (*std::min_element(seconds_[rival].begin(), seconds_[rival].end()) > far) alive_[rival] = false;
    }
    decided_ = true;
    bool rivals = false;
    for (size_t each = 0; each < alive_.size(); ++each) {
      if (alive_[each] && !Seen(each, kAll)) decided_ = false;
      rivals = rivals || (each != kFound && alive_[each]);
    }
    if (!rivals) decided_ = true;
    if (!decided_) return;
    double best = Median(kFound) * kLeastGain;
    for (size_t rival = 1; rival < alive_.size(); ++rival) {
      if (!alive_[rival] || Median(rival) >= best) continue;
      best = Median(rival);
      winner_ = rival;
    }
  }
  bool decided() const { return decided_; }
  size_t winner() const { return winner_; }

 private:
  // Evidence is so many runs, and of short ones as many more as last so long, or `most`: what disturbs a
  // program, the end of the search among it, may last longer than a few short runs do.
  struct Evidence {
    size_t runs;
    double seconds;
    size_t most;
  };
  static constexpr Evidence kFirst{2, 2e-3, 20}, kFew{4, 10e-3, 40}, kAll{9, 50e-3, 200};
  static constexpr double kFar = 1.3, kNotNear = 1.05;
  static constexpr double kLeastGain = 0.99;  // a smaller gain may be chance

  bool Seen(size_t which, const Evidence& wanted) const {
    const std::vector<double>& runs = seconds_[which];
    return runs.size() >= wanted.runs &&
           (runs.size() >= wanted.most || std::accumulate(runs.begin(), runs.end(), 0.0) >= wanted.seconds);
  }
  double Median(size_t which) const {
    std::vector<double> sorted = seconds_[which];
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

  std::vector<bool> alive_;
  std::vector<std::vector<double>> seconds_;
  bool decided_ = false;
  size_t winner_ = kFound;
};

}  // namespace fusion
