#include "server/loops/result_scalars.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/loops/build_c.h"
#include "server/parse/error_list.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

class Results {
 public:
  Results(const CheckedProgram& checked, size_t number) : checked_(checked), number_(number) {}

  std::set<std::string> Find() {
    const CRegion& region = checked_.program.regions[number_];
    std::set<std::string> declared;
    AddDeclared(*region.statement, &declared);
    Walk(*region.statement, {});
    std::set<std::string> found;
    for (const CVariable& variable : region.scope)
      if (assigned_.count(variable.name) > 0 && declared.count(variable.name) == 0 && !variable.array &&
          variable.type != CType::kOther && steering_.count(variable.name) == 0)
        found.insert(variable.name);
    return found;
  }

 private:
  // `own`: names that an iteration of a parallel loop around has for itself.
  void Walk(const CStatement& statement, std::set<std::string> own) {
    if (statement.kind == Kind::kFor) {
      const int loop = next_++;
      const NestLoop& known = checked_.nests[number_]->loops[loop];
      own.insert(known.privates.begin(), known.privates.end());
      for (const CheckedLoop& judged : checked_.loops)
        if (judged.region == number_ && judged.verdict.loop == loop &&
            (judged.verdict.verdict == Verdict::kIndependent || IsClaimed(judged.claim)))
          own.insert(judged.verdict.own.begin(), judged.verdict.own.end());
      for (const CExpressionPtr& part : {statement.start, statement.bound, statement.step})
        AddNames(*part, &steering_);
    }
    if (statement.kind == Kind::kIf) AddIntegers(*statement.value);
    if (statement.kind == Kind::kAssignment && statement.target->kind == CExpression::Kind::kName &&
        own.count(statement.target->text) == 0)
      assigned_.insert(statement.target->text);
    for (const CExpressionPtr& part : {statement.target, statement.value})
      if (part != nullptr) AddIndices(*part);
    for (const CStatementPtr& inner : statement.body) Walk(*inner, own);
  }
  void AddIntegers(const CExpression& condition) {
    std::set<std::string> names;
    AddNames(condition, &names);
    for (const CVariable& variable : checked_.program.regions[number_].scope)
      if (names.count(variable.name) > 0 && IsIntegerType(variable.type)) steering_.insert(variable.name);
  }
  void AddIndices(const CExpression& expression) {
    for (const CExpressionPtr& operand : expression.operands) {
      if (expression.kind == CExpression::Kind::kSubscript) AddNames(*operand, &steering_);
      AddIndices(*operand);
    }
  }

  const CheckedProgram& checked_;
  const size_t number_;
  int next_ = 0;                               // of the loops, in the order of the text
  std::set<std::string> assigned_, steering_;  // scalars
};

CExpressionPtr Rewritten(const CExpressionPtr& expression, const std::set<std::string>& names) {
  if (expression == nullptr) return nullptr;
  auto copy = std::make_shared<CExpression>(*expression);
  for (CExpressionPtr& operand : copy->operands) operand = Rewritten(operand, names);
  if (copy->kind == CExpression::Kind::kName && names.count(copy->text) > 0) {
    copy->kind = CExpression::Kind::kSubscript;
    copy->operands = {CInteger(0)};
  }
  return copy;
}
CStatementPtr Rewritten(const CStatement& statement, const std::set<std::string>& names) {
  auto copy = std::make_shared<CStatement>(statement);
  for (CExpressionPtr* part : {&copy->target, &copy->value, &copy->start, &copy->bound, &copy->step})
    *part = Rewritten(*part, names);
  for (CStatementPtr& inner : copy->body) inner = Rewritten(*inner, names);
  return copy;
}

}  // namespace

CheckedProgram WithResultsInArrays(CheckedProgram checked) {
  // A name is the same variable for all regions.
  std::set<std::string> names;
  for (size_t i = 0; i < checked.program.regions.size(); ++i) names.merge(Results(checked, i).Find());
  if (names.empty()) return checked;
  for (size_t i = 0; i < checked.program.regions.size(); ++i) {
    CRegion& region = checked.program.regions[i];
    region.statement = Rewritten(*region.statement, names);
    for (CVariable& variable : region.scope) {
      if (names.count(variable.name) == 0) continue;
      variable.array = true;
      variable.extents = {CInteger(1)};
      variable.constant.reset();
      variable.initial = nullptr;
    }
    ErrorList scratch("");
    checked.nests[i] = BuildNest(checked.program, region, &scratch);
  }
  return checked;
}

}  // namespace fusion
