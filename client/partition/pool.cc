#include "client/partition/pool.h"

#include <immintrin.h>

#include <algorithm>
#include <system_error>

#include "client/partition/own_threads.h"

namespace fusion {

// The lowest six bits say what has happened, not how it is computed.
unsigned RoundingOfThread() { return _mm_getcsr() & 0xffc0; }

HostPool::HostPool(int threads) : forks_(ForksUntilNow()), rounding_(RoundingOfThread()) {
  threads_.reserve(static_cast<size_t>(std::max(threads, 1)));
  const SignalsForOthers blocked;
  try {
    for (int i = 1; i < threads; ++i)
      threads_.emplace_back([this, number = static_cast<size_t>(i - 1)] { Work(number); });
  } catch (const std::system_error&) {
    // The system gives no more threads.
  } catch (const std::bad_alloc&) {
  }
}

HostPool::~HostPool() {
  if (IsLost()) {
    for (std::thread& thread : threads_) thread.detach();
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool HostPool::IsLost() const { return forks_ != ForksUntilNow(); }

bool HostPool::ComputesAsHere() const { return RoundingOfThread() == rounding_; }

void HostPool::Begin(fusion_partition_body body, void* context, int64_t first, int64_t last,
                     int most_threads) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    body_ = body;
    context_ = context;
    last_ = last;
    const int64_t all = std::clamp(most_threads, 1, threads());
    slice_ = std::max<int64_t>(1, (last - first) / (8 * all));
    next_ = first;
    taking_part_ = busy_ = first < last ? static_cast<size_t>(all - 1) : 0;
    if (busy_ == 0) return;
    ++round_;
  }
  wake_.notify_all();
}

void HostPool::Finish() {
  RunSlices();
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [this] { return busy_ == 0; });
}

void HostPool::RunSlices() {
  int64_t first = next_.load();
  while (first < last_) {
    const int64_t last = last_ - first > slice_ ? first + slice_ : last_;
    if (!next_.compare_exchange_weak(first, last)) continue;
    body_(first, last, context_);
    first = next_.load();
  }
}

void HostPool::Work(size_t number) {
  int64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
    if (stopping_) return;
    seen = round_;
    if (number >= taking_part_) continue;
    lock.unlock();
    RunSlices();
    lock.lock();
    if (--busy_ == 0) idle_.notify_one();
  }
}

}  // namespace fusion
