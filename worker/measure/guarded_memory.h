// Device memory with guard zones on both sides, so that a kernel that writes outside its buffers is caught.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/measure/execution_backend.h"

namespace fusion {

// Bytes of each guard zone. A multiple of the alignment of allocations.
inline constexpr int64_t kGuardBytes = 4096;

// Bytes that a buffer of `bytes` takes with its guards, rounded up to the alignment.
int64_t GuardedBytes(int64_t bytes);

// One piece of device memory cut into buffers: guard, buffer, guard, buffer, guard. The guards hold a pattern
// that is NaN as f32 and as f64, so that entries *read* from outside a buffer show in the results too. A
// buffer ends at its guard to the byte. Not thread safe; must not outlive the backend.
class GuardedMemory {
 public:
  struct Buffer {
    std::string name;
    MemoryRange range;
  };
  // Aborted and ResourceExhausted are those of ExecutionBackend.
  static absl::StatusOr<std::unique_ptr<GuardedMemory>> Create(ExecutionBackend* backend,
                                                               int64_t capacity_bytes);
  ~GuardedMemory();

  // Forgets the buffers and cuts new ones: names and bytes in order. Requires that they fit the capacity
  // (the sum of GuardedBytes plus kGuardBytes).
  absl::Status Cut(const std::vector<std::pair<std::string, int64_t>>& buffers);
  // Does the same, but does not write the guards: RunOptions.guards may do that.
  void Lay(const std::vector<std::pair<std::string, int64_t>>& buffers);
  static int64_t Capacity(const std::vector<std::pair<std::string, int64_t>>& buffers);
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<MemoryRange>& guards() const { return guards_; }

  // Writes the pattern into all guards.
  absl::Status Arm();
  // Returns "" when all guards are whole, else which buffer was left and where ("wrote 16 bytes after the end
  // of x, ...").
  absl::StatusOr<std::string> Check();

 private:
  GuardedMemory(ExecutionBackend* backend, DeviceAddress address, int64_t capacity)
      : backend_(backend), address_(address), capacity_bytes_(capacity) {}
  ExecutionBackend* const backend_;
  const DeviceAddress address_;
  const int64_t capacity_bytes_;
  std::vector<Buffer> buffers_;
  std::vector<MemoryRange> guards_;
  std::vector<std::string> places_;  // of the guards: "before the start of x", "after the end of x"
};

}  // namespace fusion
