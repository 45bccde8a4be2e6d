// Kernels of our own: a small PTX module that every driver can load, and the data operations in CUDA C++ for
// NVRTC.
#pragma once

#include <string>

namespace fusion {

// fusion_empty(); fusion_delay(u64 nanoseconds): one thread that waits.
extern const char kSupportPtx[];

// fusion_fill, fusion_widen, fusion_hash, fusion_largest, fusion_squares, fusion_compare on top of
// entry_operations.h. Compile with -default-device.
std::string SupportKernelsSource();

}  // namespace fusion
