// Kernels of our own: a small PTX module that every driver can load, and the data operations in CUDA C++ for
// NVRTC.
#pragma once

#include <cstdint>
#include <string>

namespace fusion {

// fusion_guard and fusion_inspect take an InspectionTable by value: at most 4096 bytes of parameters.
inline constexpr int kInspectionTableEntries = 56;
struct InspectionTable {
  struct Entry {
    uint64_t address = 0;
    long long count = 0;  // of words, bytes or entries
    uint64_t reference = 0;
    double scale = 0;
    uint64_t excused = 0;
    int kind = 0;  // Inspection::Kind
    int type = 0;  // of a hash: whether a word of 32 bits is left
    int first_block = 0, blocks = 0;
  } entries[kInspectionTableEntries];
  int count = 0;
};
static_assert(sizeof(InspectionTable::Entry) == 56 &&
              sizeof(InspectionTable) == 56 * kInspectionTableEntries + 8);

// fusion_empty(); fusion_delay(u64 nanoseconds): one thread that waits.
extern const char kSupportPtx[];

// fusion_fill, fusion_widen, fusion_hash, fusion_largest, fusion_squares, fusion_compare, fusion_guard,
// fusion_inspect, fusion_perturb, fusion_excuse on top of entry_operations.h. Compile with -default-device.
std::string SupportKernelsSource();

}  // namespace fusion
