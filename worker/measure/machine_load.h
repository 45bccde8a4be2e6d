// Tells what a machine does beside a timing, for people who wonder at the times.
#pragma once

#include <filesystem>

#include "fusion/v1/program.pb.h"

namespace fusion {

// Looks at the machine from its construction on. What the system does not say stays unset. For one thread.
class MachineLoad {
 public:
  // `root`: where /proc and /sys are found.
  explicit MachineLoad(std::filesystem::path root = "/");

  // Sets processor_mhz (the mean of all processors, now), load (threads that could run when this began and
  // now, but for the caller, over the processors) and stolen_share (of the processors' time since it began).
  void Describe(v1::MeasurementConditions* conditions) const;

 private:
  struct Moment {
    double ticks = 0, stolen_ticks = 0;  // of all processors together
    int processors = 0;
    int running = 0;
  };
  Moment Now() const;

  const std::filesystem::path root_;
  const Moment begin_;
};

}  // namespace fusion
