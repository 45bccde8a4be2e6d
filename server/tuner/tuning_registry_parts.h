// TuningRegistry keeps this of processes and keys. Private to server/tuner.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "server/tuner/tuning_registry.h"

namespace fusion {

// Calls that need what was reported on the disk wait so long for it.
constexpr std::chrono::seconds kFlushTime{2};

// This is known of a process, whichever connection it has.
struct TuningProgram::Process {
  std::string name;
  mutable std::mutex mutex;
  // mutex guards these fields.
  uint64_t accepted = 0;  // the newest batch that was taken
  uint64_t stored = 0;    // of these, on the disk
  std::weak_ptr<TuningProgram> program;
};

// A key that programs tune. The mutex is held while a program joins or leaves.
struct TuningProgram::Slot {
  TuningKey key;
  std::mutex mutex;
  // mutex guards these fields.
  std::shared_ptr<LiveTuning> live;
  std::set<TuningMember> members;
};

}  // namespace fusion
