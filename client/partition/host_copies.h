// Copies between places of the host's memory, by all threads of a pool where they are long.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/partition/pool.h"

namespace fusion {

class HostCopies {
 public:
  // pool: null where its threads have something else to do, the calling thread copies alone then.
  explicit HostCopies(HostPool* pool) : pool_(pool) {}

  void Copy(char* to, const char* from, size_t bytes) const;
  // Copies memory of which some may not be there. Returns false, and does not fault, where some is not: then
  // some may have been copied.
  bool CopyReadable(char* to, const char* from, size_t bytes) const;

  // Calls each(first, last) for parts of 0 .. count - 1 that cover all of it, in any threads. Nothing of
  // `each` throws.
  template <class Each>
  void InParts(int64_t count, const Each& each) const {
    if (pool_ == nullptr) {
      each(int64_t{0}, count);
      return;
    }
    pool_->Begin([](int64_t first, int64_t last,
                    void* function) { (*static_cast<const Each*>(function))(first, last); },
                 const_cast<Each*>(&each), 0, count);
    pool_->Finish();
  }

 private:
  HostPool* const pool_;
};

}  // namespace fusion
