// Whether what a search has found is really faster than the host alone and the device alone. A search in
// noise may have tried the ends once, in a bad moment; here they run in turn with what was found, so that
// drift and other programs touch all alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fusion {

// C++17. Rivals are numbered from 1, what was found is 0. Next, then Add of the same, until decided.
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
      const size_t runs = std::min(seconds_[rival].size(), seconds_[kFound].size());
      if (runs < 2) continue;
      const double far = (runs < kFew ? kFar : kNotNear) * Median(kFound);
      if (*std::min_element(seconds_[rival].begin(), seconds_[rival].end()) > far) alive_[rival] = false;
    }
    decided_ = true;
    bool rivals = false;
    for (size_t each = 0; each < alive_.size(); ++each) {
      if (alive_[each] && seconds_[each].size() < kRuns) decided_ = false;
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
  static constexpr size_t kRuns = 9, kFew = 4;
  static constexpr double kFar = 1.3, kNotNear = 1.05;
  static constexpr double kLeastGain = 0.99;  // what is less may be chance

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
