// Partitioned loops for users' programs: iterations split between the processors and a GPU by a ratio that
// the tuner finds while the program runs.
//
// clang-format off
//   fusion::CudaPartitionDevice device;
//   fusion::TunedPartition split(tuner, "scale");
//   fusion::PartitionedLoop loop(&device, &split);
//   const int v = loop.AddArray(fusion::PartitionArray::ReadRows(host_v, n, 1));
//   const int c = loop.AddArray(fusion::PartitionArray::WriteRows(host_c, n, 1));
//   for (...) {  // the program calls the loop again and again
//     fusion::PartitionedRun run = fusion::partitioned_for(
//         loop, n,
//         [&](int64_t begin, int64_t end) {
//           for (int64_t i = begin; i < end; ++i) host_c[i] = k * host_v[i];
//         },
//         [&](cudaStream_t stream, int64_t begin, int64_t end, const fusion::DevicePointers& on_device) {
//           Scale<<<(end - begin + 255) / 256, 256, 0, stream>>>(
//               begin, end, k, on_device.Get<double>(v), on_device.Get<double>(c));
//           return std::string();
//         });
//     if (!run.status.done()) ...
//   }
// clang-format on
//
// g++ with the CUDA runtime's headers, or nvcc; C++17. Links with the CUDA runtime and the tuning library;
// without a GPU the same program runs on the host. partitioned_loop.h has the calls, tuned_partition.h the
// parameters that are tuned.
#pragma once

#include <utility>

#include "client/tuner/cuda_partition_device.h"
#include "client/tuner/partitioned_loop.h"
#include "client/tuner/tuned_partition.h"

namespace fusion {

template <class Device, class HostPart, class DevicePart>
PartitionedRun partitioned_for(BasicPartitionedLoop<Device>& loop, int64_t n, HostPart&& host_part,
                               DevicePart&& device_part) {
  return loop.Run(n, std::forward<HostPart>(host_part), std::forward<DevicePart>(device_part));
}

}  // namespace fusion
