// Which of the limits that attempts exceed is the one to name.
#pragma once

#include <limits>
#include <string>
#include <utility>

namespace fusion {

// Of attempts to fit a kernel to a device, what the one that comes nearest to fitting exceeds.
class NearestMiss {
 public:
  // An attempt needs `needed` where the device has `limit` of the same, which is less; `text` says so.
  void Note(double needed, double limit, std::string text) {
    if (needed / limit >= least_) return;
    least_ = needed / limit;
    text_ = std::move(text);
  }
  const std::string& text() const { return text_; }  // empty: none was noted

 private:
  std::string text_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace fusion
