#include "compiler/partition/originals.h"

#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>

namespace fusion {

using namespace llvm;

namespace {

bool CanBeCopied(const Function& function) {
  if (function.isDeclaration() || function.hasAvailableExternallyLinkage()) return false;
  return std::none_of(function.begin(), function.end(),
                      [](const BasicBlock& block) { return block.hasAddressTaken(); });
}

// Aliases, such as those of C++ constructors, are of functions with a body.
bool IsAliased(const Function& function) {
  return std::any_of(function.user_begin(), function.user_end(),
                     [](const User* user) { return isa<GlobalAlias>(user) || isa<GlobalIFunc>(user); });
}

// Moves the body of one function, and what belongs to it, to another of the same type, which has none.
void MoveBody(Function& from, Function& to) {
  to.splice(to.begin(), &from);
  for (unsigned at = 0; at < from.arg_size(); ++at) {
    from.getArg(at)->replaceAllUsesWith(to.getArg(at));
    to.getArg(at)->takeName(from.getArg(at));
  }
  to.clearMetadata();
  to.copyMetadata(&from, 0);
  from.clearMetadata();
  if (from.hasPersonalityFn()) to.setPersonalityFn(from.getPersonalityFn());
  if (from.hasPrefixData()) to.setPrefixData(from.getPrefixData());
  if (from.hasPrologueData()) to.setPrologueData(from.getPrologueData());
  to.setAttributes(from.getAttributes());
}

}  // namespace

Function* Originals::TakeBody(Function& function) {
  Function* original = Function::Create(function.getFunctionType(), GlobalValue::InternalLinkage,
                                        function.getAddressSpace(), "", &module_);
  original->copyAttributesFrom(&function);
  original->setComdat(nullptr);
  MoveBody(function, *original);
  return original;
}

Originals::Originals(Module& module, const SetVector<Function*>& selected)
    : module_(module), store_(std::make_unique<Module>("fusion originals", module.getContext())) {
  store_->setIsNewDbgInfoFormat(module.IsNewDbgInfoFormat);
  std::vector<Function*> functions;
  for (Function& function : module)
    if (CanBeCopied(function)) functions.push_back(&function);
  for (Function* function : functions) {
    const GlobalValue::LinkageTypes linkage = function->getLinkage();
    Function* original = TakeBody(*function);
    if (selected.contains(function) || IsAliased(*function)) {
      ValueToValueMapTy values;
      for (unsigned at = 0; at < original->arg_size(); ++at) {
        values[original->getArg(at)] = function->getArg(at);
        function->getArg(at)->setName(original->getArg(at)->getName());
      }
      SmallVector<ReturnInst*, 4> returns;
      CloneFunctionInto(function, original, values, CloneFunctionChangeType::LocalChangesOnly, returns);
      pairs_.push_back({WeakVH(function), original, linkage});
      // Whoever calls it may have no body now, and passes look at nothing that cannot be reached.
      if (function->hasLocalLinkage()) function->setLinkage(GlobalValue::ExternalLinkage);
    } else {
      others_.push_back({WeakVH(function), original, linkage});
      function->setLinkage(GlobalValue::ExternalLinkage);
      others_.back().comdat = function->getComdat();
      function->setComdat(nullptr);
    }
  }
  for (const std::vector<Pair>* pairs : {&pairs_, &others_})
    for (const Pair& pair : *pairs) {
      pair.original->removeFromParent();
      store_->getFunctionList().push_back(pair.original);
    }
}

void Originals::Rejoin() {
  for (const std::vector<Pair>* pairs : {&pairs_, &others_})
    for (const Pair& pair : *pairs) {
      pair.original->removeFromParent();
      module_.getFunctionList().push_back(pair.original);
    }
  store_.reset();
  for (const Pair& pair : pairs_)
    if (Value* copy = pair.copy) cast<Function>(copy)->setLinkage(pair.linkage);
  for (Pair& pair : others_) {
    auto* function = cast<Function>(static_cast<Value*>(pair.copy));
    MoveBody(*pair.original, *function);
    function->setLinkage(pair.linkage);
    function->setComdat(pair.comdat);
    pair.original->eraseFromParent();
  }
  others_.clear();
}

bool Originals::IsCopy(const Function& function) const {
  return std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.copy == &function; });
}

void Originals::Restore(const std::vector<Function*>& keep) {
  for (Pair& pair : pairs_) {
    auto* copy = cast_or_null<Function>(static_cast<Value*>(pair.copy));
    if (copy == nullptr || std::find(keep.begin(), keep.end(), copy) != keep.end()) continue;
    copy->deleteBody();
    copy->setLinkage(pair.linkage);
    MoveBody(*pair.original, *copy);
  }
  for (Pair& pair : pairs_) pair.original->dropAllReferences();
  for (Pair& pair : pairs_) pair.original->eraseFromParent();
  pairs_.clear();
}

}  // namespace fusion
