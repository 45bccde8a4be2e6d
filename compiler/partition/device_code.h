// Loop bodies as kernels: PTX that the driver of whatever GPU is there compiles when the program runs.
#pragma once

#include <llvm/ADT/SmallString.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/Support/Program.h>

#include <array>
#include <string>
#include <vector>

#include "compiler/partition/columns.h"

namespace fusion {

// Returns "" where a GPU computes the same bits as the host does; else what of the body keeps it from that.
std::string WhyNoKernel(const llvm::Function& body, const llvm::StructType& context);

// A function of a range of iterations that is to be a kernel, too (client/partition/site.h says how it is
// called).
struct DeviceKernel {
  llvm::Function* body;
  llvm::StructType* context;
  std::string name;
  ColumnLoops columns;
};

// A process of its own makes the PTX of a module's kernels, while this one goes on: what LLVM's back end
// cannot do ends that process alone.
class DeviceCompile {
 public:
  DeviceCompile() = default;
  DeviceCompile(const DeviceCompile&) = delete;
  DeviceCompile& operator=(const DeviceCompile&) = delete;
  ~DeviceCompile();

  // Returns false where the process cannot be made.
  bool Begin(const llvm::Module& module, const std::vector<DeviceKernel>& kernels);
  // Waits for the text and returns it. It is empty where there is none, or it took too long; `error` then
  // says why, and is empty where nothing was begun.
  std::string Finish(std::string& error);

 private:
  enum { kInput, kOutput, kMessages };

  bool Start(const llvm::Module& device);

  llvm::sys::ProcessInfo process_;
  std::array<llvm::SmallString<128>, 3> files_;  // "": not made
  std::string error_;
};

}  // namespace fusion
