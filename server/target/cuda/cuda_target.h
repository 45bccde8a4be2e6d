// NVIDIA GPUs: kernels in CUDA C++ for NVRTC and nvcc.
#pragma once

#include "server/target/exported_code.h"
#include "server/target/target.h"

namespace fusion {

const Target& CudaTarget();

// The parts of it, by file.
std::string PrintCuda(
    const ir::Kernel& kernel);           // printer.cc: extern "C" __global__ void name(parameters...)
const ExportedCode& CudaExportedCode();  // exported_code.cc

}  // namespace fusion
