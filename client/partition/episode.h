// Loops that a thread runs one after another, without touching memory between them: their arrays may stay on
// the device. Whether it is worth to bring them there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "client/partition/ranges.h"

namespace fusion {

// The averages tell what earlier episodes that began with a loop were like.
struct EpisodeHistory {
  double saving = 0;  // seconds, by the device, but for its copies
  double copies = 0;  // seconds
  double calls = 0;   // of loops; 0: there were none

  bool operator==(const EpisodeHistory&) const = default;
};

// The device pays for copies once and saves a little with each loop. Arrays go there when what it would have
// saved so far in this episode, or is expected to save by what earlier ones were like, is more than the
// copies take: so an episode of which nobody knows how long it is costs at most about twice what it must.
class Episode {
 public:
  // A loop is about to run.
  void Meet(const LoopRanges& ranges);
  // The program reads, or writes, what its loops have touched: on the device nothing could stay.
  bool Meets(ByteRange range, bool is_written) const;
  // The loop saves so many seconds on the device, apart from copies.
  void Saves(double seconds, bool is_resident) {
    saving_ += seconds;
    if (!is_resident) return;
    lost_ = std::max(0.0, lost_ - seconds);
  }
  // Returns true when loops on the device have lost more, one after another, than it takes to leave it and to
  // come back.
  bool HasLost(double seconds) const { return lost_ > seconds; }
  void Left() { lost_ = 0; }
  void Copied(double seconds, bool is_resident = false) {
    copied_seconds_ += seconds;
    if (is_resident) lost_ += seconds;
  }

  // Returns true when a loop that saves so much is to run there, with all arrays on the host now.
  bool IsWorthCopies(double saving, const EpisodeHistory& history, double bytes_per_second) const;
  void End(EpisodeHistory& history, double bytes_per_second);

 private:
  double SecondsOfCopies(double bytes_per_second) const;

  std::vector<ByteRange> read_, written_;  // addresses
  double calls_ = 0, saving_ = 0, copied_seconds_ = 0, lost_ = 0;
};

}  // namespace fusion
