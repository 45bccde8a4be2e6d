// A run of a loop's iterations on the host's threads.
#pragma once

#include <climits>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "client/partition/context_copy.h"
#include "client/partition/pool.h"
#include "client/partition/ranges.h"
#include "client/partition/site.h"
#include "client/partition/split.h"

namespace fusion {

// The loop has arrays that are private to each iteration: FUSION_PARTITION_PRIVATE.
bool HasPrivateArrays(const fusion_partition_site& site);

// Where arrays are private each thread has memory of its own for them, and what the last iteration has left
// there is stored. As many threads run as there is memory for; with one the arrays are where they are.
class HostRun {
 public:
  // Begins, on so many threads at most. Throws nothing.
  HostRun(const LoopCall& call, HostPool& pool, int most_threads = INT_MAX) noexcept;
  HostRun(const HostRun&) = delete;
  HostRun& operator=(const HostRun&) = delete;

  // Takes part until all iterations are done.
  void Finish() { pool_.Finish(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  // Threads take no more memory than that together.
  static constexpr int64_t kMostBytes = int64_t{1} << 30;
  struct Free {
    void operator()(char* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  using Bytes = std::unique_ptr<char, Free>;
  struct Array {
    uint32_t number;  // in the site
    char* address;    // of what is written
    int64_t bytes;
    std::vector<ByteRange> filled;  // behind the address: each iteration writes all of these
  };
  struct OfThread {
    ContextCopy context;
    std::vector<char*> arrays;  // what is written of each
    std::vector<Bytes> memory;
  };

  // Returns false where it is not known what each iteration writes. Throws std::bad_alloc.
  bool FindArrays();
  // Throws std::bad_alloc.
  void AddThread();
  // Returns how many threads may run. Throws std::bad_alloc.
  int Prepare(int most_threads);
  static void RunSlice(int64_t first, int64_t last, void* run);

  const LoopCall call_;
  HostPool& pool_;
  std::vector<Array> arrays_;
  std::vector<OfThread> threads_;
  std::mutex mutex_;
  std::vector<OfThread*> idle_;  // mutex_ guards it
};

}  // namespace fusion
