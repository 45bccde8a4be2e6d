// The report says what became of each loop of a file, for programs to read.
#pragma once

#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/Function.h>
#include <llvm/Support/JSON.h>

#include <string>

namespace fusion {

class LoopReport {
 public:
  // The file's name is in the variable FUSION_CC_REPORT, which fusion-cc sets for -fusion-report=FILE.
  LoopReport();
  bool IsWanted() const { return !file_.empty(); }
  // text: what is assumed of a partitioned loop, or why it is none.
  void Add(const llvm::DebugLoc& place, const llvm::Function& function, bool is_partitioned,
           const std::string& text);
  // Writes an array of objects with file, line, column, function, partitioned and text, behind those that the
  // report has already: clang compiles the files of a command one after another, each in a process of its
  // own.
  void Write() const;

 private:
  std::string file_;
  llvm::json::Array loops_;
};

}  // namespace fusion
