// Prints kernel IR as source. Deterministic: the same kernel gives the same text.
#pragma once

#include <string>
#include <vector>

#include "server/lowering/kernel_ir.h"

namespace fusion {

// extern "C" __global__ void name(parameters...)
std::string PrintCuda(const ir::Kernel& kernel);

// extern "C" void name(long long grid, void* const* arguments); arguments[i] points at the value of parameter
// i, as in CUDA's kernelParams. Blocks run on OpenMP threads.
std::string PrintHost(const ir::Kernel& kernel);

// Of ir::Statement::Kind::kVersions: the lines before each version's body; behind the last stands a "}".
std::vector<std::vector<std::string>> VersionHeads(const ir::Statement& statement);

// Replaces each "$name" by `prefix` name `suffix`.
std::string SubstituteLaneVariables(const std::string& text, const std::string& suffix);

}  // namespace fusion
