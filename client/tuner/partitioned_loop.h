// The splitting of a loop between the processors and a device (seed 002, sections 4.3 to 4.5 and 5.3 to 5.4,
// figure 5.2), without CUDA and without the tuner: partitioned_for.h puts the three together, and is what
// programs include.
//
// The device takes the first iterations [0, p), the host the others [p, n), as the seed's F_d and F_h. The
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
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "client/tuner/host_threads.h"

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

// How one run is split.
struct Partition {
  int64_t device_iterations = 0;
  int chunks = 1;
};

// Says how to split, and is told what came of it. Next is followed by Done or Failed.
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

// What iterations touch of one array in the host's memory. Bytes that no iteration of the device touches are
// not copied.
class PartitionArray {
 public:
  // Iteration i reads row i. It may also read the rows before: the device has the first iterations, so they
  // are there. Row i begins at data + i * stride, and `length` elements of it are touched; stride 0: rows lie
  // side by side.
  template <class T>
  static PartitionArray ReadRows(const T* data, int64_t rows, int64_t length, int64_t stride = 0) {
    return Rows(const_cast<T*>(data), sizeof(T), rows, length, stride, true, false);
  }
  // Iteration i writes all of row i, and nothing reads what was there: it is not uploaded.
  template <class T>
  static PartitionArray WriteRows(T* data, int64_t rows, int64_t length, int64_t stride = 0) {
    return Rows(data, sizeof(T), rows, length, stride, false, true);
  }
  // Iteration i reads and writes row i.
  template <class T>
  static PartitionArray ReadWriteRows(T* data, int64_t rows, int64_t length, int64_t stride = 0) {
    return Rows(data, sizeof(T), rows, length, stride, true, true);
  }
  // Every iteration may read all of it. Uploaded by the first run that has iterations on the device, and
  // again by the next such run after PartitionedLoop::MarkChanged.
  template <class T>
  static PartitionArray ReadWhole(const T* data, int64_t count) {
    PartitionArray array = Rows(const_cast<T*>(data), sizeof(T), 1, count, 0, true, false);
    array.whole = true;
    return array;
  }
  // Of row i only the first i + 1 elements are touched. Not of WriteRows: copies are a little wider than the
  // triangle, and what lies beside it must come back as it went.
  PartitionArray LowerTriangle() const {
    PartitionArray array = *this;
    array.triangle_bytes = element_bytes;
    return array;
  }

  int64_t bytes() const { return rows == 0 ? 0 : (rows - 1) * stride_bytes + row_bytes; }
  // What iterations [.., end) touch of each row at most.
  int64_t width_bytes(int64_t end) const {
    return triangle_bytes == 0 ? row_bytes : std::min(row_bytes, end * triangle_bytes);
  }

  char* host = nullptr;
  int64_t element_bytes = 0, rows = 0, row_bytes = 0, stride_bytes = 0;
  int64_t triangle_bytes = 0;  // 0: not a triangle
  bool read = false, written = false, whole = false;

 private:
  static PartitionArray Rows(void* data, int64_t element_bytes, int64_t rows, int64_t length, int64_t stride,
                             bool read, bool written) {
    PartitionArray array;
    array.host = static_cast<char*>(data);
    array.element_bytes = element_bytes;
    array.rows = rows;
    array.row_bytes = length * element_bytes;
    array.stride_bytes = (stride == 0 ? length : stride) * element_bytes;
    array.read = read;
    array.written = written;
    return array;
  }
};

// Where the arrays begin on the device, in the order in which they were added.
class DevicePointers {
 public:
  template <class T>
  T* Get(int array) const {
    return static_cast<T*>(pointers_[static_cast<size_t>(array)]);
  }

 private:
  template <class>
  friend class BasicPartitionedLoop;
  std::vector<void*> pointers_;
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

  // Neither is owned; both outlive the loop. device null: everything runs on the host.
  BasicPartitionedLoop(Device* device, PartitionChooser* chooser, PartitionedLoopOptions options = {})
      : device_(device), chooser_(chooser), options_(options), threads_(ThreadCount(options)) {
    device_problem_ = DeviceProblem();
  }
  BasicPartitionedLoop(const BasicPartitionedLoop&) = delete;
  BasicPartitionedLoop& operator=(const BasicPartitionedLoop&) = delete;
  ~BasicPartitionedLoop() {
    ReleaseDevice();
    for (auto [memory, pinned] : owned_) {
      if (pinned) device_->FreePinned(memory);
      if (!pinned) std::free(memory);
    }
  }

  // The index of the array for DevicePointers. The memory stays the caller's, and is there until the loop is
  // destroyed or the arrays are cleared. The next run pins it; small arrays, and those that cannot be pinned,
  // go through pinned memory of the loop.
  int AddArray(const PartitionArray& array) {
    arrays_.push_back(array);
    changed_.push_back(true);
    ready_ = false;
    return static_cast<int>(arrays_.size()) - 1;
  }
  // The host has written to an array that is read as a whole.
  void MarkChanged(int array) { changed_[static_cast<size_t>(array)] = true; }
  // Forgets all arrays; what the device had for them is given back. A device that had no room for them is
  // tried again.
  void ClearArrays() {
    ReleaseDevice();
    device_problem_ = DeviceProblem();
    arrays_.clear();
    changed_.clear();
  }
  // Pinned memory that lives as long as the loop, or where that cannot be had other memory; null when there
  // is none.
  void* Allocate(size_t bytes) {
    void* memory = nullptr;
    const bool pinned = device_problem_.empty() && device_->AllocatePinned(bytes, &memory).empty();
    if (!pinned) memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory != nullptr) owned_.emplace_back(memory, pinned);
    return memory;
  }
  // Allocates and pins what is new; Run does it too, before its clock starts. "" or why there is no device
  // part.
  const std::string& Prepare() {
    if (device_problem_.empty() && !ready_) PrepareDevice();
    return device_problem_;
  }
  // Arrays that are copied through memory of the loop.
  std::vector<int> staged() const {
    std::vector<int> arrays;
    for (size_t i = 0; i < staging_.size(); ++i) {
      if (staging_[i] != nullptr) arrays.push_back(static_cast<int>(i));
    }
    return arrays;
  }

  // Does iterations [0, n): host_part(begin, end) on the host, device_part(stream, begin, end, pointers) for
  // each chunk of the device's. device_part launches on the stream and returns at once, "" or what went
  // wrong; errors of launches are found without it. What host_part throws is thrown again once the device is
  // at rest.
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
      if (error.empty()) TakeFromStaging(split);
    }
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!error.empty()) {
      chooser_->Failed();
      ReleaseDevice();
      device_problem_ = error;
      run.status = {PartitionCode::kDeviceError, error};
    } else if (chosen) {
      chooser_->Done(run.seconds);
    } else {
      run.status = {PartitionCode::kHostOnly, device_problem_};
    }
    return run;
  }

 private:
  static int ThreadCount(const PartitionedLoopOptions& options) {
    if (options.host_threads >= 0) return options.host_threads;
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  std::string DeviceProblem() const {
    return device_ == nullptr ? "no device was given" : device_->Problem();
  }
  int64_t Slice(int64_t count) const {
    if (options_.host_slice > 0) return options_.host_slice;
    return std::max<int64_t>(1, count / (8 * threads_.count()));
  }

  PartitionStatus Check(int64_t n) const {
    if (n < 0) return {PartitionCode::kInvalidArgument, "a loop of " + std::to_string(n) + " iterations"};
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const PartitionArray& array = arrays_[i];
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

  void PrepareDevice() {
    for (size_t i = pointers_.pointers_.size(); i < arrays_.size() && device_problem_.empty(); ++i) {
      const int64_t bytes = arrays_[i].bytes();
      void* memory = nullptr;
      if (bytes > 0) device_problem_ = Named(i, device_->Allocate(static_cast<size_t>(bytes), &memory));
      if (device_problem_.empty()) pointers_.pointers_.push_back(memory);
    }
    if (device_problem_.empty()) PinArrays();
    ready_ = device_problem_.empty();
    if (!ready_) ReleaseDevice();
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
      if (arrays_[i].bytes() < options_.pin_from_bytes) {
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
      device_problem_ = Named(i, device_->AllocatePinned(static_cast<size_t>(arrays_[i].bytes()), &memory));
      if (!device_problem_.empty()) return;
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

  void ReleaseDevice() {
    for (void* memory : pointers_.pointers_) {
      if (memory != nullptr) device_->Free(memory);
    }
    pointers_.pointers_.clear();
    Unpin();
    ready_ = false;
  }

  // What the host's side of a copy is.
  char* HostSide(size_t array) const {
    return staging_[array] != nullptr ? staging_[array] : arrays_[array].host;
  }
  static void CopyOnHost(char* to, const char* from, size_t width, int64_t rows, int64_t stride) {
    for (int64_t row = 0; row < rows; ++row) std::memcpy(to + row * stride, from + row * stride, width);
  }
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

  // One chunk after the other through the three streams. What fails leaves the rest out; the caller waits for
  // what was begun.
  template <class DevicePart>
  std::string Enqueue(int64_t split, int chunks, DevicePart&& device_part) {
    std::string error = device_->Begin();
    for (size_t i = 0; i < arrays_.size() && error.empty(); ++i) {
      const PartitionArray& array = arrays_[i];
      if (!array.whole || !changed_[i] || array.bytes() == 0) continue;
      const auto bytes = static_cast<size_t>(array.bytes());
      if (staging_[i] != nullptr) std::memcpy(staging_[i], array.host, bytes);
      error = device_->Upload(pointers_.pointers_[i], HostSide(i), bytes, 1, bytes);
      changed_[i] = !error.empty();
    }
    int64_t begin = 0;
    for (int chunk = 0; chunk < chunks && begin < split && error.empty(); ++chunk) {
      const int64_t end = chunk + 1 == chunks ? split : std::min(split, ChunkEnd(split, chunk, chunks));
      if (end <= begin) continue;
      error = CopyRows(begin, end, /*upload=*/true);
      if (error.empty()) error = device_->Follow(PartitionStream::kCompute, PartitionStream::kUpload, chunk);
      if (error.empty()) error = device_part(device_->ComputeStream(), begin, end, pointers_);
      if (error.empty()) error = device_->LaunchError();
      if (error.empty())
        error = device_->Follow(PartitionStream::kDownload, PartitionStream::kCompute, chunk);
      if (error.empty()) error = CopyRows(begin, end, /*upload=*/false);
      begin = end;
    }
    return error;
  }

  int64_t ChunkEnd(int64_t split, int chunk, int chunks) const {
    const int64_t alignment = std::max<int64_t>(1, options_.device_alignment);
    // Without the product of split and chunks, which may be more than an int64_t holds.
    const int64_t end = split / chunks * (chunk + 1) + split % chunks * (chunk + 1) / chunks;
    return (end + alignment - 1) / alignment * alignment;
  }

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

  static constexpr int64_t kLeastBandRows = 64;
  static constexpr uintptr_t kPage = 4096;  // of x86-64; larger ones are pinned as well by these addresses

  Device* const device_;
  PartitionChooser* const chooser_;
  const PartitionedLoopOptions options_;
  HostThreads threads_;
  std::string device_problem_;  // "": the device can be used
  bool ready_ = false;          // all arrays have memory on the device
  std::vector<PartitionArray> arrays_;
  std::vector<bool> changed_;  // of arrays that are read as a whole
  DevicePointers pointers_;
  std::vector<void*> pinned_;  // ranges of pages, by this loop
  std::vector<char*>
      staging_;  // for each array: pinned memory of its size, or null where it is pinned itself
  std::vector<std::pair<void*, bool>> owned_;  // memory, is it pinned
};

}  // namespace fusion
