// Loop bodies as kernels: PTX that the driver of whatever GPU is there compiles when the program runs.
#pragma once

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>

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

// Returns the PTX of all kernels. A process of its own makes it, so that what LLVM's back end cannot do ends
// that one: then, or where it takes too long, the text is empty and `error` says why.
std::string MakeDeviceCode(const llvm::Module& module, const std::vector<DeviceKernel>& kernels,
                           std::string& error);

}  // namespace fusion
