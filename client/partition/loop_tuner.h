// The interface to an online tuner of loops, which is a library of its own: libfusion_partition_tuner.so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace fusion {

// A plan is how one call of a loop runs.
struct LoopPlan {
  double device_share = 0;       // of the iterations, 0 to 1, exact at both ends
  int chunks = 1;                // of the device's part, 1 to kMostChunks
  int threads = 1;               // of the host, the calling one included
  int block_x = 0, block_y = 0;  // threads of a block; 0: the device's own choice

  static constexpr int kMostChunks = 16;
  static constexpr int kMostBlockX = 1024, kMostBlockY = 32, kMostBlockThreads = 1024;

  bool operator==(const LoopPlan&) const = default;
};

// The loop has this name for people and for what was learned of it.
struct LoopKey {
  std::string place;  // file:line:column
  std::string function;

  auto operator<=>(const LoopKey&) const = default;
};

// The space says what may be chosen.
struct LoopSpace {
  int most_threads = 1;
  bool has_device = false;
  bool has_columns = false;  // on the device: blocks have two dimensions

  auto operator<=>(const LoopSpace&) const = default;
};

// Nothing of it throws or waits, but for Finish.
class LoopTuner {
 public:
  virtual ~LoopTuner() = default;
  // Returns how the next run is to be: a plan of `space`. iterations: at least 1. work: an estimate of the
  // call's instructions. known: the best that is known without the tuner, which is used until the tuner has
  // seen something faster. One thread at a time calls it and then, after the run, one of Done and Failed.
  virtual LoopPlan Next(const LoopKey& key, int64_t iterations, double work, const LoopPlan& known,
                        const LoopSpace& space) = 0;
  // Returns whether the plan that Next has returned is tried: it is not the one in force, and what it takes
  // is not what later runs take.
  virtual bool IsTrial() const = 0;
  virtual void Done(double seconds) = 0;
  // The run could not be done by this plan.
  virtual void Failed() = 0;
  // Called before the process ends, by any thread at any time: sends what is left, which takes seconds at
  // most. Runs go on by what is known without the tuner. Harmless when repeated.
  virtual void Finish() = 0;
};

constexpr int kLoopTunerVersion = 1;  // of this header

// The function fusion_partition_tuner of the library. version: kLoopTunerVersion of the caller. program: its
// name for the tuner, null for that of the executable. Returns null, and a reason that lives until the next
// call, where there can be no tuner.
extern "C" using MakeLoopTuner = LoopTuner * (int version, const char* program, const char** reason);

}  // namespace fusion
