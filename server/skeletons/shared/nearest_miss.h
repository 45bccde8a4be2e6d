// Attempts may exceed several limits; this says which one to name.
#pragma once

#include <limits>
#include <string>
#include <utility>

namespace fusion {

// Remembers the limit exceeded by the attempt that comes nearest to fitting a kernel to a device.
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
