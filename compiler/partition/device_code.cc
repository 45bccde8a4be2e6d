#include "compiler/partition/device_code.h"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <utility>

#include "compiler/partition/loads_first.h"

namespace fusion {

using namespace llvm;

namespace {

constexpr uint64_t kMostContextBytes =
    4000;  // a kernel's parameters are 4,096 bytes at most (CUDA C++ Programming Guide)
constexpr unsigned kMostSeconds = 60;  // for the code of one file

// Intrinsics that are exact, or rounded as IEEE 754 says, on both sides.
bool IsExact(Intrinsic::ID id) {
  switch (id) {
    case Intrinsic::fma:
    case Intrinsic::fmuladd:
    case Intrinsic::sqrt:
    case Intrinsic::fabs:
    case Intrinsic::copysign:
    case Intrinsic::floor:
    case Intrinsic::ceil:
    case Intrinsic::trunc:
    case Intrinsic::smax:
    case Intrinsic::smin:
    case Intrinsic::umax:
    case Intrinsic::umin:
    case Intrinsic::abs:
    case Intrinsic::ctpop:
    case Intrinsic::ctlz:
    case Intrinsic::cttz:
    case Intrinsic::bswap:
    case Intrinsic::bitreverse:
    case Intrinsic::fshl:
    case Intrinsic::fshr:
      return true;
    default:
      return false;
  }
}

bool IsTypeOfBoth(const Type& type) {
  return type.isFloatTy() || type.isDoubleTy() || type.isPointerTy() || type.isVoidTy() || type.isLabelTy() ||
         (type.isIntegerTy() && type.getIntegerBitWidth() <= 64);
}

std::string WhyNoInstruction(const Instruction& instruction) {
  if (!IsTypeOfBoth(*instruction.getType())) return "has values of a type that GPUs do not compute with";
  if (auto* store = dyn_cast<StoreInst>(&instruction);
      store != nullptr && !IsTypeOfBoth(*store->getValueOperand()->getType()))
    return "stores values of a type that GPUs do not compute with";
  // With these freedoms one compiler may round, or keep a sign of 0, where the other does not.
  if (isa<FPMathOperator>(instruction) &&
      (instruction.hasApproxFunc() || instruction.hasAllowReassoc() || instruction.hasAllowReciprocal() ||
       instruction.hasAllowContract() || instruction.hasNoSignedZeros()))
    return "computes with fast math, whose results differ from one machine to another";
  if (auto* call = dyn_cast<CallBase>(&instruction)) {
    auto* intrinsic = dyn_cast<IntrinsicInst>(call);
    if (intrinsic == nullptr || !IsExact(intrinsic->getIntrinsicID())) return "calls " + NameOfCallee(*call);
  }
  const unsigned code = instruction.getOpcode();
  if (code == Instruction::SDiv || code == Instruction::UDiv || code == Instruction::SRem ||
      code == Instruction::URem) {
    // A GPU goes on after a division by 0, where the host's program would end.
    auto* divisor = dyn_cast<ConstantInt>(instruction.getOperand(1));
    if (divisor == nullptr || divisor->isZero() || divisor->isMinusOne())
      return "divides by an integer that may be 0";
  }
  if (code == Instruction::FRem) return "has a remainder of floating-point numbers";
  if (code == Instruction::FPToSI || code == Instruction::FPToUI)
    return "converts to integers, which differs where the number is too large";
  return "";
}

// Rounds twice where the host does: it has an instruction for both operations, or not.
void SplitMultiplyAdds(Function& function) {
  for (BasicBlock& block : function)
    for (Instruction& instruction : make_early_inc_range(block)) {
      auto* both = dyn_cast<IntrinsicInst>(&instruction);
      if (both == nullptr || both->getIntrinsicID() != Intrinsic::fmuladd) continue;
      IRBuilder<> builder(both);
      both->replaceAllUsesWith(builder.CreateFAdd(
          builder.CreateFMul(both->getArgOperand(0), both->getArgOperand(1)), both->getArgOperand(2)));
      both->eraseFromParent();
    }
}

// Returns the body with one more parameter, the column that it runs alone; null where there is none.
Function* OfColumn(Function& body, ColumnLoops columns) {
  SmallVector<Type*, 4> parameters(body.getFunctionType()->params());
  parameters.push_back(Type::getInt64Ty(body.getContext()));
  auto* type = FunctionType::get(body.getReturnType(), parameters, false);
  Function* cut =
      Function::Create(type, GlobalValue::InternalLinkage, body.getName() + ".column", body.getParent());
  ValueToValueMapTy values;
  for (unsigned at = 0; at < body.arg_size(); ++at) values[body.getArg(at)] = cut->getArg(at);
  SmallVector<ReturnInst*, 2> returns;
  CloneFunctionInto(cut, &body, values, CloneFunctionChangeType::LocalChangesOnly, returns);
  body.eraseFromParent();
  if (CutToColumn(*cut, columns, cut->getArg(3))) return cut;
  cut->eraseFromParent();
  return nullptr;
}

void MakeKernel(Module& device, Function* body, const DeviceKernel& wanted) {
  LLVMContext& of_types = device.getContext();
  const bool fuses = body->getFnAttribute("target-features").getValueAsString().contains("+fma");
  body->setAttributes(AttributeList());
  const bool has_columns = wanted.columns != ColumnLoops::kNone;
  if (has_columns) body = OfColumn(*body, wanted.columns);
  if (body == nullptr) return;  // the run time finds no kernel, and the loop runs on the host
  PutLoadsFirst(*body);
  body->addFnAttr(Attribute::AlwaysInline);
  body->addFnAttr(Attribute::NoUnwind);
  body->setLinkage(GlobalValue::InternalLinkage);
  if (!fuses) SplitMultiplyAdds(*body);
  IRBuilder<> builder(of_types);
  Type* integer = builder.getInt64Ty();
  SmallVector<Type*, 5> parameters{integer, integer, builder.getPtrTy()};
  if (has_columns) parameters.append({integer, integer});
  Function* kernel = Function::Create(FunctionType::get(builder.getVoidTy(), parameters, false),
                                      GlobalValue::ExternalLinkage, wanted.name, device);
  Value *first = kernel->getArg(0), *last = kernel->getArg(1), *context = kernel->getArg(2);
  kernel->addParamAttr(2, Attribute::getWithByValType(of_types, wanted.context));
  kernel->addParamAttr(2, Attribute::getWithAlignment(of_types, Align(8)));
  auto block = [&](const char* name) { return BasicBlock::Create(of_types, name, kernel); };
  BasicBlock *entry = block("entry"), *run = block("run"), *end = block("end");
  builder.SetInsertPoint(entry);
  auto special = [&](Intrinsic::ID id) {
    return builder.CreateZExt(builder.CreateIntrinsic(builder.getInt32Ty(), id, {}), integer);
  };
  auto thread = [&](Intrinsic::ID block_of, Intrinsic::ID size, Intrinsic::ID at) {
    return builder.CreateAdd(builder.CreateMul(special(block_of), special(size)), special(at));
  };
  Value* x = thread(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, Intrinsic::nvvm_read_ptx_sreg_ntid_x,
                    Intrinsic::nvvm_read_ptx_sreg_tid_x);
  auto after = [&](Value* iteration) { return builder.CreateAdd(iteration, builder.getInt64(1)); };
  if (has_columns) {
    Value* y = thread(Intrinsic::nvvm_read_ptx_sreg_ctaid_y, Intrinsic::nvvm_read_ptx_sreg_ntid_y,
                      Intrinsic::nvvm_read_ptx_sreg_tid_y);
    Value* height = builder.CreateMul(special(Intrinsic::nvvm_read_ptx_sreg_nctaid_y),
                                      special(Intrinsic::nvvm_read_ptx_sreg_ntid_y));
    Value* start = builder.CreateAdd(first, y);
    BasicBlock *column = block("column"), *next = block("next");
    builder.CreateCondBr(builder.CreateICmpSLT(start, last), run, end);
    builder.SetInsertPoint(run);
    PHINode* iteration = builder.CreatePHI(integer, 2, "iteration");
    iteration->addIncoming(start, entry);
    // Column 0 does what an iteration does beside its columns, even where there are none.
    Value* greatest = builder.CreateBinaryIntrinsic(
        Intrinsic::smax, builder.getInt64(0),
        builder.CreateAdd(kernel->getArg(3), builder.CreateMul(kernel->getArg(4), iteration)));
    builder.CreateCondBr(builder.CreateICmpSLE(x, greatest), column, next);
    builder.SetInsertPoint(column);
    builder.CreateCall(body, {iteration, after(iteration), context, x});
    builder.CreateBr(next);
    builder.SetInsertPoint(next);
    Value* further = builder.CreateAdd(iteration, height);
    iteration->addIncoming(further, next);
    builder.CreateCondBr(builder.CreateICmpSLT(further, last), run, end);
  } else {
    Value* iteration = builder.CreateAdd(first, x);
    builder.CreateCondBr(builder.CreateICmpSLT(iteration, last), run, end);
    builder.SetInsertPoint(run);
    builder.CreateCall(body, {iteration, after(iteration), context});
    builder.CreateBr(end);
  }
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
  auto value = [&](Constant* constant) { return ConstantAsMetadata::get(constant); };
  device.getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(MDNode::get(
          of_types, {value(kernel), MDString::get(of_types, "kernel"), value(builder.getInt32(1))}));
}

}  // namespace

std::string WhyNoKernel(const Function& body, const StructType& context) {
  const DataLayout& layout = body.getParent()->getDataLayout();
  if (layout.getTypeAllocSize(const_cast<StructType*>(&context)) > kMostContextBytes)
    return "has too many values of the function around it";
  for (Type* field : context.elements())
    if (!IsTypeOfBoth(*field)) return "has values of a type that GPUs do not compute with";
  for (const BasicBlock& block : body)
    for (const Instruction& instruction : block)
      if (std::string why = WhyNoInstruction(instruction); !why.empty()) return why;
  return "";
}

DeviceCompile::~DeviceCompile() {
  std::string error;
  Finish(error);
}

bool DeviceCompile::Begin(const Module& module, const std::vector<DeviceKernel>& kernels) {
  ValueToValueMapTy copies;
  std::unique_ptr<Module> device = CloneModule(module, copies, [&](const GlobalValue* global) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const DeviceKernel& kernel) { return kernel.body == global; });
  });
  StripDebugInfo(*device);
  if (NamedMDNode* flags = device->getModuleFlagsMetadata()) flags->eraseFromParent();
  device->setTargetTriple("nvptx64-nvidia-cuda");
  device->setDataLayout("e-i64:64-i128:128-v16:16-v32:32-n16:32:64");
  for (const DeviceKernel& kernel : kernels) MakeKernel(*device, cast<Function>(copies[kernel.body]), kernel);
  // Whatever else the file has is not of the device.
  for (GlobalVariable& variable : make_early_inc_range(device->globals()))
    if (variable.use_empty()) variable.eraseFromParent();
  for (GlobalAlias& alias : make_early_inc_range(device->aliases())) alias.eraseFromParent();
  for (Function& function : make_early_inc_range(*device))
    if (function.isDeclaration() && function.use_empty()) function.eraseFromParent();
  return Start(*device);
}

bool DeviceCompile::Start(const Module& device) {
  const ErrorOr<std::string> compiler = sys::findProgramByName("clang-19");
  if (!compiler) {
    error_ = "clang-19 is not on the path";
    return false;
  }
  int number = 0;
  for (const char* kind : {"bc", "ptx", "txt"})
    if (sys::fs::createTemporaryFile("fusion", kind, files_[number++])) {
      error_ = "no temporary file";
      return false;
    }
  {
    std::error_code failed;
    raw_fd_ostream file(files_[kInput], failed);
    WriteBitcodeToFile(device, file);
  }
  // Old PTX runs on every later GPU: the driver compiles it for the one that is there.
  const StringRef arguments[] = {*compiler,
                                 "--target=nvptx64-nvidia-cuda",
                                 "-march=sm_75",
                                 "-nogpulib",
                                 "--cuda-feature=+ptx63",
                                 "-O3",
                                 "-Wno-everything",
                                 "-S",
                                 "-x",
                                 "ir",
                                 files_[kInput],
                                 "-o",
                                 files_[kOutput]};
  const std::optional<StringRef> streams[] = {StringRef(""), StringRef(files_[kMessages]),
                                              StringRef(files_[kMessages])};
  bool failed = false;
  process_ =
      sys::ExecuteNoWait(*compiler, arguments, std::nullopt, streams, /*MemoryLimit=*/0, &error_, &failed);
  return !failed;
}

std::string DeviceCompile::Finish(std::string& error) {
  std::string made;
  if (process_.Pid != sys::ProcessInfo::InvalidPid) {
    const int status = sys::Wait(process_, kMostSeconds, &error_).ReturnCode;
    process_ = sys::ProcessInfo();
    const ErrorOr<std::unique_ptr<MemoryBuffer>> text =
        MemoryBuffer::getFile(files_[status == 0 ? kOutput : kMessages]);
    if (status == 0 && text) made = (*text)->getBuffer().str();
    if (status != 0 && error_.empty() && text) error_ = (*text)->getBuffer().split('\n').first.str();
  }
  for (SmallString<128>& file : files_)
    if (!file.empty()) sys::fs::remove(file);
  files_ = {};
  error = std::exchange(error_, "");
  return made;
}

}  // namespace fusion
