// All tuners of this process: threads that end and processes that fork must know which are still there.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

namespace fusion::tuning {

class Tuner;

// Locked before the mutex of any tuner.
class Process {
 public:
  static Process& Get();  // never destroyed: threads may end after main

  std::mutex mutex;
  // Guarded by mutex.
  std::set<Tuner*> tuners;
  std::set<uint64_t> tuner_serials;
  std::vector<uint64_t> section_serials;  // by slot; 0: free

  uint64_t NewSerial() { return ++last_serial_; }  // mutex held
  size_t TakeSlot(uint64_t section_serial);        // mutex held

  // This process was forked from one that had tuners: gRPC's threads are missing here.
  bool forked() const { return forked_.load(std::memory_order_relaxed); }

 private:
  Process();
  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();

  uint64_t last_serial_ = 0;
  std::atomic<bool> forked_{false};
};

}  // namespace fusion::tuning
