#include "worker/measure/execution_backend.h"

#include <bit>
#include <limits>

#include "base/status_macros.h"

namespace fusion {

absl::Status ExecutionBackend::WriteGuards(absl::Span<const MemoryRange> guards) {
  std::vector<unsigned char> bytes;
  for (const MemoryRange& guard : guards) {
    bytes.resize(guard.bytes);
    for (int64_t i = 0; i < guard.bytes; ++i) bytes[i] = GuardByte(guard.address + i);
    FUSION_RETURN_IF_ERROR(CopyIn(guard.address, bytes.data(), guard.bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> ExecutionBackend::Inspect(absl::Span<const Inspection> inspections) {
  std::vector<uint64_t> found;
  for (const Inspection& inspection : inspections) {
    const MemoryRange& range = inspection.range;
    switch (inspection.kind) {
      case Inspection::Kind::kHash: {
        FUSION_ASSIGN_OR_RETURN(const uint64_t hash, Hash(range.address, range.bytes));
        found.push_back(hash);
        break;
      }
      case Inspection::Kind::kGuard: {
        std::vector<unsigned char> bytes(range.bytes);
        FUSION_RETURN_IF_ERROR(CopyOut(bytes.data(), range.address, range.bytes));
        uint64_t changed = 0;
        for (int64_t i = 0; i < range.bytes; ++i) changed += bytes[i] != GuardByte(range.address + i);
        found.push_back(changed);
        break;
      }
      case Inspection::Kind::kCompare: {
        const int64_t count = range.bytes / (inspection.type == v1::F64 ? 8 : 4);
        FUSION_ASSIGN_OR_RETURN(const Comparison comparison,
                                Compare(range.address, inspection.type, inspection.reference, count,
                                        inspection.scale, inspection.excused));
        found.push_back(std::bit_cast<uint64_t>(comparison.max_relative_error));
        break;
      }
    }
  }
  return found;
}

double ExecutionBackend::idle_seconds() const {
  if (worked_until_ == std::chrono::steady_clock::time_point())
    return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - worked_until_).count();
}

}  // namespace fusion
