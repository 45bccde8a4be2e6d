#include "server/loops/sums.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/loops/build_c.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

constexpr const char* kCombining[] = {"fmin", "fmax", "fminf", "fmaxf", "min", "max"};
// Threads of the second kernel, and those that add up what the others of a block have.
constexpr int64_t kLastThreads = 256, kFolding = 32;

bool IsFunction(const std::string& name) {
  return std::find(std::begin(kCombining), std::end(kCombining), name) != std::end(kCombining);
}

int Occurrences(const CExpression& expression, const std::string& text) {
  if (CText(expression) == text) return 1;
  int count = 0;
  for (const CExpressionPtr& operand : expression.operands) count += Occurrences(*operand, text);
  return count;
}
// The text is a term of a sum, or a factor of a product.
bool IsTerm(const CExpression& expression, const std::string& operation, const std::string& text) {
  if (CText(expression) == text) return true;
  if (expression.kind != CExpression::Kind::kBinary) return false;
  if (operation == "+" && expression.text == "-") return IsTerm(*expression.operands[0], operation, text);
  return expression.text == operation && (IsTerm(*expression.operands[0], operation, text) ||
                                          IsTerm(*expression.operands[1], operation, text));
}

template <class Visit>
void ForEachExpression(const CStatement& statement, const Visit& visit) {
  for (const CExpressionPtr& part :
       {statement.target, statement.value, statement.start, statement.bound, statement.step})
    if (part != nullptr) visit(statement, *part);
  for (const CStatementPtr& inner : statement.body) ForEachExpression(*inner, visit);
}

CExpressionPtr WithText(const CExpressionPtr& expression, const std::string& text, const CExpressionPtr& by) {
  if (expression == nullptr || CText(*expression) == text) return expression == nullptr ? nullptr : by;
  auto copy = std::make_shared<CExpression>(*expression);
  for (CExpressionPtr& operand : copy->operands) operand = WithText(operand, text, by);
  return copy;
}
// Returns the statement with a name in the place of an entry.
CStatementPtr WithText(const CStatement& statement, const std::string& text, const CExpressionPtr& by) {
  auto copy = std::make_shared<CStatement>(statement);
  for (CExpressionPtr* part : {&copy->target, &copy->value, &copy->start, &copy->bound, &copy->step})
    *part = WithText(*part, text, by);
  for (CStatementPtr& inner : copy->body) inner = WithText(*inner, text, by);
  return copy;
}

CExpressionPtr Combined(const LoopSum& sum, const CExpressionPtr& left, const CExpressionPtr& right) {
  if (IsFunction(sum.operation)) return CCall(sum.operation, {left, right});
  return CBinary(sum.operation, left, right);
}
// Returns what a sum begins with. The smallest or largest begins with what is there already, as it may be
// combined twice.
CExpressionPtr First(const LoopSum& sum) {
  if (IsFunction(sum.operation)) return sum.target;
  return CInteger(sum.operation == "*" ? 1 : 0);
}

// Each thread has its part of the iterations: `count` threads are apart from each other by one.
std::shared_ptr<CStatement> Strided(const CStatement& loop, const CExpressionPtr& first,
                                    const CExpressionPtr& count) {
  auto strided = std::make_shared<CStatement>(loop);
  strided->start = CounterValue(loop, first);
  strided->step = CBinary("*", loop.step, count);
  return strided;
}
std::shared_ptr<CStatement> Count(const std::string& counter, const CExpressionPtr& from,
                                  const CExpressionPtr& to, const CExpressionPtr& step,
                                  const CStatementPtr& body) {
  std::shared_ptr<CStatement> loop = CCount(counter, to, body, false);
  loop->start = from;
  loop->step = step;
  return loop;
}

class Maker {
 public:
  Maker(const std::vector<LoopSum>& sums, const SumOptions& options) : sums_(sums), options_(options) {
    for (const char* const name : {"v", "u", "w", "k"}) names_.push_back(options.fresh(name));
    for (size_t i = 0; i < sums.size(); ++i) {
      own_.push_back(options.fresh("sum"));
      parts_.push_back(options.fresh("parts"));
      blocks_.push_back(options.fresh("blocks"));
    }
  }

  SumKernels Make(const CStatement& loop) {
    SumKernels made;
    position_ = loop.position;
    for (size_t i = 0; i < sums_.size(); ++i) {
      CVariable workspace{.name = blocks_[i], .type = sums_[i].type, .array = true};
      workspace.extents = {options_.blocks};
      workspace.workspace = true;
      made.workspaces.push_back(std::move(workspace));
    }
    CStatementPtr work = options_.own(Share(loop));
    for (size_t i = 0; i < sums_.size(); ++i) work = WithText(*work, CText(*sums_[i].target), CName(own_[i]));
    std::vector<CStatementPtr> leave, add, combine;
    const CExpressionPtr block = CName(names_[0]), thread = CName(names_[1]), k = CName(names_[3]);
    for (size_t i = 0; i < sums_.size(); ++i) {
      leave.push_back(CAssign(CEntry(blocks_[i], block), Total(i)));
      add.push_back(CAssign(CName(own_[i]), Combined(sums_[i], CName(own_[i]), CEntry(blocks_[i], k))));
      combine.push_back(CAssign(sums_[i].target, Combined(sums_[i], sums_[i].target, Total(i))));
    }
    const CExpressionPtr last = CInteger(kLastThreads);
    made.statement = CBlock(
        {Kernel(options_.blocks, options_.threads, work, std::move(leave)),
         Kernel(CInteger(1), last, Count(names_[3], thread, options_.blocks, last, CBlock(std::move(add))),
                std::move(combine))});
    return made;
  }

 private:
  // The iterations of one thread.
  CStatementPtr Share(const CStatement& loop) const {
    const CExpressionPtr block = CName(names_[0]), thread = CName(names_[1]);
    std::vector<const CStatement*> chain = {&loop};
    for (const CStatement* inner = loop.body[0].get(); options_.any_order; inner = inner->body[0].get()) {
      while (inner->kind == Kind::kBlock && inner->body.size() == 1) inner = inner->body[0].get();
      if (inner->kind != Kind::kFor || inner->meta) break;
      chain.push_back(inner);
    }
    // Threads want as many iterations as there are of them.
    const CExpression& bound = *chain.back()->bound;
    if (bound.kind == CExpression::Kind::kInteger && bound.integer < kFolding) chain.resize(1);
    if (chain.size() == 1)
      return Strided(loop, CBinary("+", CBinary("*", block, options_.threads), thread),
                     CBinary("*", options_.blocks, options_.threads));
    CStatementPtr made = Strided(*chain.back(), thread, options_.threads);
    for (size_t i = chain.size() - 1; i-- > 0;) {
      auto outer = i == 0 ? Strided(loop, block, options_.blocks) : std::make_shared<CStatement>(*chain[i]);
      outer->body = {made};
      made = outer;
    }
    return made;
  }
  CExpressionPtr Total(size_t sum) const { return CEntry(parts_[sum], CInteger(0)); }

  // Threads work, leave what they have in memory that their block shares, and some of them add that up; one
  // does the rest.
  CStatementPtr Kernel(const CExpressionPtr& blocks, const CExpressionPtr& threads, const CStatementPtr& work,
                       std::vector<CStatementPtr> rest) const {
    const CExpressionPtr thread = CName(names_[1]), w = CName(names_[2]), k = CName(names_[3]),
                         folding = CInteger(kFolding);
    std::vector<CStatementPtr> block, each, fold, total;
    for (size_t i = 0; i < sums_.size(); ++i) {
      auto parts = std::make_shared<CStatement>(*CDeclare(sums_[i].type, parts_[i], nullptr));
      parts->variable.array = true;
      parts->variable.extents = {threads};
      block.push_back(std::move(parts));
      each.push_back(CDeclare(sums_[i].type, own_[i], First(sums_[i])));
      const auto add = [&](const CExpressionPtr& to) {
        return CAssign(CEntry(parts_[i], to),
                       Combined(sums_[i], CEntry(parts_[i], to), CEntry(parts_[i], k)));
      };
      fold.push_back(Count(names_[3], CBinary("+", w, folding), threads, folding, add(w)));
      total.push_back(
          Count(names_[3], CInteger(1), CSmaller(threads, folding), CInteger(1), add(CInteger(0))));
    }
    each.push_back(work);
    for (size_t i = 0; i < sums_.size(); ++i)
      each.push_back(CAssign(CEntry(parts_[i], thread), CName(own_[i])));
    block.push_back(CCount(names_[1], threads, CBlock(std::move(each)), true));
    block.push_back(CCount(names_[2], folding, CBlock(std::move(fold)), true));
    block.insert(block.end(), total.begin(), total.end());
    block.insert(block.end(), rest.begin(), rest.end());
    auto kernel = CCount(names_[0], blocks, CBlock(std::move(block)), true);
    kernel->position = position_;
    return kernel;
  }

  const std::vector<LoopSum>& sums_;
  const SumOptions& options_;
  SourcePosition position_;
  std::vector<std::string> names_;  // counters of blocks, of threads, of those that add up, and in a thread
  std::vector<std::string> own_, parts_, blocks_;  // of each sum: a thread's, a block's, all blocks'
};

}  // namespace

std::string CombinedBy(const CStatement& assignment) {
  const std::string target = CText(*assignment.target);
  const CExpression& value = *assignment.value;
  const int inside = Occurrences(value, target);
  if (assignment.operation != "=") {
    if (inside > 0) return "";
    if (assignment.operation == "+=" || assignment.operation == "-=") return "+";
    return assignment.operation == "*=" ? "*" : "";
  }
  if (inside != 1) return "";
  if (value.kind == CExpression::Kind::kCall) {
    const bool direct = std::any_of(value.operands.begin(), value.operands.end(),
                                    [&](const CExpressionPtr& operand) { return CText(*operand) == target; });
    return direct && IsFunction(value.text) ? value.text : "";
  }
  if (value.kind != CExpression::Kind::kBinary) return "";
  for (const char* const operation : {"+", "*"})
    if (IsTerm(value, operation, target)) return operation;
  return "";
}

std::vector<LoopSum> SumsOf(const CStatement& loop, const std::vector<CVariable>& scope,
                            const std::set<std::string>& own, bool apart) {
  std::set<std::string> inside = own;
  AddDeclared(loop, &inside);
  std::vector<LoopSum> sums;
  std::set<std::string> arrays;
  bool possible = true;
  const auto sum_of = [&](const std::string& text) {
    return std::find_if(sums.begin(), sums.end(),
                        [&](const LoopSum& sum) { return CText(*sum.target) == text; });
  };
  const auto collect = [&](auto&& self, const CStatement& statement) -> void {
    if (statement.kind == Kind::kFor && !statement.declares) inside.insert(statement.variable.name);
    for (const CStatementPtr& inner : statement.body) self(self, *inner);
    if (statement.kind != Kind::kAssignment || inside.count(statement.target->text) > 0) return;
    const auto variable = std::find_if(scope.rbegin(), scope.rend(), [&](const CVariable& one) {
      return one.name == statement.target->text;
    });
    std::set<std::string> names;
    for (const CExpressionPtr& index : statement.target->operands) AddNames(*index, &names);
    const bool fixed = std::none_of(names.begin(), names.end(),
                                    [&](const std::string& name) { return inside.count(name) > 0; });
    const std::string operation = CombinedBy(statement);
    if (!fixed || operation.empty() || variable == scope.rend() || !variable->array || variable->indirect ||
        variable->type == CType::kOther || variable->type == CType::kLong) {
      possible &= apart && !fixed;
      return;
    }
    const auto known = sum_of(CText(*statement.target));
    // Different entries may be the same one.
    for (const LoopSum& sum : sums)
      possible &= sum.target->text != statement.target->text || sum.operation == operation;
    arrays.insert(statement.target->text);
    if (known == sums.end()) sums.push_back({statement.target, operation, variable->type});
  };
  if (!loop.declares) inside.insert(loop.variable.name);
  collect(collect, loop);
  // Nobody reads a sum while it grows, and `-` of a sum is none of its terms.
  ForEachExpression(loop, [&](const CStatement& statement, const CExpression& part) {
    const bool adds = statement.kind == Kind::kAssignment && sum_of(CText(*statement.target)) != sums.end();
    const auto look = [&](auto&& self, const CExpression& expression) -> void {
      if (expression.kind == CExpression::Kind::kSubscript && arrays.count(expression.text) > 0) {
        const auto sum = sum_of(CText(expression));
        const bool own_term = adds && CText(expression) == CText(*statement.target);
        if (!own_term && (!apart || sum != sums.end())) possible = false;
      }
      for (const CExpressionPtr& operand : expression.operands) self(self, *operand);
    };
    look(look, part);
  });
  if (!possible) sums.clear();
  return sums;
}

SumKernels MakeSumKernels(const CStatement& loop, const std::vector<LoopSum>& sums,
                          const SumOptions& options) {
  return Maker(sums, options).Make(loop);
}

}  // namespace fusion
