#include "compiler/partition/loop_report.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/FormatVariadic.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdlib>

namespace fusion {

using namespace llvm;

LoopReport::LoopReport() {
  if (const char* file = std::getenv("FUSION_CC_REPORT")) file_ = file;
}

void LoopReport::Add(const DebugLoc& place, const Function& function, bool is_partitioned,
                     const std::string& text) {
  if (!IsWanted()) return;
  loops_.push_back(
      json::Object{{"file", place ? place->getFilename().str() : function.getParent()->getSourceFileName()},
                   {"line", place ? static_cast<int64_t>(place.getLine()) : 0},
                   {"column", place ? static_cast<int64_t>(place.getCol()) : 0},
                   {"function", demangle(function.getName())},
                   {"partitioned", is_partitioned},
                   {"text", text}});
}

void LoopReport::Write() const {
  if (!IsWanted()) return;
  std::error_code failed;
  raw_fd_ostream out(file_, failed);
  if (failed)
    errs() << "fusion-cc: cannot write " << file_ << ": " << failed.message() << "\n";
  else
    out << formatv("{0:2}\n", json::Value(json::Array(loops_)));
}

}  // namespace fusion
