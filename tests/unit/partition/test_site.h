// Sites as the compiler would write them, made by hand.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "client/partition/partitioner.h"
#include "client/partition/site.h"

namespace fusion {

inline constexpr uint32_t kRead = FUSION_PARTITION_READ;
inline constexpr uint32_t kWritten = FUSION_PARTITION_WRITTEN;
inline constexpr uint32_t kPartial = FUSION_PARTITION_PARTIAL;
inline constexpr uint32_t kUnbounded = FUSION_PARTITION_UNBOUNDED;

// Iteration i touches bytes c0 + c1 * i up to and without d0 + d1 * i.
struct TestAccess {
  uint32_t array, flags;
  int64_t c0, c1, d0, d1;
};

class TestSite {
 public:
  TestSite(fusion_partition_body body, std::vector<void*> arrays, std::vector<TestAccess> accesses,
           std::vector<fusion_partition_pointer> pointers, uint32_t context_bytes,
           std::vector<fusion_partition_pair> pairs = {}, double first_work = -1)
      : pointers_(std::move(pointers)), pairs_(std::move(pairs)) {
    for (void* array : arrays) facts_.push_back(reinterpret_cast<int64_t>(array));
    for (const TestAccess& access : accesses) {
      accesses_.push_back({access.array, access.flags});
      facts_.insert(facts_.end(), {access.c0, access.c1, access.d0, access.d1});
    }
    facts_.push_back(std::bit_cast<int64_t>(first_work));
    site_.version = FUSION_PARTITION_VERSION;
    site_.line = 12;
    site_.column = 3;
    site_.context_bytes = context_bytes;
    site_.file = "loop.c";
    site_.function = "Loop";
    site_.body = body;
    site_.arrays = static_cast<uint32_t>(arrays.size());
    site_.accesses = static_cast<uint32_t>(accesses_.size());
    site_.pointers = static_cast<uint32_t>(pointers_.size());
    site_.pairs = static_cast<uint32_t>(pairs_.size());
    site_.access = accesses_.data();
    site_.pointer = pointers_.data();
    site_.pair = pairs_.data();
    site_.state = nullptr;
  }
  TestSite(const TestSite&) = delete;
  TestSite& operator=(const TestSite&) = delete;

  fusion_partition_site* get() { return &site_; }
  const int64_t* facts() const { return facts_.data(); }

  int Reorders(Partitioner& partitioner, int64_t iterations, double work) {
    return partitioner.Reorders(&site_, iterations, work, facts());
  }
  int Enter(Partitioner& partitioner, int64_t iterations, void* context, double work = 1e6) {
    return partitioner.Enter(&site_, iterations, work, context, facts());
  }

 private:
  std::vector<int64_t> facts_;
  std::vector<fusion_partition_access> accesses_;
  std::vector<fusion_partition_pointer> pointers_;
  std::vector<fusion_partition_pair> pairs_;
  fusion_partition_site site_{};
};

inline PartitionSettings OnSimulatedDevice(double split = 0.5, int chunks = 4) {
  PartitionSettings settings;
  settings.mode = PartitionMode::kDevice;
  settings.device = PartitionDeviceKind::kSimulated;
  settings.split = split;
  settings.chunks = chunks;
  settings.threads = 3;
  return settings;
}

}  // namespace fusion
