// Progress of a job on stderr.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>

#include "fusion/v1/optimizer.pb.h"

namespace fusion {

// "searching", "building 3 of 30 (2 reused, 0 failed)", "timing 4 of 30, best so far 0.381 ms, 2.60x",
// "timing the fastest again, on all kinds of data". "" for events that are no progress.
std::string ProgressText(const v1::JobEvent& event);

// Shows events, with the time since the printer was made, and how long a stage that counts may still take. On
// a terminal one line is written over and over, also while nothing comes; elsewhere a line is written when a
// stage begins and ends, and within a stage at most every 5 s. Thread safe.
class ProgressPrinter {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  ProgressPrinter(std::ostream& out, bool terminal, int width, Clock clock = std::chrono::steady_clock::now);
  ~ProgressPrinter();
  void Show(const v1::JobEvent& event);
  // Shows what happens before the first event.
  void Show(const std::string& text);
  // On a terminal, writes the line again with the time that it is now. Is called once a second.
  void Tick();
  // Removes the line that is written over. Call before other output.
  void Clear();

 private:
  // These require mutex_.
  void ShowLine(const std::string& text, bool important);
  void WriteOver();
  void ClearLine();
  // ", about 12 s left"; "" where that is not known.
  std::string LeftText(const v1::JobEvent& event);

  std::ostream& out_;
  const bool terminal_;
  const int width_;
  const Clock clock_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  int stage_ = 0;  // v1::JobEvent::KindCase of the event shown last; guarded by mutex_, as all below
  std::chrono::steady_clock::time_point stage_start_;
  int done_before_ = 0;  // when the stage began
  std::string text_;     // of the line shown last
  bool shown_ = false;   // the line that is written over is there
  std::chrono::steady_clock::time_point last_;
  std::condition_variable_any stopped_;
  std::jthread ticks_;  // on a terminal
};

}  // namespace fusion
