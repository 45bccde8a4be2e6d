// Runs kernels of loops on this machine, beside the C that they were made from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/loop_kernels/interface.h"
#include "server/loop_kernels/lowering.h"

namespace fusion::testing {

// A program that was compiled; the functions in it have names.
class SharedObject {
 public:
  // Compiles with GCC, as C or as C++, without contraction of a*b + c, so that results are the same bit for
  // bit. Fails the test and returns null where that fails.
  static std::unique_ptr<SharedObject> Compile(const std::string& source, bool c);
  void* Find(const std::string& function) const;

 private:
  explicit SharedObject(void* handle) : handle_(handle) {}
  void* handle_;
};

// Arrays in the order of an interface, each as its entries lie in memory.
using ArrayBytes = std::vector<std::vector<char>>;

// Fills arrays: integers from -99 to 99, reals between -1 and 1. Fails the test where an extent has no value.
ArrayBytes RandomArrays(const LoopInterface& interface, const IntegerValues& values, uint64_t seed);

// Prints the C function `name` of the loops, with a wrapper `NAME_run(const int* integers, const double*
// scalars, void** arrays)`.
std::string SerialSource(const CProgram& program, const LoopInterface& interface, const std::string& name);
// Prints the kernels for the host; needs HostRuntime() once before it. `backwards`: the last blocks and
// threads come first, so that iterations are not in their order in the text by chance.
std::string KernelSource(const LoopCode& code, bool backwards = false);
std::string HostRuntime();

// Runs either on the arrays. Scalars have the value 0.75.
void RunSerial(const SharedObject& object, const std::string& name, const LoopInterface& interface,
               const IntegerValues& values, ArrayBytes* arrays);
void RunKernels(const SharedObject& object, const LoopCode& code, const LoopInterface& interface,
                const IntegerValues& values, ArrayBytes* arrays);

// Calls `launch` for each launch with the values of its arguments, the bytes of each first: addresses of the
// interface's arrays and of the workspaces as given.
using OnCall =
    std::function<absl::Status(const LoopKernel&, int64_t blocks, std::vector<uint64_t> arguments)>;
absl::Status ForEachCall(const LoopCode& code, const LoopInterface& interface, const IntegerValues& values,
                         const std::vector<uint64_t>& arrays,
                         const std::map<std::string, uint64_t>& workspaces, const OnCall& launch);

}  // namespace fusion::testing
