// Mapped loops become kernels in IR, and what a host does to launch them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/loops/evaluate.h"
#include "server/loops/mapping.h"
#include "server/lowering/kernel_ir.h"
#include "server/parse/error_list.h"

namespace fusion {

struct LoopArgument {
  enum class Kind {
    kArray,      // its address
    kWorkspace,  // likewise: of LoopCode::workspaces
    kScalar,     // a real number, by value
    kInteger,    // as a 64-bit integer: a size, or a counter or variable of the host
  };
  Kind kind = Kind::kArray;
  std::string name = {};  // in the text
  CType type = CType::kInt;
  bool writes = false;  // kArray, kWorkspace
};

struct LoopKernel {
  ir::Kernel kernel;
  std::vector<LoopArgument> arguments;  // in the order of kernel.parameters
  std::vector<CExpressionPtr> blocks;   // their product is the grid, if all are above 0
  int64_t shared_bytes = 0;
  std::vector<std::string> cached;  // arrays of which a block has a part in shared memory
};

// The host does these steps in order.
struct HostStep {
  enum class Kind { kLoop, kIf, kLet, kLaunch };
  Kind kind = Kind::kLaunch;
  CStatementPtr statement = nullptr;  // kLoop, kIf: its head; kLet: a declaration
  int kernel = 0;                     // kLaunch
  std::vector<HostStep> body = {}, otherwise = {};
};

struct RegionSteps {
  std::vector<CVariable> scope;  // of CRegion
  std::vector<HostStep> steps;
};

struct LoopCode {
  std::vector<LoopKernel> kernels;  // in the order of the text
  std::vector<RegionSteps> regions;
  // Arrays that one kernel leaves something in for the next. Entries of integers lie in f64 under force_f64.
  std::vector<CVariable> workspaces;
};

struct LoopLoweringOptions {
  // Names that are constants in the code: every parameter, at least, that says how many threads a block has.
  IntegerValues constants;
  bool cached = false;       // what a block reads again goes through shared memory, where that is possible
  bool reuse = true;         // what a thread uses again stays in registers (reuse.h)
  bool force_f64 = false;    // every number becomes f64: the reference
  std::string prefix = "k";  // of the kernels' names
};

// `errors`: what the code generator has no kernels for.
LoopCode LowerLoops(const MappedLoops& mapped, const LoopLoweringOptions& options, ErrorList* errors);

}  // namespace fusion
