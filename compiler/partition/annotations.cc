#include "compiler/partition/annotations.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>

#include <algorithm>

namespace fusion {

using namespace llvm;

namespace {

constexpr char kSequential[] = "fusion_sequential";

bool IsSequential(const Value* text) {
  auto* global = dyn_cast<GlobalVariable>(text->stripPointerCasts());
  auto* characters = global != nullptr && global->hasInitializer()
                         ? dyn_cast<ConstantDataArray>(global->getInitializer())
                         : nullptr;
  return characters != nullptr && characters->isCString() && characters->getAsCString() == kSequential;
}

}  // namespace

// clang lists all annotations of a file in one array: of what, the text, file, line, arguments.
SequentialFunctions::SequentialFunctions(Module& module) {
  const GlobalVariable* annotations = module.getNamedGlobal("llvm.global.annotations");
  if (annotations == nullptr || !annotations->hasInitializer()) return;
  auto* rows = dyn_cast<ConstantArray>(annotations->getInitializer());
  if (rows == nullptr) return;
  for (const Use& use : rows->operands()) {
    auto* row = dyn_cast<ConstantStruct>(use);
    if (row == nullptr || row->getNumOperands() < 2 || !IsSequential(row->getOperand(1))) continue;
    auto* function = dyn_cast<Function>(row->getOperand(0)->stripPointerCasts());
    if (function == nullptr || Has(*function)) continue;
    functions_.push_back({WeakVH(function), function->getAttributes()});
    function->removeFnAttr(Attribute::AlwaysInline);
    function->addFnAttr(Attribute::NoInline);
  }
}

void SequentialFunctions::Release() {
  for (const auto& [value, attributes] : functions_)
    if (auto* function = cast_or_null<Function>(static_cast<Value*>(value)))
      function->setAttributes(attributes);
}

bool SequentialFunctions::Has(const Function& function) const {
  return std::any_of(functions_.begin(), functions_.end(),
                     [&](const auto& known) { return known.first == &function; });
}

}  // namespace fusion
