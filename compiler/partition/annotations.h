// Functions whose loops the program wants left alone: __attribute__((annotate("fusion_sequential"))).
#pragma once

#include <llvm/IR/Attributes.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ValueHandle.h>

#include <utility>
#include <vector>

namespace fusion {

class SequentialFunctions {
 public:
  // From now on none of them is inlined, so that their loops stay theirs.
  explicit SequentialFunctions(llvm::Module& module);
  // They have the attributes again with which they came.
  void Release();
  bool Has(const llvm::Function& function) const;

 private:
  std::vector<std::pair<llvm::WeakVH, llvm::AttributeList>> functions_;
};

}  // namespace fusion
