// The processors of a machine: kernels in C++ with OpenMP for its compiler.
#pragma once

#include "server/target/exported_code.h"
#include "server/target/target.h"

namespace fusion {

const Target& HostTarget();

// These are the parts of the target, by file.
// printer.cc: extern "C" void name(long long grid, void* const* arguments); arguments[i] points at the value
// of parameter i, as in CUDA's kernelParams. Blocks run on OpenMP threads.
std::string PrintHost(const ir::Kernel& kernel);
const ExportedCode& HostExportedCode();  // exported_code.cc

}  // namespace fusion
