#include "compiler/partition/site.h"

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include "client/partition/site.h"
#include "compiler/partition/syncs.h"

namespace fusion {

using namespace llvm;

namespace {

constexpr int kUnknownTrips = 16;  // of a loop whose count nobody knows before

// One way in which the assumptions hold: all of these sums of factor * parameter, plus a constant, are 0 or
// at least 0.
struct LinearCondition {
  int64_t constant = 0;
  std::vector<std::pair<int64_t, const SCEV*>> terms;
  bool is_equality = false;
};

// Alternatives, each a conjunction. Those that isl writes with numbers that do not fit, or with divisions,
// are left out: the loop then runs as it was.
std::vector<std::vector<LinearCondition>> Alternatives(const isl::set& assumed) {
  std::vector<std::vector<LinearCondition>> alternatives;
  auto fits = [](const isl::val& value, int64_t& number) {
    const isl::val most(value.ctx(), static_cast<long>(INT64_MAX / 4));
    if (!value.is_int().is_true() || !value.le(most).is_true() || !value.neg().le(most).is_true())
      return false;
    number = isl_val_get_num_si(value.get());
    return true;
  };
  assumed.foreach_basic_set([&](isl::basic_set basic) -> isl::stat {
    if (isl_basic_set_dim(basic.get(), isl_dim_div) != 0) return isl::stat::ok();
    std::vector<LinearCondition> all;
    bool good = true;
    const isl::space space = basic.get_space();
    isl_constraint_list* constraints = isl_basic_set_get_constraint_list(basic.get());
    for (int index = 0; index < isl_constraint_list_n_constraint(constraints); ++index) {
      const isl::constraint constraint = isl::manage(isl_constraint_list_get_constraint(constraints, index));
      LinearCondition condition;
      condition.is_equality = isl_constraint_is_equality(constraint.get()) != 0;
      good = good && fits(isl::manage(isl_constraint_get_constant_val(constraint.get())), condition.constant);
      for (int at = 0; at < isl_constraint_dim(constraint.get(), isl_dim_param); ++at) {
        int64_t factor = 0;
        good =
            good && fits(isl::manage(isl_constraint_get_coefficient_val(constraint.get(), isl_dim_param, at)),
                         factor);
        if (factor == 0) continue;
        const isl::id name =
            isl::manage(isl_space_get_dim_id(space.get(), isl_dim_param, static_cast<unsigned>(at)));
        condition.terms.push_back({factor, IterationSpace::ParameterOf(name)});
      }
      all.push_back(std::move(condition));
    }
    isl_constraint_list_free(constraints);
    if (good) alternatives.push_back(std::move(all));
    return isl::stat::ok();
  });
  return alternatives;
}

// Writes the code of one call, at the end of the block before the loop.
class SiteWriter {
 public:
  SiteWriter(const LoopFacts& facts, ExactNumbers& numbers, Instruction* at)
      : facts_(facts),
        numbers_(numbers),
        at_(at),
        builder_(at),
        expander_(numbers.evolution(), at->getModule()->getDataLayout(), "fusion") {}

  IRBuilder<>& builder() { return builder_; }
  Value* Number(const SCEV* number) { return expander_.expandCodeFor(number, number->getType(), at_); }
  Value* Constant(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  // Returns the instructions of an iteration: of the first one where `where` is 0, of one in the middle where
  // it is 0.5.
  Value* WorkOfIteration(double where) {
    Value* sum = ConstantFP::get(builder_.getDoubleTy(), 0);
    for (const auto& [nest, instructions] : facts_.work) {
      Value* times = ConstantFP::get(builder_.getDoubleTy(), instructions);
      for (const Loop* loop : nest)
        if (loop != &numbers_.loop()) times = builder_.CreateFMul(times, Trips(*loop, where));
      sum = builder_.CreateFAdd(sum, times);
    }
    return sum;
  }
  Value* Work() { return builder_.CreateFMul(Trips(numbers_.loop(), 0.5), WorkOfIteration(0.5)); }

  Value* Holds() {
    Value* all = AtLeast(facts_.last, 0);
    for (const SCEV* number : facts_.not_negative) all = builder_.CreateAnd(all, AtLeast(number, 0));
    for (const ExactNumbers::Bound& bound : numbers_.bounds())
      all = builder_.CreateAnd(
          all, builder_.CreateFCmpOLT(
                   Magnitude(bound.number),
                   ConstantFP::get(builder_.getDoubleTy(), static_cast<double>(1ull << bound.bits))));
    Value* any = nullptr;
    for (const std::vector<LinearCondition>& conditions : Alternatives(facts_.assumed)) {
      Value* these = builder_.getTrue();
      for (const LinearCondition& condition : conditions) these = builder_.CreateAnd(these, Holds(condition));
      any = any == nullptr ? these : builder_.CreateOr(any, these);
    }
    return any == nullptr ? builder_.getFalse() : builder_.CreateAnd(all, any);
  }

 private:
  Value* AtLeast(const SCEV* number, int64_t least) {
    return builder_.CreateICmpSGE(Number(number), Constant(least));
  }

  // Parameters are 64-bit numbers, of any size: their sum is computed with 128.
  Value* Holds(const LinearCondition& condition) {
    Type* wide = builder_.getInt128Ty();
    Value* sum = ConstantInt::get(wide, static_cast<uint64_t>(condition.constant), true);
    for (const auto& [factor, parameter] : condition.terms)
      sum = builder_.CreateAdd(
          sum, builder_.CreateMul(builder_.CreateSExt(Number(parameter), wide),
                                  ConstantInt::get(wide, static_cast<uint64_t>(factor), true)));
    Value* zero = ConstantInt::get(wide, 0);
    return condition.is_equality ? builder_.CreateICmpEQ(sum, zero) : builder_.CreateICmpSGE(sum, zero);
  }

  Value* AsDouble(const SCEV* number) {
    return builder_.CreateSIToFP(Number(number), builder_.getDoubleTy());
  }

  // At least as large as the absolute values of the number and of all sums and products that it is made of.
  Value* Magnitude(const SCEV* number) {
    auto known = magnitudes_.find(number);
    if (known != magnitudes_.end()) return known->second;
    ScalarEvolution& evolution = numbers_.evolution();
    Value* result = nullptr;
    if (auto* counter = dyn_cast<SCEVAddRecExpr>(number)) {
      const Loop* loop = counter->getLoop();
      Value* times = nullptr;
      if (numbers_.loop().contains(loop)) {
        const SCEV* last = loop == &numbers_.loop() ? facts_.last : numbers_.LastCount(*loop);
        times = last == nullptr ? ConstantFP::getInfinity(builder_.getDoubleTy()) : Magnitude(last);
      } else {
        times = AsDouble(evolution.getAddRecExpr(evolution.getZero(numbers_.type()),
                                                 evolution.getOne(numbers_.type()), loop, SCEV::FlagAnyWrap));
      }
      result =
          builder_.CreateFAdd(Magnitude(counter->getStart()),
                              builder_.CreateFMul(Magnitude(counter->getStepRecurrence(evolution)), times));
    } else if (isa<SCEVAddExpr>(number) || isa<SCEVMulExpr>(number) || isa<SCEVMinMaxExpr>(number)) {
      for (const SCEV* operand : cast<SCEVNAryExpr>(number)->operands()) {
        Value* part = Magnitude(operand);
        if (result == nullptr)
          result = part;
        else
          result = isa<SCEVMulExpr>(number) ? builder_.CreateFMul(result, part)
                                            : builder_.CreateFAdd(result, part);
      }
    } else {
      result = builder_.CreateUnaryIntrinsic(Intrinsic::fabs, AsDouble(number));
      if (auto* constant = dyn_cast<SCEVConstant>(number))
        result = ConstantFP::get(builder_.getDoubleTy(),
                                 std::abs(static_cast<double>(constant->getAPInt().getSExtValue())));
    }
    magnitudes_[number] = result;
    return result;
  }

  // Returns about how often a loop runs in one iteration of those around it, so far from the first one.
  Value* Trips(const Loop& loop, double where) {
    Ranges ranges(numbers_);
    const SCEV* last = &loop == &numbers_.loop() ? facts_.last : numbers_.LastCount(loop);
    const LinearBound bound = last == nullptr ? LinearBound() : ranges.Most(last);
    if (bound.constant == nullptr || !expander_.isSafeToExpandAt(bound.constant, at_) ||
        !expander_.isSafeToExpandAt(bound.slope, at_))
      return ConstantFP::get(builder_.getDoubleTy(), kUnknownTrips);
    Value* trips = builder_.CreateFAdd(AsDouble(bound.constant), ConstantFP::get(builder_.getDoubleTy(), 1));
    if (!bound.slope->isZero() && where > 0) {
      Value* place =
          builder_.CreateFMul(AsDouble(facts_.last), ConstantFP::get(builder_.getDoubleTy(), where));
      trips = builder_.CreateFAdd(trips, builder_.CreateFMul(AsDouble(bound.slope), place));
    }
    return builder_.CreateMaxNum(trips, ConstantFP::get(builder_.getDoubleTy(), 0));
  }

  const LoopFacts& facts_;
  ExactNumbers& numbers_;
  Instruction* at_;
  IRBuilder<> builder_;
  SCEVExpander expander_;
  DenseMap<const SCEV*, Value*> magnitudes_;
};

// The constant part of a site, but for its state.
GlobalVariable* Description(const LoopFacts& facts, const Loop& loop, const OutlinedLoop& outlined,
                            const Twine& name, Module& module) {
  LLVMContext& context = module.getContext();
  IRBuilder<> builder(context);
  const StructLayout* layout = module.getDataLayout().getStructLayout(outlined.context);
  auto pairs = [&](const std::vector<std::pair<uint32_t, uint32_t>>& values) -> llvm::Constant* {
    if (values.empty()) return ConstantPointerNull::get(builder.getPtrTy());
    std::vector<uint32_t> flat;
    for (const auto& [first, second] : values) flat.insert(flat.end(), {first, second});
    llvm::Constant* data = ConstantDataArray::get(context, flat);
    auto* global = new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage, data);
    global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return global;
  };
  auto text = [&](StringRef value) -> llvm::Constant* {
    llvm::Constant* data = ConstantDataArray::getString(context, value);
    auto* global = new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage, data);
    global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return global;
  };
  std::vector<std::pair<uint32_t, uint32_t>> accesses, pointers, overlaps;
  for (const AccessRange& range : facts.ranges) accesses.push_back({range.array, range.flags});
  for (const CapturedPointer& pointer : outlined.pointers)
    pointers.push_back(
        {static_cast<uint32_t>(layout->getElementOffset(pointer.field).getFixedValue()), pointer.array});
  for (const auto& [first, second] : facts.may_overlap) overlaps.push_back({first, second});
  const DebugLoc place = loop.getStartLoc();
  const Function& around = *loop.getHeader()->getParent();
  const std::string file = place ? place->getFilename().str() : module.getSourceFileName();
  const std::string function =
      around.getSubprogram() != nullptr ? around.getSubprogram()->getName().str() : around.getName().str();
  llvm::Constant* null = ConstantPointerNull::get(builder.getPtrTy());
  auto number = [&](size_t value) -> llvm::Constant* {
    return builder.getInt32(static_cast<uint32_t>(value));
  };
  std::vector<llvm::Constant*> fields = {number(FUSION_PARTITION_VERSION),
                                         number(place ? place.getLine() : 0),
                                         number(place ? place.getCol() : 0),
                                         number(module.getDataLayout().getTypeAllocSize(outlined.context)),
                                         text(file),
                                         text(function),
                                         outlined.body != nullptr ? outlined.body : null,
                                         number(facts.accesses->arrays.size()),
                                         number(accesses.size()),
                                         number(pointers.size()),
                                         number(overlaps.size()),
                                         pairs(accesses),
                                         pairs(pointers),
                                         pairs(overlaps),
                                         outlined.kernel.empty() ? null : DeviceText(module),
                                         outlined.kernel.empty() ? null : text(outlined.kernel),
                                         number(facts.last_column.constant != nullptr ? 1 : 0),
                                         number(facts.sums.size()),
                                         number(1),  // AddSyncs adds what that needs
                                         null};
  llvm::Constant* description = ConstantStruct::getAnon(context, fields);
  return new GlobalVariable(module, description->getType(), false, GlobalValue::InternalLinkage, description,
                            name + ".site");
}

// Values that the loop leaves behind.
const SCEV* AfterLoop(Value* value, const Loop& loop, ScalarEvolution& evolution) {
  auto* instruction = dyn_cast<Instruction>(value);
  if (instruction == nullptr || !loop.contains(instruction)) return nullptr;
  return evolution.getSCEVAtScope(value, loop.getParentLoop());
}

}  // namespace

GlobalVariable* DeviceText(Module& module) {
  return cast<GlobalVariable>(
      module.getOrInsertGlobal("fusion.device_text", Type::getInt8Ty(module.getContext())));
}

void SetDeviceText(Module& module, const std::string& text) {
  GlobalVariable* before = module.getNamedGlobal("fusion.device_text");
  if (before == nullptr) return;
  Constant* value = ConstantPointerNull::get(PointerType::getUnqual(module.getContext()));
  if (!text.empty()) {
    Constant* data = ConstantDataArray::getString(module.getContext(), text);
    value = new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage, data);
  }
  before->replaceAllUsesWith(value);
  before->eraseFromParent();
}

void EraseSite(Function& body) {
  body.getParent()->getNamedGlobal((body.getName() + ".site").str())->eraseFromParent();
  body.eraseFromParent();
}

std::string WhyNoSite(const LoopFacts& facts, ExactNumbers& numbers) {
  const Loop& loop = numbers.loop();
  ScalarEvolution& evolution = numbers.evolution();
  Instruction* at = loop.getLoopPreheader()->getTerminator();
  SCEVExpander expander(evolution, at->getModule()->getDataLayout(), "fusion");
  auto known_before = [&](const SCEV* number) {
    return evolution.isLoopInvariant(number, &loop) && expander.isSafeToExpandAt(number, at);
  };
  const std::vector<std::vector<LinearCondition>> alternatives = Alternatives(facts.assumed);
  if (alternatives.empty()) return "what it assumes cannot be asked";
  size_t conditions = 0;
  for (const std::vector<LinearCondition>& all : alternatives)
    for (const LinearCondition& condition : all) {
      ++conditions;
      for (const auto& [factor, parameter] : condition.terms)
        if (!known_before(parameter)) return "what it assumes is not known before the loop";
    }
  constexpr size_t kMostConditions = 100;
  if (conditions > kMostConditions) return "it assumes too much";
  for (const AccessRange& range : facts.ranges)
    for (const LinearBound& bound : {range.first, range.end})
      if (!known_before(bound.constant) || !known_before(bound.slope))
        return "what it touches of an array is not known before the loop";
  for (const SCEV* number : facts.not_negative)
    if (!known_before(number)) return "what it assumes is not known before the loop";
  if (!known_before(facts.last)) return "the number of its iterations is not known before";
  for (PHINode& value : loop.getExitBlock()->phis()) {
    if (SumAfter(value.getIncomingValueForBlock(loop.getExitingBlock()), facts.sums) != nullptr) continue;
    if (const SCEV* after =
            AfterLoop(value.getIncomingValueForBlock(loop.getExitingBlock()), loop, evolution);
        after != nullptr && !known_before(after))
      return "a value of its last iteration is used after it";
  }
  // The bounds are asked of numbers that are made of these.
  std::vector<const SCEV*> left;
  for (const ExactNumbers::Bound& bound : numbers.bounds()) left.push_back(bound.number);
  for (size_t at_number = 0; at_number < left.size(); ++at_number) {
    const SCEV* number = left[at_number];
    if (auto* counter = dyn_cast<SCEVAddRecExpr>(number);
        counter != nullptr && loop.contains(counter->getLoop()))
      if (const SCEV* last = numbers.LastCount(*counter->getLoop())) left.push_back(last);
    if (isa<SCEVAddExpr>(number) || isa<SCEVMulExpr>(number) || isa<SCEVMinMaxExpr>(number) ||
        isa<SCEVAddRecExpr>(number)) {
      for (const SCEV* operand : cast<SCEVNAryExpr>(number)->operands()) left.push_back(operand);
    } else if (!known_before(number)) {
      return "a number in it is not known before the loop";
    }
    if (left.size() > 1000) return "its numbers are too large to be asked";
  }
  return "";
}

namespace {

// Returns the variable that is 0, 1, 2 and so on in the iterations of a loop, or null.
const PHINode* CountsFrom0(const Loop& loop) {
  for (const PHINode& phi : loop.getHeader()->phis()) {
    if (!phi.getType()->isIntegerTy() || !phi.hasName() || loop.getLoopPreheader() == nullptr ||
        loop.getLoopLatch() == nullptr)
      continue;
    auto* first = dyn_cast<ConstantInt>(phi.getIncomingValueForBlock(loop.getLoopPreheader()));
    auto* next = dyn_cast<BinaryOperator>(phi.getIncomingValueForBlock(loop.getLoopLatch()));
    auto* step = next == nullptr ? nullptr : dyn_cast<ConstantInt>(next->getOperand(1));
    if (first != nullptr && first->isZero() && step != nullptr && step->isOne() &&
        next->getOpcode() == Instruction::Add && next->getOperand(0) == &phi)
      return &phi;
  }
  return nullptr;
}

}  // namespace

std::string Conditions(const LoopFacts& facts) {
  std::string text;
  raw_string_ostream out(text);
  auto name = [&](const SCEV* number) {
    while (auto* cast = dyn_cast<SCEVCastExpr>(number)) number = cast->getOperand();
    if (auto* counter = dyn_cast<SCEVAddRecExpr>(number))
      if (const PHINode* known = CountsFrom0(*counter->getLoop())) {
        out << known->getName().split('.').first;
        return;
      }
    if (auto* value = dyn_cast<SCEVUnknown>(number); value != nullptr && value->getValue()->hasName())
      out << value->getValue()->getName();
    else
      out << *number;
  };
  const std::vector<std::vector<LinearCondition>> alternatives = Alternatives(facts.assumed);
  for (const std::vector<LinearCondition>& all : alternatives) {
    if (&all != &alternatives.front()) out << " or ";
    for (const LinearCondition& condition : all) {
      if (&condition != &all.front()) out << ", ";
      for (const auto& [factor, parameter] : condition.terms) {
        const bool begins = &parameter == &condition.terms.front().second;
        out << (factor < 0 ? (begins ? "-" : " - ") : begins ? "" : " + ");
        if (std::abs(factor) != 1) out << std::abs(factor) << " * ";
        name(parameter);
      }
      out << (condition.is_equality ? " == " : " >= ") << -condition.constant;
    }
  }
  for (const auto& [first, second] : facts.may_overlap) {
    if (!out.str().empty()) out << ", ";
    out << NameOf(facts.accesses->arrays[first]) << " apart from " << NameOf(facts.accesses->arrays[second]);
  }
  return out.str();
}

namespace {

Instruction* OfSite(Instruction* instruction) {
  instruction->setMetadata(kSiteMemory, MDNode::get(instruction->getContext(), {}));
  return instruction;
}

// The code in front of a loop that asks for another way to run it. All of it is written in a row, as each
// part may use numbers of the parts before, and cut into blocks afterwards.
class Question {
 public:
  Question(const LoopFacts& facts, ExactNumbers& numbers, Loop& loop)
      : facts_(facts),
        loop_(loop),
        before_(loop.getLoopPreheader()),
        writer_(facts, numbers, before_->getTerminator()) {
    IRBuilder<>& builder = writer_.builder();
    builder.SetCurrentDebugLocation(loop.getStartLoc());
    auto* least_work = cast<GlobalVariable>(
        before_->getModule()->getOrInsertGlobal("fusion_partition_least_work", builder.getDoubleTy()));
    work_ = writer_.Work();
    is_worth_ = builder.CreateFCmpOGE(work_, OfSite(builder.CreateLoad(builder.getDoubleTy(), least_work)));
    end_of_work_ = builder.CreateIntrinsic(builder.getVoidTy(), Intrinsic::donothing, {});
    holds_ = writer_.Holds();
    end_of_conditions_ = builder.CreateIntrinsic(builder.getVoidTy(), Intrinsic::donothing, {});
  }

  SiteWriter& writer() { return writer_; }
  Value* work() { return work_; }
  Value* Iterations() {
    return writer_.builder().CreateAdd(writer_.Number(facts_.last), writer_.Constant(1));
  }

  // Returns the facts that site.h describes.
  AllocaInst* Table() {
    IRBuilder<>& builder = writer_.builder();
    IRBuilder<> at_entry(&*before_->getParent()->getEntryBlock().getFirstInsertionPt());
    auto* values =
        ArrayType::get(builder.getInt64Ty(), facts_.accesses->arrays.size() + 4 * facts_.ranges.size() + 3);
    AllocaInst* table = at_entry.CreateAlloca(values);
    uint64_t row = 0;
    auto put = [&](Value* value) {
      OfSite(builder.CreateStore(value, builder.CreateConstInBoundsGEP2_64(values, table, 0, row++)));
    };
    for (const LoopArray& array : facts_.accesses->arrays)
      put(builder.CreatePtrToInt(array.address, builder.getInt64Ty()));
    for (const AccessRange& range : facts_.ranges)
      for (const LinearBound& bound : {range.first, range.end}) {
        put(writer_.Number(bound.constant));
        put(writer_.Number(bound.slope));
      }
    if (facts_.last_column.constant != nullptr)
      for (const SCEV* number : {facts_.last_column.constant, facts_.last_column.slope})
        put(writer_.Number(number));
    put(builder.CreateBitCast(writer_.WorkOfIteration(0), builder.getInt64Ty()));
    return table;
  }

  // Goes to `other` where the answer is true, and otherwise to the loop. What follows the loop gets values
  // from `last_of_other`, which are `left`.
  void Cut(GlobalVariable* site, Value* answer, BasicBlock* other, BasicBlock* last_of_other,
           const std::vector<Value*>& left) {
    BasicBlock *header = loop_.getHeader(), *after = loop_.getExitBlock();
    Function& around = *before_->getParent();
    LLVMContext& context = around.getContext();
    BasicBlock* check = SplitBlock(before_, end_of_work_->getNextNode());
    BasicBlock* fill = SplitBlock(check, end_of_conditions_->getNextNode());
    BasicBlock* original = BasicBlock::Create(context, "fusion.original", &around, header);
    BasicBlock* refused = BasicBlock::Create(context, "fusion.refused", &around, original);
    end_of_work_->eraseFromParent();
    end_of_conditions_->eraseFromParent();
    IRBuilder<>(original).CreateBr(header);
    header->replacePhiUsesWith(fill, original);
    IRBuilder<> of_refused(refused);
    of_refused.SetCurrentDebugLocation(loop_.getStartLoc());
    FunctionCallee refuse = around.getParent()->getOrInsertFunction(
        "fusion_partition_refuse",
        FunctionType::get(of_refused.getVoidTy(), {PointerType::getUnqual(context)}, false));
    cast<Function>(refuse.getCallee())->addFnAttr(Attribute::NoUnwind);
    OfSite(of_refused.CreateCall(refuse, {site}));
    of_refused.CreateBr(original);
    auto branch = [&](BasicBlock* block, Value* condition, BasicBlock* yes, BasicBlock* no) {
      Instruction* old = block->getTerminator();
      IRBuilder<>(old).CreateCondBr(condition, yes, no);
      old->eraseFromParent();
    };
    branch(before_, is_worth_, check, original);
    branch(check, holds_, fill, refused);
    branch(fill, answer, other, original);
    size_t value_at = 0;
    for (PHINode& value : after->phis())
      value.addIncoming(left[value_at++], last_of_other != nullptr ? last_of_other : fill);
  }

 private:
  const LoopFacts& facts_;
  Loop& loop_;
  BasicBlock* before_;
  SiteWriter writer_;
  Value *work_, *is_worth_, *holds_;
  Instruction *end_of_work_, *end_of_conditions_;
};

}  // namespace

void MakeSite(const LoopFacts& facts, ExactNumbers& numbers, Loop& loop, const OutlinedLoop& outlined) {
  BasicBlock *before = loop.getLoopPreheader(), *after = loop.getExitBlock(),
             *exiting = loop.getExitingBlock();
  Module& module = *before->getModule();
  ScalarEvolution& evolution = numbers.evolution();
  Question question(facts, numbers, loop);
  SiteWriter& writer = question.writer();
  IRBuilder<>& builder = writer.builder();
  PointerType* pointer = PointerType::getUnqual(module.getContext());
  GlobalVariable* site = Description(facts, loop, outlined, outlined.body->getName(), module);

  IRBuilder<> at_entry(&*before->getParent()->getEntryBlock().getFirstInsertionPt());
  AllocaInst* captured = at_entry.CreateAlloca(outlined.context);
  for (unsigned field = 0; field < outlined.captured.size(); ++field)
    OfSite(builder.CreateStore(outlined.captured[field],
                               builder.CreateStructGEP(outlined.context, captured, field)));
  auto sum = [&](unsigned which) {
    return builder.CreateStructGEP(outlined.context, captured, outlined.first_sum + which);
  };
  for (unsigned at = 0; at < facts.sums.size(); ++at)
    OfSite(builder.CreateStore(facts.sums[at].before->getIncomingValueForBlock(before), sum(at)));
  AllocaInst* table = question.Table();
  FunctionCallee enter = module.getOrInsertFunction(
      "fusion_partition_enter",
      FunctionType::get(builder.getInt32Ty(),
                        {pointer, builder.getInt64Ty(), builder.getDoubleTy(), pointer, pointer}, false));
  cast<Function>(enter.getCallee())->addFnAttr(Attribute::NoUnwind);
  Value* iterations = question.Iterations();
  Value* done = builder.CreateICmpNE(
      builder.CreateCall(enter, {site, iterations, question.work(), captured, table}), builder.getInt32(0));
  std::vector<Value*> left;
  for (PHINode& value : after->phis()) {
    Value* incoming = value.getIncomingValueForBlock(exiting);
    if (const LoopSum* of_loop = SumAfter(incoming, facts.sums)) {
      left.push_back(OfSite(
          builder.CreateLoad(value.getType(), sum(static_cast<unsigned>(of_loop - facts.sums.data())))));
      continue;
    }
    const SCEV* number = AfterLoop(incoming, loop, evolution);
    left.push_back(number == nullptr ? incoming : writer.Number(number));
  }
  question.Cut(site, done, after, nullptr, left);
}

GlobalVariable* MakeOrderSite(const LoopFacts& facts, ExactNumbers& numbers, Loop& loop,
                              const std::string& name, BasicBlock* entry, BasicBlock* last,
                              Instruction* one) {
  BasicBlock *after = loop.getExitBlock(), *exiting = loop.getExitingBlock();
  Module& module = *after->getModule();
  Question question(facts, numbers, loop);
  SiteWriter& writer = question.writer();
  IRBuilder<>& builder = writer.builder();
  PointerType* pointer = PointerType::getUnqual(module.getContext());
  OutlinedLoop no_body;
  no_body.context = StructType::get(module.getContext());
  GlobalVariable* site = Description(facts, loop, no_body, name, module);
  AllocaInst* table = question.Table();
  FunctionCallee reorders = module.getOrInsertFunction(
      "fusion_partition_reorders",
      FunctionType::get(builder.getInt32Ty(), {pointer, builder.getInt64Ty(), builder.getDoubleTy(), pointer},
                        false));
  cast<Function>(reorders.getCallee())->addFnAttr(Attribute::NoUnwind);
  Value* iterations = question.Iterations();
  Instruction* answer = OfSite(builder.CreateCall(reorders, {site, iterations, question.work(), table}));
  Value* yes = builder.CreateICmpNE(answer, builder.getInt32(0));
  one->replaceAllUsesWith(builder.CreateSExt(answer, builder.getInt64Ty(), "once"));
  one->eraseFromParent();
  std::vector<Value*> left;
  for (PHINode& value : after->phis()) {
    Value* incoming = value.getIncomingValueForBlock(exiting);
    const SCEV* number = AfterLoop(incoming, loop, numbers.evolution());
    left.push_back(number == nullptr ? incoming : writer.Number(number));
  }
  IRBuilder<> at_end(last);
  at_end.SetCurrentDebugLocation(loop.getStartLoc());
  at_end.CreateBr(after);
  question.Cut(site, yes, entry, last, left);
  return site;
}

}  // namespace fusion
