// The architectures that code is generated for, by name: what `--arch` may say, and what a CUDA architecture
// permits.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/model/device_description.h"

namespace fusion {

// "sm_75", "sm_80" ... oldest first: generated code is built for each of them in tests.
std::vector<std::string> KnownCudaArchs();

struct ArchChoice {
  std::string arch;     // one of KnownCudaArchs(), the level of a host, or "" for any
  std::string warning;  // not empty when `arch` is not what was asked for; for people
};

// What an architecture asked for stands for. A CUDA architecture that is not known ("sm_87", "sm_130") is the
// nearest older one, with a warning; so is one with features of its own ("sm_90a"). "" is any.
// InvalidArgument, naming what there is: an architecture older than all known ones, one of the other target,
// or no name of one. TARGET_AUTO permits both targets.
absl::StatusOr<ArchChoice> ChooseArch(v1::Target target, const std::string& arch);

// 90 for a device of sm_90; 0 for a host.
int ComputeCapability(const DeviceDescription& device);
// Peak of f32 over that of f64 on GPUs of a compute capability (80 for sm_80): 2 where tensor cores compute
// in f64 at its full rate; of others 32 or 64 (CUDA C++ Programming Guide, throughput of arithmetic
// instructions). What is not known: 64, as of most.
double F32OverF64(int compute_capability);

// Whether the name is that of a CUDA architecture: "sm_90".
bool IsCudaArch(const std::string& arch);

// The limits of a known CUDA architecture and the figures of a widespread card that has it, for `explain`
// when none is connected; `name` says "described, not measured". Limits: CUDA C++ Programming Guide 13, table
// "Technical Specifications per Compute Capability"; figures: NVIDIA's data sheets, copy rate 90 % of the
// memory's.
DeviceDescription DescribedCudaDevice(const std::string& known_arch);

}  // namespace fusion
