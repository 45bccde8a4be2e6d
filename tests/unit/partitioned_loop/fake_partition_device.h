// A device that computes on the host, in any order that its streams and events allow: what is missing in the
// order that a loop asks for shows as a wrong result for some seed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/tuner/partitioned_loop.h"

namespace fusion::testing {

class FakePartitionDevice {
 public:
  class Queue {
   public:
    // The work runs later, as that of a kernel's launch does.
    void Launch(std::function<void()> work) { operations.push_back({std::move(work), nullptr, nullptr}); }

   private:
    friend class FakePartitionDevice;
    struct Operation {
      std::function<void()> work;
      std::shared_ptr<bool> sets, waits_for;
    };
    std::deque<Operation> operations;
  };
  using Stream = Queue*;

  explicit FakePartitionDevice(unsigned seed) : random_(seed) {}
  ~FakePartitionDevice() {
    for (auto& [memory, bytes] : allocations_) std::free(memory);
  }

  std::string Problem() const { return problem; }
  std::string Allocate(size_t bytes, void** memory) {
    if (const std::string error = Step(); !error.empty()) return error;
    *memory = std::malloc(bytes);
    std::memset(*memory, 0xEE, bytes);
    allocations_[static_cast<char*>(*memory)] = bytes;
    return "";
  }
  void Free(void* memory) {
    if (allocations_.erase(static_cast<char*>(memory)) != 1) ++misuses;
    std::free(memory);
  }
  std::string AllocatePinned(size_t bytes, void** memory) {
    if (const std::string error = Step(); !error.empty()) return error;
    *memory = std::malloc(bytes);
    std::memset(*memory, 0xDD, bytes);
    ++pinned_allocations;
    return "";
  }
  void FreePinned(void* memory) {
    --pinned_allocations;
    std::free(memory);
  }
  bool IsPinned(const void* memory, size_t) const { return memory == pinned_by_the_program; }
  // Pins pages, none of them twice, as a real device has it.
  std::string Pin(void* memory, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    if (begin % 4096 != 0 || bytes % 4096 != 0) ++misuses;
    for (uintptr_t page = begin; page < begin + bytes; page += 4096) {
      if (pinned_pages.count(page) != 0) ++misuses;
    }
    if (!pinning_works) return "cannot pin";
    for (uintptr_t page = begin; page < begin + bytes; page += 4096) pinned_pages[page] = memory;
    return "";
  }
  void Unpin(void* memory) {
    for (auto page = pinned_pages.begin(); page != pinned_pages.end();) {
      page = page->second == memory ? pinned_pages.erase(page) : std::next(page);
    }
  }

  std::string Begin() { return Step(); }
  Stream ComputeStream() { return &streams_[static_cast<int>(PartitionStream::kCompute)]; }
  std::string Upload(void* device, const void* host, size_t width, size_t rows, size_t stride) {
    CheckRange(device, width, rows, stride);
    uploaded_bytes += static_cast<int64_t>(width * rows);
    return Copy(PartitionStream::kUpload, device, host, width, rows, stride);
  }
  std::string Download(void* host, const void* device, size_t width, size_t rows, size_t stride) {
    CheckRange(device, width, rows, stride);
    downloaded_bytes += static_cast<int64_t>(width * rows);
    return Copy(PartitionStream::kDownload, host, device, width, rows, stride);
  }
  std::string Follow(PartitionStream later, PartitionStream earlier, int chunk) {
    if (chunk < 0 || chunk >= kMaxPartitionChunks) ++misuses;
    auto event = std::make_shared<bool>(false);
    streams_[static_cast<int>(earlier)].operations.push_back({nullptr, event, nullptr});
    streams_[static_cast<int>(later)].operations.push_back({nullptr, nullptr, event});
    return Step();
  }
  std::string LaunchError() { return Step(); }
  std::string Synchronize() {
    ++synchronizations;
    while (true) {
      std::vector<Queue*> ready;
      for (Queue& queue : streams_) {
        if (queue.operations.empty()) continue;
        const auto& waits_for = queue.operations.front().waits_for;
        if (waits_for == nullptr || *waits_for) ready.push_back(&queue);
      }
      if (ready.empty()) break;
      Queue* const queue = ready[random_() % ready.size()];
      Queue::Operation operation = std::move(queue->operations.front());
      queue->operations.pop_front();
      if (operation.work) operation.work();
      if (operation.sets) *operation.sets = true;
    }
    for (Queue& queue : streams_) misuses += !queue.operations.empty();
    return std::exchange(late_error, "");
  }

  size_t allocations() const { return allocations_.size(); }

  std::string problem;     // no device
  std::string late_error;  // of the next Synchronize
  int fails_at = 0;        // the call, counted from 1, that fails
  bool pinning_works = true;
  const void* pinned_by_the_program = nullptr;
  std::map<uintptr_t, void*> pinned_pages;  // page, the range that it was pinned with
  int calls = 0, misuses = 0, pinned_allocations = 0, synchronizations = 0;
  int64_t uploaded_bytes = 0, downloaded_bytes = 0;

 private:
  std::string Step() { return ++calls == fails_at ? "call " + std::to_string(calls) + " fails" : ""; }
  std::string Copy(PartitionStream stream, void* to, const void* from, size_t width, size_t rows,
                   size_t stride) {
    streams_[static_cast<int>(stream)].Launch([=] {
      for (size_t row = 0; row < rows; ++row) {
        std::memcpy(static_cast<char*>(to) + row * stride, static_cast<const char*>(from) + row * stride,
                    width);
      }
    });
    return Step();
  }
  void CheckRange(const void* device, size_t width, size_t rows, size_t stride) {
    char* const begin = static_cast<char*>(const_cast<void*>(device));
    auto allocation = allocations_.upper_bound(begin);
    if (rows == 0 || width == 0 || allocation == allocations_.begin()) {
      ++misuses;
      return;
    }
    --allocation;
    if (begin + (rows - 1) * stride + width > allocation->first + allocation->second) ++misuses;
  }

  std::mt19937 random_;
  std::map<char*, size_t> allocations_;
  Queue streams_[3];
};

}  // namespace fusion::testing
