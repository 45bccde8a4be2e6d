// Threads that share the iterations of a loop, slice by slice, while their caller does something else first.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fusion {

// One thread calls Start, then Finish or Abandon. C++17.
class HostThreads {
 public:
  // count: threads that work, the one that calls Finish included; 0 for an object that is not used.
  explicit HostThreads(int count) : count_(count) {
    for (int i = 1; i < count; ++i) threads_.emplace_back([this] { Work(); });
  }
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;
  ~HostThreads() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int count() const { return count_; }

  // The other threads begin to call body(begin, end) for slices of [begin, end). body lives until Finish or
  // Abandon has returned.
  template <class Body>
  void Start(int64_t begin, int64_t end, int64_t slice, Body& body) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      next_ = begin;
      end_ = end;
      slice_ = slice;
      body_ = [&body](int64_t first, int64_t last) { body(first, last); };
      error_ = nullptr;
      busy_ = static_cast<int>(threads_.size());
      ++round_;
    }
    started_ = true;
    wake_.notify_all();
  }
  // Takes part until no slice is left and waits for the others. Throws the first exception of a slice.
  void Finish() {
    TakeSlices();
    WaitForOthers();
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  }
  // Begins no new slices and waits for those that have begun. Does nothing where nothing was started.
  void Abandon() {
    if (!started_) return;
    next_ = end_;
    WaitForOthers();
  }

 private:
  void WaitForOthers() {
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [this] { return busy_ == 0; });
    started_ = false;
  }

  void TakeSlices() {
    while (true) {
      const int64_t begin = next_.fetch_add(slice_);
      if (begin >= end_) return;
      try {
        body_(begin, std::min(begin + slice_, end_));
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (error_ == nullptr) error_ = std::current_exception();
        next_ = end_;
      }
    }
  }

  void Work() {
    int64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      lock.unlock();
      TakeSlices();
      lock.lock();
      if (--busy_ == 0) idle_.notify_one();
    }
  }

  const int count_;
  std::vector<std::thread> threads_;
  bool started_ = false;  // of the calling thread

  // Start sets these fields while all threads wait.
  int64_t end_ = 0, slice_ = 1;
  std::function<void(int64_t, int64_t)> body_;

  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  // mutex_ guards these fields.
  int64_t round_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
};

}  // namespace fusion
