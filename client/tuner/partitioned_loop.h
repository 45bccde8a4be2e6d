// The splitting of a loop between the processors and a device (Baier 2016, sections 4.3 to 4.5 and 5.3
// to 5.4, figure 5.2), without CUDA and without the tuner: partitioned_for.h puts the three together, and is
// what programs include.
//
// The device takes the first iterations [0, p), the host the others [p, n), F_d and F_h of the thesis. The
// device's part is cut in chunks; three streams let the upload of chunk k+1, the computation of chunk k and
// the download of chunk k-1 overlap, and all of it overlaps the host's part. An array has on the device the
// layout that it has on the host, in memory that is allocated once for all iterations (seed, section 4.4.2),
// so no chunk waits for the memory of another.
//
// C++17. One thread at a time may use a loop; loops are independent of one another.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "client/tuner/host_threads.h"
#include "client/tuner/partition_array.h"
#include "client/tuner/partition_memory.h"

namespace fusion {

enum class PartitionCode {
  kOk,
  kHostOnly,         // right, but all of it on the host: there is no device, or it cannot be used
  kInvalidArgument,  // nothing has run
  kDeviceError,  // the device's iterations are not done, those of the host are; later runs are on the host
                 // alone
};

struct PartitionStatus {
  PartitionCode code = PartitionCode::kOk;
  std::string message;
  // All iterations are done.
  bool done() const { return code == PartitionCode::kOk || code == PartitionCode::kHostOnly; }
};

// The split of one run.
struct Partition {
  int64_t device_iterations = 0;
  int chunks = 1;
};

// The chooser says how to split, and is told what came of it. Next is followed by Done or Failed.
class PartitionChooser {
 public:
  virtual ~PartitionChooser() = default;
  virtual Partition Next(int64_t n) = 0;
  virtual void Done(double seconds) = 0;
  virtual void Failed() = 0;
};

// The split that the program says.
class FixedPartition : public PartitionChooser {
 public:
  // ratio: the share of the device, 0 to 1.
  explicit FixedPartition(double ratio = 0, int chunks = 1) : ratio(ratio), chunks(chunks) {}
  Partition Next(int64_t n) override {
    return {static_cast<int64_t>(ratio * static_cast<double>(n) + 0.5), chunks};
  }
  void Done(double) override {}
  void Failed() override {}

  double ratio;
  int chunks;
};

enum class PartitionStream { kUpload, kCompute, kDownload };
constexpr int kMaxPartitionChunks = 16;

struct PartitionedLoopOptions {
  // 0: host_part is called once, by the calling thread, and has threads of its own (OpenMP, say). Else the
  // number of threads, the calling one included, that call host_part for slices of the host's iterations; it
  // must allow that. -1: one for each processor.
  int host_threads = -1;
  // Iterations of a slice; 0: about eight slices for each thread.
  int64_t host_slice = 0;
  // Chunks begin at multiples of so many iterations: the rows of a kernel's tile.
  int64_t device_alignment = 1;
  // Smaller arrays are not pinned where they are, but copied through pinned memory of the loop: they share
  // pages with others.
  int64_t pin_from_bytes = 64 << 10;
};

struct PartitionedRun {
  PartitionStatus status;
  double seconds = 0;  // from before the first copy to after the last
  Partition partition;
};

// Device: CudaPartitionDevice (cuda_partition_device.h), which says what its functions do. They return "" or
// what went wrong.
template <class Device>
class BasicPartitionedLoop {
 public:
  using Stream = typename Device::Stream;

  // The loop owns neither; both outlive it. device null: everything runs on the host.
  BasicPartitionedLoop(Device* device, PartitionChooser* chooser, PartitionedLoopOptions options = {})
      : device_(device),
        chooser_(chooser),
        options_(options),
        threads_(ThreadCount(options)),
        memory_(device, options.pin_from_bytes) {}
  BasicPartitionedLoop(const BasicPartitionedLoop&) = delete;
  BasicPartitionedLoop& operator=(const BasicPartitionedLoop&) = delete;
  ~BasicPartitionedLoop() {
    memory_.Clear();  // arrays may lie in what is freed next
    for (auto [memory, pinned] : owned_) {
      if (pinned) device_->FreePinned(memory);
      if (!pinned) std::free(memory);
    }
  }

  // Returns the index of the array for DevicePointers. The memory stays the caller's, and is there until the
  // loop is destroyed or the arrays are cleared. The next run pins it; small arrays, and those that cannot be
  // pinned, go through pinned memory of the loop.
  int AddArray(const PartitionArray& array) { return memory_.Add(array); }
  // The host has written to an array that is read as a whole.
  void MarkChanged(int array) { memory_.MarkChanged(array); }
  // Forgets all arrays; what the device had for them is given back. A device that had no room for them is
  // tried again.
  void ClearArrays() { memory_.Clear(); }
  // Returns pinned memory that lives as long as the loop, or where that cannot be had other memory; null when
  // there is none.
  void* Allocate(size_t bytes) {
    void* memory = nullptr;
    const bool pinned = memory_.problem().empty() && device_->AllocatePinned(bytes, &memory).empty();
    if (!pinned) memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory != nullptr) owned_.emplace_back(memory, pinned);
    return memory;
  }
  // Allocates and pins what is new; Run does it too, before its clock starts. Returns "" or why there is no
  // device part.
  const std::string& Prepare() { return memory_.Prepare(); }
  // Arrays that are copied through memory of the loop.
  std::vector<int> staged() const { return memory_.staged(); }

  // Does iterations [0, n): host_part(begin, end) on the host, device_part(stream, begin, end, pointers) for
  // each chunk of the device's. device_part launches on the stream and returns at once "" or what went wrong;
  // errors of launches are found without it. What host_part throws is thrown again once the device is at
  // rest.
  template <class HostPart, class DevicePart>
  PartitionedRun Run(int64_t n, HostPart&& host_part, DevicePart&& device_part) {
    PartitionedRun run;
    run.status = Check(n);
    if (!run.status.done() || n == 0) return run;
    // Nothing is asked for or reported where there is no choice: that would be taken for what a device does.
    const bool chosen = Prepare().empty();
    if (chosen) run.partition = chooser_->Next(n);
    run.partition.device_iterations = std::clamp<int64_t>(run.partition.device_iterations, 0, n);
    run.partition.chunks = std::clamp(run.partition.chunks, 1, kMaxPartitionChunks);
    const int64_t split = run.partition.device_iterations;

    const auto start = std::chrono::steady_clock::now();
    std::string error;
    try {
      const bool slices = threads_.count() > 0 && split < n;
      if (slices) threads_.Start(split, n, Slice(n - split), host_part);
      if (split > 0) error = Enqueue(split, run.partition.chunks, device_part);
      if (slices) threads_.Finish();
      if (!slices && split < n) host_part(split, n);
    } catch (...) {
      threads_.Abandon();
      if (split > 0) device_->Synchronize();
      if (chosen) chooser_->Failed();
      throw;
    }
    if (split > 0) {
      const std::string late = device_->Synchronize();
      if (error.empty()) error = late;
      if (error.empty()) memory_.TakeFromStaging(split);
    }
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!error.empty()) {
      chooser_->Failed();
      memory_.Fail(error);
      run.status = {PartitionCode::kDeviceError, error};
    } else if (chosen) {
      chooser_->Done(run.seconds);
    } else {
      run.status = {PartitionCode::kHostOnly, memory_.problem()};
    }
    return run;
  }

 private:
  static int ThreadCount(const PartitionedLoopOptions& options) {
    if (options.host_threads >= 0) return options.host_threads;
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  int64_t Slice(int64_t count) const {
    if (options_.host_slice > 0) return options_.host_slice;
    return std::max<int64_t>(1, count / (8 * threads_.count()));
  }

  PartitionStatus Check(int64_t n) const {
    if (n < 0) return {PartitionCode::kInvalidArgument, "a loop of " + std::to_string(n) + " iterations"};
    for (size_t i = 0; i < memory_.arrays().size(); ++i) {
      const PartitionArray& array = memory_.arrays()[i];
      const std::string name = "array " + std::to_string(i);
      if (array.row_bytes < 0 || array.rows < 0 || (array.host == nullptr && array.bytes() > 0)) {
        return {PartitionCode::kInvalidArgument, name + " has no memory, or a negative size"};
      }
      if (array.stride_bytes < array.row_bytes) {
        return {PartitionCode::kInvalidArgument,
                name + " has rows that overlap: its stride is less than its length"};
      }
      if (array.triangle_bytes > 0 && (array.whole || !array.read)) {
        return {PartitionCode::kInvalidArgument, name + " is a triangle and is not read by rows"};
      }
      if (!array.whole && array.rows < n) {
        return {PartitionCode::kInvalidArgument, name + " has " + std::to_string(array.rows) + " rows for " +
                                                     std::to_string(n) + " iterations"};
      }
    }
    return {};
  }

  // Sends one chunk after the other through the three streams. A failure leaves the rest out; the caller
  // waits for what was begun.
  template <class DevicePart>
  std::string Enqueue(int64_t split, int chunks, DevicePart&& device_part) {
    std::string error = device_->Begin();
    if (error.empty()) error = memory_.UploadWhole();
    int64_t begin = 0;
    for (int chunk = 0; chunk < chunks && begin < split && error.empty(); ++chunk) {
      const int64_t end = chunk + 1 == chunks ? split : std::min(split, ChunkEnd(split, chunk, chunks));
      if (end <= begin) continue;
      error = memory_.CopyRows(begin, end, /*upload=*/true);
      if (error.empty()) error = device_->Follow(PartitionStream::kCompute, PartitionStream::kUpload, chunk);
      if (error.empty()) error = device_part(device_->ComputeStream(), begin, end, memory_.pointers());
      if (error.empty()) error = device_->LaunchError();
      if (error.empty())
        error = device_->Follow(PartitionStream::kDownload, PartitionStream::kCompute, chunk);
      if (error.empty()) error = memory_.CopyRows(begin, end, /*upload=*/false);
      begin = end;
    }
    return error;
  }

  int64_t ChunkEnd(int64_t split, int chunk, int chunks) const {
    const int64_t alignment = std::max<int64_t>(1, options_.device_alignment);
    // The product of split and chunks is avoided: it may be more than an int64_t holds.
    const int64_t end = split / chunks * (chunk + 1) + split % chunks * (chunk + 1) / chunks;
    return (end + alignment - 1) / alignment * alignment;
  }

  Device* const device_;
  PartitionChooser* const chooser_;
  const PartitionedLoopOptions options_;
  HostThreads threads_;
  PartitionMemory<Device> memory_;
  std::vector<std::pair<void*, bool>> owned_;  // memory, is it pinned
};

}  // namespace fusion
