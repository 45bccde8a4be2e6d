#include "server/loops/sum_in_entry.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "server/loops/build_c.h"

namespace fusion {
namespace {

bool StandsIn(const CStatement& statement, const std::string& name) {
  std::set<std::string> names;
  AddNames(statement, &names);
  return names.count(name) > 0;
}
bool StandsIn(const CExpressionPtr& expression, const std::string& name) {
  std::set<std::string> names;
  if (expression != nullptr) AddNames(*expression, &names);
  return names.count(name) > 0;
}

// Names that get values in a loop, with its counter.
bool AddsNothingBut(const CStatement& statement, const std::string& sum, std::set<std::string>* changed) {
  using Kind = CStatement::Kind;
  if (statement.kind == Kind::kFor) return false;
  if (statement.kind == Kind::kDeclaration) changed->insert(statement.variable.name);
  if (statement.kind == Kind::kAssignment &&
      (statement.target->kind != CExpression::Kind::kName ||
       (statement.target->text != sum && changed->count(statement.target->text) == 0)))
    return false;
  return std::all_of(statement.body.begin(), statement.body.end(),
                     [&](const CStatementPtr& inner) { return AddsNothingBut(*inner, sum, changed); });
}

CStatementPtr WithEntry(const CStatementPtr& statement, const std::string& sum, const CExpressionPtr& entry) {
  auto copy = std::make_shared<CStatement>(*statement);
  for (CExpressionPtr* part : {&copy->target, &copy->value})
    if (*part != nullptr) *part = Replaced(*part, sum, entry);
  for (CStatementPtr& inner : copy->body) inner = WithEntry(inner, sum, entry);
  return copy;
}

}  // namespace

CStatementPtr SumInEntry(
    const CStatement& block, const std::vector<CVariable>& scope,
    const std::function<CStatementPtr(const CStatement&, const CStatementPtr&)>& with_body) {
  using Kind = CStatement::Kind;
  if (block.kind != Kind::kBlock || block.body.size() < 3) return nullptr;
  const CStatement& store = *block.body.back();
  const CStatement& loop = *block.body[block.body.size() - 2];
  if (loop.kind != Kind::kFor || loop.meta || store.kind != Kind::kAssignment || store.operation != "=" ||
      store.value->kind != CExpression::Kind::kName || store.target->kind != CExpression::Kind::kSubscript)
    return nullptr;
  const CExpressionPtr entry = store.target;
  const std::string sum = store.value->text;
  std::vector<CStatementPtr> out;
  CExpressionPtr first;
  CType type = CType::kOther;
  for (size_t i = 0; i + 2 < block.body.size(); ++i) {
    const CStatementPtr& one = block.body[i];
    const bool declares = one->kind == Kind::kDeclaration;
    if (declares ? one->variable.name == sum : one->kind == Kind::kAssignment && IsNamed(*one->target, sum)) {
      if (declares && (one->variable.array || type != CType::kOther)) return nullptr;
      if (!declares && (one->operation != "=" || type == CType::kOther)) return nullptr;
      if (StandsIn(one->value, sum)) return nullptr;
      if (declares) type = one->variable.type;
      if (one->value != nullptr) first = one->value;
      continue;
    }
    // Declarations may stand before the sum's first value.
    if (!declares || one->variable.array || StandsIn(*one, sum) || StandsIn(*one, entry->text))
      return nullptr;
    out.push_back(one);
  }
  const auto array = std::find_if(scope.rbegin(), scope.rend(),
                                  [&](const CVariable& variable) { return variable.name == entry->text; });
  if (first == nullptr || array == scope.rend() || !array->array || array->type != type) return nullptr;
  const bool reads_itself = CText(*first) == CText(*entry);
  if (!reads_itself && StandsIn(first, entry->text)) return nullptr;
  std::set<std::string> changed = {loop.variable.name, sum};
  if (!AddsNothingBut(*loop.body[0], sum, &changed) || StandsIn(loop, entry->text)) return nullptr;
  for (const CExpressionPtr& bound : {loop.start, loop.bound, loop.step})
    if (StandsIn(bound, sum)) return nullptr;
  for (const CExpressionPtr& index : entry->operands) {
    if (HasEntries(*index)) return nullptr;
    for (const std::string& name : changed)
      if (StandsIn(index, name)) return nullptr;
  }
  if (!reads_itself) out.push_back(CAssign(entry, first));
  out.push_back(with_body(loop, WithEntry(loop.body[0], sum, entry)));
  return CBlock(std::move(out));
}

}  // namespace fusion
