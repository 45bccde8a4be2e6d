// A thread keeps this of the sections that it runs: found without a lock, made at its first call with a
// section.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "client/tuner/choice.h"
#include "client/tuner/report_ring.h"

namespace fusion::tuning {

class Section;
class Tuner;
struct Channel;
struct RunRecord;

// The values of one run, from when they are handed out until it ends.
struct Assignment {
  std::vector<fusion_tuner_value> values;        // never resized: the program has its address
  uint64_t proposal = 0;                         // 0: the choice in force
  const Configuration* configuration = nullptr;  // of the choice
  double best = 0;                               // its expected value then
  bool limited = false;                          // has begun with the exploration budget
};

// One section in one thread. Only that thread uses it; the background thread does once the thread has ended.
struct Runner {
  enum class State { kIdle, kAssigned, kStarted };

  Section* section = nullptr;
  Channel* channel = nullptr;
  State state = State::kIdle;
  Assignment assignment;
  uint64_t start_nanoseconds = 0;
  uint64_t version = 0;  // of choice
  Choice choice;
  // These fields are for the exploration budget, which is shared: it is told every few runs.
  double unpaid = 0;
  int unpaid_runs = 0;
  double pace_sum = 0;  // of runs with the choice: what they took over what was expected
  int pace_runs = 0;
  uint64_t since_explored = 0;  // runs with the choice
  std::vector<RunRecord*> spare_records;
};

// A channel leads from one thread to the background thread of a tuner.
struct Channel {
  ReportRing ring;
  // The one thread writes these fields.
  std::atomic<uint64_t> reported{0};
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint64_t> explored{0};
  std::atomic<bool> ended{false};                // the thread is gone, and what it wrote is here
  std::vector<std::unique_ptr<Runner>> runners;  // guarded by the tuner's mutex
};

// A loop of the three calls of AtuneRT (atune.cc), as a thread asked for it before: found without a lock.
struct LoopOfThread {
  using Bounds = std::tuple<int64_t, int64_t, int64_t>;  // lower, upper, step
  std::map<Bounds, Section*> sections;
  Section* current = nullptr;  // of the newest bounds
};

struct ThreadState {
  // Sections are by Section::slot. The serial number tells a section from one that had the slot before.
  struct SectionEntry {
    uint64_t serial = 0;
    Runner* runner = nullptr;
  };
  struct TunerEntry {
    uint64_t serial = 0;
    Channel* channel = nullptr;
  };
  std::vector<SectionEntry> sections;
  std::vector<TunerEntry> tuners;
  std::map<std::string, LoopOfThread, std::less<>> loops;
  std::string message;  // of the last call that failed

  static ThreadState& Current() { return current_ != nullptr ? *current_ : Make(); }

 private:
  static ThreadState& Make();
  static void EndThread(void* state);
  // A plain pointer, so that reading it needs no guard; a pthread key frees it.
  static constinit thread_local ThreadState* current_;
};

}  // namespace fusion::tuning
