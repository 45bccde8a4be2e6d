// NVIDIA GPUs: kernels in CUDA C++ for NVRTC and nvcc.
#pragma once

#include "server/target/exported_code.h"
#include "server/target/target.h"

namespace fusion {

const Target& CudaTarget();

// These are the parts of the target, by file.
// printer.cc: extern "C" __global__ void name(parameters...)
std::string PrintCuda(const ir::Kernel& kernel);
const ExportedCode& CudaExportedCode();  // exported_code.cc

}  // namespace fusion
