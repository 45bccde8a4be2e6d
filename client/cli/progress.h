// Progress of a job on stderr.
#pragma once

#include <chrono>
#include <ostream>
#include <string>

#include "fusion/v1/optimizer.pb.h"

namespace fusion {

// "searching", "building 3 of 30 (2 reused, 0 failed)", "timing 4 of 30, best so far 0.381 ms, 2.60x". "" for
// events that are no progress.
std::string ProgressText(const v1::JobEvent& event);

// Shows events. On a terminal one line is written over and over; elsewhere a line is written when a stage
// begins and ends, and within a stage at most every 5 s. Not thread safe.
class ProgressPrinter {
 public:
  ProgressPrinter(std::ostream& out, bool terminal, int width);
  void Show(const v1::JobEvent& event);
  // Shows what happens before the first event.
  void Show(const std::string& text) { ShowLine(text, /*important=*/true); }
  // Removes the line that is written over. Call before other output.
  void Clear();

 private:
  void ShowLine(const std::string& text, bool important);

  std::ostream& out_;
  const bool terminal_;
  const int width_;
  int stage_ = 0;  // v1::JobEvent::KindCase of the line shown last
  std::string shown_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace fusion
