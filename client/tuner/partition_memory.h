// The memory of a split loop: arrays on the device, pages that are pinned, and the copies between. C++17.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "client/tuner/partition_array.h"

namespace fusion {

// Addresses of the arrays on the device, in the order in which the arrays were added.
class DevicePointers {
 public:
  template <class T>
  T* Get(int array) const {
    return static_cast<T*>(pointers_[static_cast<size_t>(array)]);
  }

 private:
  template <class>
  friend class PartitionMemory;
  std::vector<void*> pointers_;
};

// Device: CudaPartitionDevice (cuda_partition_device.h), which says what its functions do. They return "" or
// what went wrong.
template <class Device>
class PartitionMemory {
 public:
  // The device is not owned and outlives this object; null: there is no device. Arrays smaller than
  // `pin_from_bytes` go through pinned memory of this object.
  PartitionMemory(Device* device, int64_t pin_from_bytes)
      : device_(device), pin_from_bytes_(pin_from_bytes), problem_(DeviceProblem()) {}
  PartitionMemory(const PartitionMemory&) = delete;
  PartitionMemory& operator=(const PartitionMemory&) = delete;
  ~PartitionMemory() { Release(); }

  // Returns the index of the array. The memory stays the caller's, and is there until this object is
  // destroyed or cleared.
  int Add(const PartitionArray& array) {
    arrays_.push_back(array);
    changed_.push_back(true);
    ready_ = false;
    return static_cast<int>(arrays_.size()) - 1;
  }
  // Forgets all arrays. A device that had no room is tried again.
  void Clear() {
    Release();
    problem_ = DeviceProblem();
    arrays_.clear();
    changed_.clear();
  }
  // The host has written to an array that is read as a whole.
  void MarkChanged(int array) { changed_[static_cast<size_t>(array)] = true; }
  // Allocates and pins what is new. Returns "" or why the device is not used.
  const std::string& Prepare() {
    if (problem_.empty() && !ready_) PrepareDevice();
    return problem_;
  }
  // The device is not used any more.
  void Fail(const std::string& problem) {
    Release();
    problem_ = problem;
  }
  const std::string& problem() const { return problem_; }
  const std::vector<PartitionArray>& arrays() const { return arrays_; }
  const DevicePointers& pointers() const { return pointers_; }
  // Arrays that are copied through memory of this object.
  std::vector<int> staged() const {
    std::vector<int> arrays;
    for (size_t i = 0; i < staging_.size(); ++i) {
      if (staging_[i] != nullptr) arrays.push_back(static_cast<int>(i));
    }
    return arrays;
  }

  // Begins the uploads of arrays that are read as a whole and have changed.
  std::string UploadWhole() {
    std::string error;
    for (size_t i = 0; i < arrays_.size() && error.empty(); ++i) {
      const PartitionArray& array = arrays_[i];
      if (!array.whole || !changed_[i] || array.bytes() == 0) continue;
      const auto bytes = static_cast<size_t>(array.bytes());
      if (staging_[i] != nullptr) std::memcpy(staging_[i], array.host, bytes);
      error = device_->Upload(pointers_.pointers_[i], HostSide(i), bytes, 1, bytes);
      changed_[i] = !error.empty();
    }
    return error;
  }
  // Begins the copies of what iterations [begin, end) touch by rows.
  std::string CopyRows(int64_t begin, int64_t end, bool upload) {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const PartitionArray& array = arrays_[i];
      if (array.whole || !(upload ? array.read : array.written) || array.row_bytes == 0) continue;
      // A triangle is copied in bands, each as wide as its last row.
      const int64_t band =
          array.triangle_bytes == 0 ? end - begin : std::max<int64_t>(kLeastBandRows, (end + 31) / 32);
      for (int64_t row = begin; row < end; row += band) {
        const int64_t rows = std::min(band, end - row), offset = row * array.stride_bytes;
        char* const on_device = static_cast<char*>(pointers_.pointers_[i]) + offset;
        const auto width = static_cast<size_t>(array.width_bytes(row + rows));
        const auto stride = static_cast<size_t>(array.stride_bytes);
        char* const on_host = HostSide(i) + offset;
        if (upload && staging_[i] != nullptr)
          CopyOnHost(on_host, array.host + offset, width, rows, array.stride_bytes);
        const std::string error =
            upload ? device_->Upload(on_device, on_host, width, static_cast<size_t>(rows), stride)
                   : device_->Download(on_host, on_device, width, static_cast<size_t>(rows), stride);
        if (!error.empty()) return error;
      }
    }
    return "";
  }
  // Copies what iterations [0, split) wrote to the host's arrays, once the device is at rest.
  void TakeFromStaging(int64_t split) {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const PartitionArray& array = arrays_[i];
      if (staging_[i] == nullptr || !array.written) continue;
      for (int64_t row = 0; row < split; ++row) {
        const int64_t offset = row * array.stride_bytes;
        std::memcpy(array.host + offset, staging_[i] + offset,
                    static_cast<size_t>(array.width_bytes(row + 1)));
      }
    }
  }

 private:
  std::string DeviceProblem() const {
    return device_ == nullptr ? "no device was given" : device_->Problem();
  }

  void PrepareDevice() {
    for (size_t i = pointers_.pointers_.size(); i < arrays_.size() && problem_.empty(); ++i) {
      const int64_t bytes = arrays_[i].bytes();
      void* memory = nullptr;
      if (bytes > 0) problem_ = Named(i, device_->Allocate(static_cast<size_t>(bytes), &memory));
      if (problem_.empty()) pointers_.pointers_.push_back(memory);
    }
    if (problem_.empty()) PinArrays();
    ready_ = problem_.empty();
    if (!ready_) Release();
  }
  std::string Named(size_t array, const std::string& error) const {
    if (error.empty()) return "";
    return "array " + std::to_string(array) + " of " + std::to_string(arrays_[array].bytes()) +
           " bytes: " + error;
  }

  // Memory is pinned by pages, and no page twice: arrays that share one are pinned together. A copy must not
  // begin in pinned memory and end in other memory, so that an array is pinned as a whole or staged.
  void PinArrays() {
    Unpin();
    struct Pages {
      uintptr_t begin, end;
      std::vector<size_t> arrays;
    };
    std::vector<Pages> ranges;
    staging_.assign(arrays_.size(), nullptr);
    std::vector<size_t> not_pinned;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const auto bytes = static_cast<uintptr_t>(arrays_[i].bytes());
      if (bytes == 0 || device_->IsPinned(arrays_[i].host, bytes)) continue;
      const auto begin = reinterpret_cast<uintptr_t>(arrays_[i].host);
      if (arrays_[i].bytes() < pin_from_bytes_) {
        not_pinned.push_back(i);
      } else {
        ranges.push_back({begin / kPage * kPage, (begin + bytes + kPage - 1) / kPage * kPage, {i}});
      }
    }
    std::sort(ranges.begin(), ranges.end(), [](const Pages& a, const Pages& b) { return a.begin < b.begin; });
    std::vector<Pages> merged;
    for (Pages& range : ranges) {
      if (merged.empty() || range.begin >= merged.back().end) {
        merged.push_back(std::move(range));
        continue;
      }
      merged.back().end = std::max(merged.back().end, range.end);
      merged.back().arrays.push_back(range.arrays[0]);
    }
    for (const Pages& range : merged) {
      void* const memory = reinterpret_cast<void*>(range.begin);
      if (device_->Pin(memory, range.end - range.begin).empty()) {
        pinned_.push_back(memory);
      } else {
        not_pinned.insert(not_pinned.end(), range.arrays.begin(), range.arrays.end());
      }
    }
    for (size_t i : not_pinned) {
      void* memory = nullptr;
      problem_ = Named(i, device_->AllocatePinned(static_cast<size_t>(arrays_[i].bytes()), &memory));
      if (!problem_.empty()) return;
      staging_[i] = static_cast<char*>(memory);
    }
  }
  void Unpin() {
    for (void* memory : pinned_) device_->Unpin(memory);
    for (char* memory : staging_) {
      if (memory != nullptr) device_->FreePinned(memory);
    }
    pinned_.clear();
    staging_.clear();
  }

  void Release() {
    for (void* memory : pointers_.pointers_) {
      if (memory != nullptr) device_->Free(memory);
    }
    pointers_.pointers_.clear();
    Unpin();
    ready_ = false;
  }

  // Returns the host's side of a copy.
  char* HostSide(size_t array) const {
    return staging_[array] != nullptr ? staging_[array] : arrays_[array].host;
  }
  static void CopyOnHost(char* to, const char* from, size_t width, int64_t rows, int64_t stride) {
    for (int64_t row = 0; row < rows; ++row) std::memcpy(to + row * stride, from + row * stride, width);
  }

  static constexpr int64_t kLeastBandRows = 64;
  static constexpr uintptr_t kPage = 4096;  // of x86-64; larger ones are pinned as well by these addresses

  Device* const device_;
  const int64_t pin_from_bytes_;
  std::string problem_;  // "": the device can be used
  bool ready_ = false;   // all arrays have memory on the device
  std::vector<PartitionArray> arrays_;
  std::vector<bool> changed_;  // of arrays that are read as a whole
  DevicePointers pointers_;
  std::vector<void*> pinned_;  // ranges of pages, by this
  // For each array pinned memory of its size, or null where the array itself is pinned.
  std::vector<char*> staging_;
};

}  // namespace fusion
