// The functions of a module as they came. Loops are looked for in copies of them, and where none was
// partitioned the function is again what it was: nothing else of the user's program is changed.
#pragma once

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ValueHandle.h>

#include <memory>
#include <vector>

namespace fusion {

class Originals {
 public:
  // The functions of `selected` are copies of themselves from now on, but those that cannot be copied; all
  // others are mere declarations.
  Originals(llvm::Module& module, const llvm::SetVector<llvm::Function*>& selected);
  Originals(const Originals&) = delete;
  Originals& operator=(const Originals&) = delete;

  // Brings the first bodies into the module, as functions that nobody calls. Until then no pass sees them.
  // All functions have their bodies again.
  void Rejoin();
  // Returns true for a function in which loops may be looked for.
  bool IsCopy(const llvm::Function& function) const;
  // After Rejoin. Gives all functions their first bodies again, but those in `keep`, whose first bodies are
  // forgotten.
  void Restore(const std::vector<llvm::Function*>& keep);

 private:
  struct Pair {
    llvm::WeakVH copy;         // null once it was inlined everywhere and removed
    llvm::Function* original;  // in store_, then in the module
    llvm::GlobalValue::LinkageTypes linkage;
    llvm::Comdat* comdat = nullptr;
  };
  // Where a body is while its function has none, or another.
  llvm::Function* TakeBody(llvm::Function& function);

  llvm::Module& module_;
  std::unique_ptr<llvm::Module> store_;
  std::vector<Pair> pairs_, others_;
};

}  // namespace fusion
