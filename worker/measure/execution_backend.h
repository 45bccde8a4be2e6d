// A backend gives measuring what it needs of a device: memory, kernels, timed runs, and operations on data
// too large to fetch. It is implemented for CUDA (driver API) and for the host, and lives inside the runner
// process alone.
//
// Statuses of every call: Aborted: the device is in an unusable state (a sticky CUDA error); only a new
// process helps. ResourceExhausted: no memory. InvalidArgument: this launch or binary is wrong, the device is
// sound.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/program.pb.h"
#include "library/verification/entry_operations.h"
#include "worker/measure/block_order.h"

namespace fusion {

using DeviceAddress = uint64_t;

struct MemoryRange {
  DeviceAddress address = 0;
  int64_t bytes = 0;
};

// The ranges of a copy have the same size and do not overlap.
struct MemoryCopy {
  DeviceAddress to = 0;
  MemoryRange from;
};

struct MemoryInfo {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

// A launch resolved to a kernel and argument values. Not copyable: arguments[i] points at values[i].
struct PreparedLaunch {
  PreparedLaunch() = default;
  PreparedLaunch(PreparedLaunch&&) = default;
  PreparedLaunch& operator=(PreparedLaunch&&) = default;
  void* kernel = nullptr;
  std::string name;
  int64_t grid = 0;
  int threads = 0;
  int64_t shared_bytes = 0;
  bool cooperative = false;   // all blocks run at once
  bool programmatic = false;  // the kernel waits itself for those before it
  // Where the kernel looks for the order of its blocks; null: it does not.
  const long long** order = nullptr;
  std::vector<uint64_t> values;  // the bytes of each value first: an address, an int64, a float or a double
  std::vector<void*> arguments;
};

// Device code in use; unloaded by the destructor.
class LoadedBinary {
 public:
  virtual ~LoadedBinary() = default;
  // InvalidArgument when there is no such kernel.
  virtual absl::StatusOr<void*> FindKernel(const std::string& name) = 0;
  // Returns what PreparedLaunch has of a kernel; null: its blocks have one order, or none.
  virtual const long long** FindOrder(const std::string& kernel) { return nullptr; }
};

// Something on the device to be looked at, and the one number that is found.
struct Inspection {
  enum class Kind {
    kHash,     // of a range, as Hash gives it
    kGuard,    // how many bytes of a range are not those of a guard zone (GuardByte)
    kCompare,  // the largest error of an output, as Compare gives it: the bits of a double
  } kind = Kind::kHash;
  MemoryRange range;  // of whole words of 4 bytes, but for guards
  // An output's type, its f64 reference, and the scale of errors.
  v1::DataType type = v1::F32;
  DeviceAddress reference = 0;
  double scale = 0;
  DeviceAddress excused = 0;  // an f64 array of errors that are none, as EntryError takes them; 0: none are
};

// Figures of a reference.
struct ReferenceFigures {
  double scale = 0;    // root mean square of the finite entries
  double largest = 0;  // of their absolute values
  int64_t finite = 0;  // how many there are
};

struct Inspected {
  std::vector<uint64_t> found;  // by inspection
  double seconds = 0;           // how long the run waited for them
};

// A backend keeps here what it makes only once for launches that are repeated. Goes before their binaries.
class RepeatedLaunches {
 public:
  virtual ~RepeatedLaunches() = default;
};

struct RunOptions {
  absl::Span<const MemoryRange> poison;  // overwritten with NaN before the run, outside the timed region
  absl::Span<const MemoryCopy> restore;  // made then, too: what runs overwrite of their inputs
  absl::Span<const MemoryRange> guards;  // overwritten with what guard zones hold
  bool flush_cache = false;              // afterwards, and before the run: nothing of the data is in cache
  int repeat = 1;                        // runs back to back, on a GPU as one CUDA graph; the mean counts
  int lead = 0;                          // runs before those, outside the timed region
  // Kernels that look for an order get this one, and one_thread lets blocks of all kernels run one after
  // another. A host alone has either.
  BlockOrder order = BlockOrder::kUsual;
  bool one_thread = false;
  std::function<void()> before_launch;  // called when only the launches are left, the lead's among them
  // Kept of the same launches from run to run; null: nothing is kept.
  std::unique_ptr<RepeatedLaunches>* kept = nullptr;
  std::function<void()> after_run;           // called when the launches have ended well, before what follows
  absl::Span<const Inspection> inspections;  // right after the run; *inspected is not null then
  Inspected* inspected = nullptr;
};

// Result of comparing an output with its reference.
struct Comparison {
  double max_relative_error = 0;  // infinite when an entry is not a number and should be, or the reverse
  int64_t worst_index = -1;       // an entry with that error; -1 when all are equal
};

class ExecutionBackend {
 public:
  virtual ~ExecutionBackend() = default;

  virtual v1::Target target() const = 0;
  // Fills all fields, with bandwidth and launch time measured, in about a second. RunnerProcess::Describe
  // adds the version of the host's compiler.
  virtual absl::StatusOr<v1::DeviceDescription> Describe() = 0;
  virtual v1::MeasurementConditions Conditions() = 0;
  virtual absl::StatusOr<MemoryInfo> Memory() = 0;

  // Addresses are aligned to 256 bytes at least; 0 bytes are allowed.
  virtual absl::StatusOr<DeviceAddress> Allocate(int64_t bytes) = 0;
  virtual void Free(DeviceAddress address) = 0;
  virtual absl::Status CopyIn(DeviceAddress to, const void* from, int64_t bytes) = 0;
  virtual absl::Status CopyOut(void* to, DeviceAddress from, int64_t bytes) = 0;

  virtual absl::StatusOr<std::unique_ptr<LoadedBinary>> Load(const std::string& content) = 0;
  // Checks that the launch is possible, makes it so (dynamic shared memory above the default), says what the
  // kernel uses. Call once for every launch before Run.
  virtual absl::StatusOr<v1::KernelAttributes> Prepare(const PreparedLaunch& launch) = 0;
  // Runs the launches one after another and waits. Returns the seconds from the start of the first to the end
  // of the last, over `repeat`. Launches with an empty grid are skipped.
  virtual absl::StatusOr<double> Run(const std::vector<PreparedLaunch>& launches,
                                     const RunOptions& options) = 0;
  // Returns how long threads of the last Run waited for a processor while it was timed, all together, over
  // the time that it took; 0 where they hardly did, a device of its own computes, or the system does not say.
  virtual double waited_share() const { return 0; }
  // Runs a known kernel and checks what it wrote.
  virtual absl::Status Probe() = 0;

  // Entries i of [0, count) become InputEntry(rule, key, i): the same values on every device.
  virtual absl::Status Fill(DeviceAddress to, v1::DataType type, int64_t count, const InputRule& rule,
                            uint64_t key) = 0;
  // Converts to f64 exactly.
  virtual absl::Status Widen(DeviceAddress to_f64, DeviceAddress from, v1::DataType type, int64_t count) = 0;
  // Hash of memory, independent of how the work is divided. `bytes` is a multiple of 4.
  virtual absl::StatusOr<uint64_t> Hash(DeviceAddress from, int64_t bytes) = 0;
  // Returns the figures of the entries as they are in `type`.
  virtual absl::StatusOr<ReferenceFigures> Figures(DeviceAddress reference_f64, v1::DataType type,
                                                   int64_t count) = 0;
  // Compares entries of `type` with an f64 reference: finds the largest EntryError of all. `excused` is that
  // of Inspection.
  virtual absl::StatusOr<Comparison> Compare(DeviceAddress output, v1::DataType type,
                                             DeviceAddress reference_f64, int64_t count, double scale,
                                             DeviceAddress excused) = 0;
  // Entries of an f64 array become PerturbedEntry of themselves.
  virtual absl::Status Perturb(DeviceAddress entries, int64_t count, double most, uint64_t key) = 0;
  // excused[i] becomes `factor` times the difference of two references' entries i, as `type` has them, unless
  // it is more already. `is_first`: it holds nothing yet.
  virtual absl::Status Excuse(DeviceAddress excused, DeviceAddress reference, DeviceAddress other,
                              v1::DataType type, int64_t count, double factor, bool is_first) = 0;

  // These do several at once; unless a backend knows better, one after another by the calls above.
  virtual absl::Status WriteGuards(absl::Span<const MemoryRange> guards);
  virtual absl::StatusOr<std::vector<uint64_t>> Inspect(absl::Span<const Inspection> inspections);

  // Seconds since the device was last said to have worked; infinite before that. A device that has been idle
  // has to be warmed up.
  double idle_seconds() const;
  void HasWorked() { worked_until_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point worked_until_{};
};

}  // namespace fusion
