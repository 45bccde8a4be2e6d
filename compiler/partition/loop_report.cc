#include "compiler/partition/loop_report.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/FormatVariadic.h>
#include <llvm/Support/MemoryBuffer.h>
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
  json::Array all;
  // A pipe or a terminal is not read.
  if (sys::fs::is_regular_file(file_))
    if (ErrorOr<std::unique_ptr<MemoryBuffer>> before = MemoryBuffer::getFile(file_)) {
      Expected<json::Value> known = json::parse((*before)->getBuffer());
      if (!known)
        consumeError(known.takeError());
      else if (json::Array* loops = known->getAsArray())
        all = std::move(*loops);
    }
  all.insert(all.end(), loops_.begin(), loops_.end());
  std::error_code failed;
  raw_fd_ostream out(file_, failed);
  if (failed)
    errs() << "fusion-cc: cannot write " << file_ << ": " << failed.message() << "\n";
  else
    out << formatv("{0:2}\n", json::Value(std::move(all)));
}

}  // namespace fusion
