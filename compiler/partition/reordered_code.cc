#include "compiler/partition/reordered_code.h"

#include <isl/ast.h>
#include <isl/ast_build.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>

namespace fusion {

using namespace llvm;

namespace {

constexpr char kTime[] = "time";
// Numbers in bounds are below 2^45, and their factors below 2^15: no sum of them wraps.
constexpr unsigned kBits = 45, kFactorBits = 15;

std::string NameOfId(isl_ast_expr* expression) {
  const isl::id id = isl::manage(isl_ast_expr_get_id(expression));
  return id.get_name();
}

bool FitsIn(isl_ast_expr* expression, unsigned bits) {
  const isl::val value = isl::manage(isl_ast_expr_get_val(expression));
  const isl::val most(value.ctx(), static_cast<long>(1ll << bits));
  return value.is_int().is_true() && value.le(most).is_true() && value.neg().le(most).is_true();
}

std::vector<isl::ast_expr> ArgumentsOf(isl_ast_expr* expression) {
  std::vector<isl::ast_expr> arguments;
  for (int at = 0; at < isl_ast_expr_get_op_n_arg(expression); ++at)
    arguments.push_back(isl::manage(isl_ast_expr_get_op_arg(expression, at)));
  return arguments;
}

// Returns true for what Expression below writes.
bool CanWrite(isl_ast_expr* expression, ExactNumbers& numbers) {
  if (expression == nullptr) return false;
  switch (isl_ast_expr_get_type(expression)) {
    case isl_ast_expr_int:
      return FitsIn(expression, kBits);
    case isl_ast_expr_id: {
      const isl::id id = isl::manage(isl_ast_expr_get_id(expression));
      if (id.get_user() != nullptr) numbers.Limit(IterationSpace::ParameterOf(id), kBits);
      return true;
    }
    case isl_ast_expr_op:
      break;
    default:
      return false;
  }
  const std::vector<isl::ast_expr> arguments = ArgumentsOf(expression);
  bool good = true;
  switch (isl_ast_expr_get_op_type(expression)) {
    case isl_ast_expr_op_mul:
      good = arguments.size() == 2 && any_of(arguments, [](const isl::ast_expr& argument) {
               return isl_ast_expr_get_type(argument.get()) == isl_ast_expr_int &&
                      FitsIn(argument.get(), kFactorBits);
             });
      break;
    case isl_ast_expr_op_and:
    case isl_ast_expr_op_and_then:
    case isl_ast_expr_op_or:
    case isl_ast_expr_op_or_else:
    case isl_ast_expr_op_max:
    case isl_ast_expr_op_min:
    case isl_ast_expr_op_minus:
    case isl_ast_expr_op_add:
    case isl_ast_expr_op_sub:
    case isl_ast_expr_op_cond:
    case isl_ast_expr_op_select:
    case isl_ast_expr_op_eq:
    case isl_ast_expr_op_le:
    case isl_ast_expr_op_lt:
    case isl_ast_expr_op_ge:
    case isl_ast_expr_op_gt:
      break;
    default:
      good = false;
  }
  return good &&
         all_of(arguments, [&](const isl::ast_expr& argument) { return CanWrite(argument.get(), numbers); });
}

// The condition of a loop is iterator <= or < bound.
bool IsCountedUp(isl_ast_node* loop) {
  const isl::ast_expr condition = isl::manage(isl_ast_node_for_get_cond(loop)),
                      step = isl::manage(isl_ast_node_for_get_inc(loop)),
                      iterator = isl::manage(isl_ast_node_for_get_iterator(loop));
  if (isl_ast_expr_get_type(step.get()) != isl_ast_expr_int ||
      !isl::manage(isl_ast_expr_get_val(step.get())).is_one().is_true() ||
      isl_ast_expr_get_type(condition.get()) != isl_ast_expr_op)
    return false;
  const auto type = isl_ast_expr_get_op_type(condition.get());
  if (type != isl_ast_expr_op_le && type != isl_ast_expr_op_lt) return false;
  const isl::ast_expr left = ArgumentsOf(condition.get())[0];
  return isl_ast_expr_get_type(left.get()) == isl_ast_expr_id &&
         NameOfId(left.get()) == NameOfId(iterator.get());
}

std::vector<isl::ast_node> ChildrenOf(isl_ast_node* block) {
  std::vector<isl::ast_node> children;
  isl_ast_node_list* list = isl_ast_node_block_get_children(block);
  for (int at = 0; at < isl_ast_node_list_n_ast_node(list); ++at)
    children.push_back(isl::manage(isl_ast_node_list_get_ast_node(list, at)));
  isl_ast_node_list_free(list);
  return children;
}

bool CanWriteNode(isl_ast_node* node, ExactNumbers& numbers) {
  if (node == nullptr) return false;
  switch (isl_ast_node_get_type(node)) {
    case isl_ast_node_for: {
      if (!CanWrite(isl::manage(isl_ast_node_for_get_init(node)).get(), numbers)) return false;
      if (isl_ast_node_for_is_degenerate(node) == isl_bool_false &&
          (!IsCountedUp(node) || !CanWrite(isl::manage(isl_ast_node_for_get_cond(node)).get(), numbers)))
        return false;
      return CanWriteNode(isl::manage(isl_ast_node_for_get_body(node)).get(), numbers);
    }
    case isl_ast_node_if:
      return isl_ast_node_if_has_else_node(node) == isl_bool_false &&
             CanWrite(isl::manage(isl_ast_node_if_get_cond(node)).get(), numbers) &&
             CanWriteNode(isl::manage(isl_ast_node_if_get_then_node(node)).get(), numbers);
    case isl_ast_node_block:
      return all_of(ChildrenOf(node),
                    [&](const isl::ast_node& child) { return CanWriteNode(child.get(), numbers); });
    case isl_ast_node_user: {
      const isl::ast_expr call = isl::manage(isl_ast_node_user_get_expr(node));
      if (isl_ast_expr_get_op_type(call.get()) != isl_ast_expr_op_call) return false;
      const std::vector<isl::ast_expr> arguments = ArgumentsOf(call.get());
      return std::all_of(arguments.begin() + 1, arguments.end(),
                         [&](const isl::ast_expr& argument) { return CanWrite(argument.get(), numbers); });
    }
    default:
      return false;
  }
}

// Writes the loops of one phase after another at the end of a block.
class Writer {
 public:
  Writer(const NestStatements& nest, ExactNumbers& numbers, Instruction* before)
      : nest_(nest),
        numbers_(numbers),
        before_(before),
        function_(*before->getFunction()),
        builder_(before->getContext()),
        expander_(numbers.evolution(), before->getModule()->getDataLayout(), "fusion") {}

  IRBuilder<>& builder() { return builder_; }
  BasicBlock* NewBlock(const Twine& name) {
    return BasicBlock::Create(function_.getContext(), name, &function_);
  }
  Value* Constant(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }
  BasicBlock* time() const { return time_; }
  const std::vector<BasicBlock*>& deep() const { return deep_; }

  // Writes for (name = first; name < end; ++name) body().
  void ForLoop(const std::string& name, Value* first, Value* end, const DebugLoc& place,
               const std::function<void()>& body) {
    BasicBlock *before = NewBlock("reordered.preheader"), *header = NewBlock("reordered"),
               *exit = NewBlock("reordered.exit"), *after = NewBlock("reordered.after");
    builder_.CreateCondBr(builder_.CreateICmpSLT(first, end), before, after);
    builder_.SetInsertPoint(before);
    builder_.CreateBr(header)->setDebugLoc(place);
    builder_.SetInsertPoint(header);
    PHINode* counter = builder_.CreatePHI(builder_.getInt64Ty(), 2, name);
    counter->addIncoming(first, before);
    if (depth_ == 0) time_ = header;
    if (depth_ == 1 && phase_->statement->nest.size() >= kDeep) deep_.push_back(header);
    values_[name] = counter;
    ++depth_;
    body();
    --depth_;
    Value* next = builder_.CreateAdd(counter, Constant(1), "", false, true);
    counter->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), header, exit);
    builder_.SetInsertPoint(exit);
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }

  void Begin(const Phase& phase, Value* one) {
    phase_ = &phase;
    one_ = one;
  }

  // level: which of the phase's loops is next.
  void Node(isl_ast_node* node, size_t level) {
    switch (isl_ast_node_get_type(node)) {
      case isl_ast_node_for:
        return For(node, level);
      case isl_ast_node_if: {
        BasicBlock *then = NewBlock("reordered.then"), *after = NewBlock("reordered.after");
        builder_.CreateCondBr(Expression(isl::manage(isl_ast_node_if_get_cond(node)).get()), then, after);
        builder_.SetInsertPoint(then);
        Node(isl::manage(isl_ast_node_if_get_then_node(node)).get(), level);
        builder_.CreateBr(after);
        builder_.SetInsertPoint(after);
        return;
      }
      case isl_ast_node_block:
        for (const isl::ast_node& child : ChildrenOf(node)) Node(child.get(), level);
        return;
      default:
        return User(isl::manage(isl_ast_node_user_get_expr(node)).get());
    }
  }

  Value* Expression(isl_ast_expr* expression) {
    if (isl_ast_expr_get_type(expression) == isl_ast_expr_int)
      return Constant(isl_val_get_num_si(isl::manage(isl_ast_expr_get_val(expression)).get()));
    if (isl_ast_expr_get_type(expression) == isl_ast_expr_id) {
      const isl::id id = isl::manage(isl_ast_expr_get_id(expression));
      return id.get_user() != nullptr ? Known(IterationSpace::ParameterOf(id)) : values_.at(id.get_name());
    }
    std::vector<Value*> values;
    for (const isl::ast_expr& argument : ArgumentsOf(expression))
      values.push_back(Expression(argument.get()));
    auto each = [&](const std::function<Value*(Value*, Value*)>& join) {
      Value* all = values[0];
      for (size_t at = 1; at < values.size(); ++at) all = join(all, values[at]);
      return all;
    };
    switch (isl_ast_expr_get_op_type(expression)) {
      case isl_ast_expr_op_and:
      case isl_ast_expr_op_and_then:
        return builder_.CreateAnd(values[0], values[1]);
      case isl_ast_expr_op_or:
      case isl_ast_expr_op_or_else:
        return builder_.CreateOr(values[0], values[1]);
      case isl_ast_expr_op_max:
        return each([&](Value* one, Value* other) {
          return builder_.CreateBinaryIntrinsic(Intrinsic::smax, one, other);
        });
      case isl_ast_expr_op_min:
        return each([&](Value* one, Value* other) {
          return builder_.CreateBinaryIntrinsic(Intrinsic::smin, one, other);
        });
      case isl_ast_expr_op_minus:
        return builder_.CreateNSWNeg(values[0]);
      case isl_ast_expr_op_add:
        return builder_.CreateNSWAdd(values[0], values[1]);
      case isl_ast_expr_op_sub:
        return builder_.CreateNSWSub(values[0], values[1]);
      case isl_ast_expr_op_mul:
        return builder_.CreateNSWMul(values[0], values[1]);
      case isl_ast_expr_op_cond:
      case isl_ast_expr_op_select:
        return builder_.CreateSelect(values[0], values[1], values[2]);
      case isl_ast_expr_op_eq:
        return builder_.CreateICmpEQ(values[0], values[1]);
      case isl_ast_expr_op_le:
        return builder_.CreateICmpSLE(values[0], values[1]);
      case isl_ast_expr_op_lt:
        return builder_.CreateICmpSLT(values[0], values[1]);
      case isl_ast_expr_op_ge:
        return builder_.CreateICmpSGE(values[0], values[1]);
      default:
        return builder_.CreateICmpSGT(values[0], values[1]);
    }
  }

 private:
  void For(isl_ast_node* loop, size_t level) {
    const std::string name = NameOfId(isl::manage(isl_ast_node_for_get_iterator(loop)).get());
    Value* first = Expression(isl::manage(isl_ast_node_for_get_init(loop)).get());
    const isl::ast_node body = isl::manage(isl_ast_node_for_get_body(loop));
    if (isl_ast_node_for_is_degenerate(loop) == isl_bool_true) {
      values_[name] = first;
      return Node(body.get(), level + 1);
    }
    const isl::ast_expr condition = isl::manage(isl_ast_node_for_get_cond(loop));
    Value* end = Expression(ArgumentsOf(condition.get())[1].get());
    if (isl_ast_expr_get_op_type(condition.get()) == isl_ast_expr_op_le)
      end = builder_.CreateNSWAdd(end, Constant(1));
    const size_t counter = level < phase_->counter ? level : level + 1;
    ForLoop(name, first, end, phase_->statement->nest[counter]->getStartLoc(),
            [&] { Node(body.get(), level + 1); });
  }

  // A statement that runs once at a time is a loop, too, of a count that only the run time knows: what is
  // not in a loop which may be partitioned would run on the host, and bring all arrays there.
  void User(isl_ast_expr* call) {
    const std::vector<isl::ast_expr> arguments = ArgumentsOf(call);
    counters_.clear();
    for (size_t at = 1; at < arguments.size(); ++at)
      counters_[phase_->statement->nest[at - 1]] = Expression(arguments[at].get());
    if (depth_ > 1) return Run();
    const Loop* loop = phase_->statement->nest[phase_->counter];
    ForLoop("once", Constant(0), one_, loop->getStartLoc(), [&] {
      Value*& counter = counters_[loop];
      counter = builder_.CreateNSWAdd(counter, values_.at("once"));
      Run();
    });
  }

  void Run() {
    const Statement& statement = *phase_->statement;
    copies_.clear();
    Value* value = Copy(statement.value);
    auto* store = cast<StoreInst>(statement.place->instruction);
    StoreInst* copy = builder_.CreateAlignedStore(value, Copy(store->getPointerOperand()), store->getAlign());
    KeepMetadata(*copy, *store);
  }

  // Notes of LLVM on the order of accesses do not hold in another order, so they are left out.
  static void KeepMetadata(Instruction& copy, const Instruction& original) {
    copy.copyMetadata(original, {LLVMContext::MD_tbaa, LLVMContext::MD_tbaa_struct});
    copy.setDebugLoc(original.getDebugLoc());
  }

  Value* Copy(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (instruction == nullptr || !numbers_.loop().contains(instruction)) return value;
    Value*& known = copies_[value];
    if (known != nullptr) return known;
    return copies_[value] = CopyOf(*instruction);
  }

  Value* CopyOf(Instruction& instruction) {
    if (const SCEV* number = NumberOfCounters(&instruction, phase_->statement->nest, numbers_))
      return builder_.CreateTrunc(Number(number), instruction.getType());
    if (auto* phi = dyn_cast<PHINode>(&instruction)) {
      Instruction* place = nest_.in_memory.lookup(phi)->instruction;
      LoadInst* load = builder_.CreateAlignedLoad(phi->getType(), Copy(getLoadStorePointerOperand(place)),
                                                  getLoadStoreAlignment(place));
      KeepMetadata(*load, *place);
      return load;
    }
    SmallVector<Value*, 4> operands;
    for (Value* operand : instruction.operands()) operands.push_back(Copy(operand));
    Instruction* copy = instruction.clone();
    for (unsigned at = 0; at < operands.size(); ++at) copy->setOperand(at, operands[at]);
    copy->dropUnknownNonDebugMetadata({LLVMContext::MD_tbaa, LLVMContext::MD_fpmath});
    copy->setDebugLoc(instruction.getDebugLoc());
    return builder_.Insert(copy);
  }

  // A number of counters; none of its sums and products wraps, which is asked before.
  Value* Number(const SCEV* number) {
    if (isa<SCEVConstant>(number) || numbers_.evolution().isLoopInvariant(number, &numbers_.loop()))
      return Known(number);
    const auto& operands = cast<SCEVNAryExpr>(number)->operands();
    if (auto* counter = dyn_cast<SCEVAddRecExpr>(number))
      return builder_.CreateNSWAdd(
          Number(operands[0]),
          builder_.CreateNSWMul(Number(operands[1]), counters_.lookup(counter->getLoop())));
    Value* all = Number(operands[0]);
    for (const SCEV* operand : operands.drop_front()) {
      Value* value = Number(operand);
      if (isa<SCEVAddExpr>(number))
        all = builder_.CreateNSWAdd(all, value);
      else if (isa<SCEVMulExpr>(number))
        all = builder_.CreateNSWMul(all, value);
      else
        all = builder_.CreateBinaryIntrinsic(isa<SCEVSMaxExpr>(number) ? Intrinsic::smax : Intrinsic::smin,
                                             all, value);
    }
    return all;
  }

  Value* Known(const SCEV* number) {
    Value*& value = known_[number];
    if (value == nullptr) value = expander_.expandCodeFor(number, number->getType(), before_);
    return value;
  }

  const NestStatements& nest_;
  ExactNumbers& numbers_;
  Instruction* before_;
  Function& function_;
  IRBuilder<> builder_;
  SCEVExpander expander_;
  const Phase* phase_ = nullptr;
  Value* one_ = nullptr;
  size_t depth_ = 0;
  std::map<std::string, Value*> values_;  // of isl's names
  DenseMap<const Loop*, Value*> counters_;
  DenseMap<const Value*, Value*> copies_;
  DenseMap<const SCEV*, Value*> known_;
  BasicBlock* time_ = nullptr;
  std::vector<BasicBlock*> deep_;
};

}  // namespace

struct ReorderedCode::Plans {
  isl::ast_expr first, last;
  std::vector<isl::ast_node> phases;
};

ReorderedCode::ReorderedCode(const NestStatements& nest, const Reordering& order, ExactNumbers& numbers,
                             IterationSpace& space)
    : nest_(nest), order_(order), numbers_(numbers), space_(space), plans_(std::make_unique<Plans>()) {}
ReorderedCode::~ReorderedCode() = default;

std::string ReorderedCode::Plan() {
  constexpr char kNoCode[] = "the bounds of its loops in another order are not sums";
  isl_ctx* context = space_.context().get();
  isl_options_set_ast_build_allow_else(context, 0);
  const isl::ast_build before = isl::manage(isl_ast_build_from_context(order_.assumed.copy()));
  const isl::pw_aff first = isl::manage(isl_set_dim_min(order_.times.copy(), 0)),
                    last = isl::manage(isl_set_dim_max(order_.times.copy(), 0));
  plans_->first = isl::manage(isl_ast_build_expr_from_pw_aff(before.get(), first.copy()));
  plans_->last = isl::manage(isl_ast_build_expr_from_pw_aff(before.get(), last.copy()));
  if (!CanWrite(plans_->first.get(), numbers_) || !CanWrite(plans_->last.get(), numbers_)) return kNoCode;

  // In the loop of the time, that is a number like others, between the first and the last.
  const isl::id name = isl::manage(isl_id_alloc(context, kTime, nullptr));
  auto time_on = [&](const isl::space& space) {
    isl_space* with_time = isl_space_add_param_id(space.copy(), name.copy());
    return isl::manage(isl_pw_aff_from_aff(isl_aff_param_on_domain_space_id(with_time, name.copy())));
  };
  const isl::space no_counters = isl::manage(isl_set_get_space(order_.assumed.get()));
  const isl::set between = order_.assumed.intersect(time_on(no_counters).ge_set(first))
                               .intersect(time_on(no_counters).le_set(last));
  for (const Phase& phase : order_.phases) {
    const isl::space space = isl::manage(isl_set_get_space(phase.statement->domain.get()));
    isl::set domain = phase.statement->domain.intersect(phase.time.eq_set(time_on(space)));
    domain = isl::manage(isl_set_set_tuple_name(domain.release(), "S"));
    std::string from, to;
    for (size_t at = 0; at < phase.statement->nest.size(); ++at) {
      const std::string counter = "i" + std::to_string(at);
      from += (from.empty() ? "" : ", ") + counter;
      if (at != phase.counter) to += (to.empty() ? "" : ", ") + counter;
    }
    const isl::map schedule =
        isl::map(space_.context(), "{ S[" + from + "] -> [" + to + "] }").intersect_domain(domain);
    const isl::ast_build inside = isl::manage(isl_ast_build_from_context(between.copy()));
    plans_->phases.push_back(isl::manage(
        isl_ast_build_node_from_schedule_map(inside.get(), isl_union_map_from_map(schedule.copy()))));
    if (!CanWriteNode(plans_->phases.back().get(), numbers_)) return kNoCode;
    // So a counter is one of the numbers that factors may be of.
    for (const Loop* loop : phase.statement->nest)
      if (const SCEV* count = numbers_.LastCount(*loop)) numbers_.Limit(count, kBits);
  }
  return "";
}

ReorderedCode::Blocks ReorderedCode::Write(Instruction* before) {
  Writer writer(nest_, numbers_, before);
  Blocks blocks;
  IRBuilder<>& builder = writer.builder();
  blocks.entry = writer.NewBlock("fusion.reordered");
  builder.SetInsertPoint(blocks.entry);
  builder.SetCurrentDebugLocation(numbers_.loop().getStartLoc());
  blocks.one = builder.Insert(new FreezeInst(builder.getInt64(1)));
  Value* first = writer.Expression(plans_->first.get());
  Value* end = builder.CreateNSWAdd(writer.Expression(plans_->last.get()), builder.getInt64(1));
  writer.ForLoop(kTime, first, end, numbers_.loop().getStartLoc(), [&] {
    for (size_t at = 0; at < order_.phases.size(); ++at) {
      writer.Begin(order_.phases[at], blocks.one);
      writer.Node(plans_->phases[at].get(), 0);
    }
  });
  blocks.last = builder.GetInsertBlock();
  blocks.time = writer.time();
  blocks.deep = writer.deep();
  return blocks;
}

}  // namespace fusion
