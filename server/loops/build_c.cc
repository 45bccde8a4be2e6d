#include "server/loops/build_c.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using ExpressionKind = CExpression::Kind;

CExpressionPtr Make(ExpressionKind kind, std::string text, std::vector<CExpressionPtr> operands) {
  auto expression = std::make_shared<CExpression>();
  expression->kind = kind;
  if (!operands.empty()) expression->position = operands[0]->position;
  expression->text = std::move(text);
  expression->operands = std::move(operands);
  return expression;
}

bool IsInteger(const CExpressionPtr& expression, int64_t value) {
  return expression->kind == ExpressionKind::kInteger && expression->integer == value;
}

}  // namespace

CExpressionPtr CInteger(int64_t value) {
  auto number = std::make_shared<CExpression>();
  number->text = absl::StrCat(value);
  number->integer = value;
  return number;
}

CExpressionPtr CName(const std::string& name) { return Make(ExpressionKind::kName, name, {}); }

CExpressionPtr CEntry(const std::string& array, const CExpressionPtr& index) {
  return Make(ExpressionKind::kSubscript, array, {index});
}
CExpressionPtr CCall(const std::string& function, std::vector<CExpressionPtr> arguments) {
  return Make(ExpressionKind::kCall, function, std::move(arguments));
}

CExpressionPtr CBinary(const std::string& operation, const CExpressionPtr& left,
                       const CExpressionPtr& right) {
  if (operation == "*" || operation == "/") {
    if (IsInteger(right, 1)) return left;
    if (operation == "*" && IsInteger(left, 1)) return right;
  }
  if (operation == "+" || operation == "-") {
    if (IsInteger(right, 0)) return left;
    if (operation == "+" && IsInteger(left, 0)) return right;
  }
  if (left->kind == ExpressionKind::kInteger && right->kind == ExpressionKind::kInteger) {
    int64_t result = 0;
    if (operation == "+" && !__builtin_add_overflow(left->integer, right->integer, &result))
      return CInteger(result);
    if (operation == "*" && !__builtin_mul_overflow(left->integer, right->integer, &result))
      return CInteger(result);
    if (operation == "-" && left->integer >= right->integer) return CInteger(left->integer - right->integer);
  }
  return Make(ExpressionKind::kBinary, operation, {left, right});
}

CExpressionPtr CSmaller(const CExpressionPtr& left, const CExpressionPtr& right) {
  return Make(ExpressionKind::kConditional, "?", {CBinary("<", left, right), left, right});
}
CExpressionPtr CLarger(const CExpressionPtr& left, const CExpressionPtr& right) {
  return Make(ExpressionKind::kConditional, "?", {CBinary(">", left, right), left, right});
}

CStatementPtr CDeclare(CType type, const std::string& name, const CExpressionPtr& value) {
  auto statement = std::make_shared<CStatement>();
  statement->kind = CStatement::Kind::kDeclaration;
  statement->variable.name = name;
  statement->variable.type = type;
  statement->value = value;
  return statement;
}

CStatementPtr CAssign(const CExpressionPtr& target, const CExpressionPtr& value) {
  auto statement = std::make_shared<CStatement>();
  statement->kind = CStatement::Kind::kAssignment;
  statement->position = target->position;
  statement->target = target;
  statement->value = value;
  statement->operation = "=";
  return statement;
}

CStatementPtr CBlock(std::vector<CStatementPtr> body) {
  auto statement = std::make_shared<CStatement>();
  statement->body = std::move(body);
  return statement;
}

CStatementPtr CWhere(const CExpressionPtr& condition, const CStatementPtr& body) {
  auto statement = std::make_shared<CStatement>();
  statement->kind = CStatement::Kind::kIf;
  statement->value = condition;
  statement->body = {body};
  return statement;
}

std::shared_ptr<CStatement> CCount(const std::string& counter, const CExpressionPtr& bound,
                                   const CStatementPtr& body, bool meta) {
  auto statement = std::make_shared<CStatement>();
  statement->kind = CStatement::Kind::kFor;
  statement->position = body->position;
  statement->meta = meta;
  statement->declares = true;
  statement->variable.name = counter;
  statement->start = CInteger(0);
  statement->bound = bound;
  statement->step = CInteger(1);
  statement->relation = "<";
  statement->body = {body};
  return statement;
}

CExpressionPtr GoesOn(const CStatement& loop) {
  return CBinary(loop.relation, CName(loop.variable.name), loop.bound);
}

CExpressionPtr CAll(const std::vector<CExpressionPtr>& conditions) {
  CExpressionPtr all = conditions[0];
  for (size_t i = 1; i < conditions.size(); ++i) all = CBinary("&&", all, conditions[i]);
  return all;
}

CExpressionPtr TripCount(const CStatement& loop) {
  const CExpressionPtr room =
      loop.down ? CBinary("-", loop.start, loop.bound) : CBinary("-", loop.bound, loop.start);
  const bool inclusive = loop.relation.size() == 2;
  if (loop.step->kind == CExpression::Kind::kInteger && loop.step->integer == 1)
    return inclusive ? CBinary("+", room, loop.step) : room;
  // Division rounds towards 0, so what is added keeps the numerator from -step..-1.
  if (inclusive) return CBinary("/", CBinary("+", room, loop.step), loop.step);
  return CBinary("/", CBinary("-", CBinary("+", room, loop.step), CInteger(1)), loop.step);
}

CExpressionPtr CounterValue(const CStatement& loop, const CExpressionPtr& number) {
  return CBinary(loop.down ? "-" : "+", loop.start, CBinary("*", loop.step, number));
}

CExpressionPtr Replaced(const CExpressionPtr& expression, const std::string& name, const CExpressionPtr& by) {
  if (IsNamed(*expression, name)) return by;
  if (expression->operands.empty()) return expression;
  auto copy = std::make_shared<CExpression>(*expression);
  for (CExpressionPtr& operand : copy->operands) operand = Replaced(operand, name, by);
  return copy;
}

CStatementPtr Replaced(const CStatementPtr& statement, const std::string& name, const CExpressionPtr& by) {
  auto copy = std::make_shared<CStatement>(*statement);
  for (CExpressionPtr* part : {&copy->target, &copy->value, &copy->start, &copy->bound, &copy->step})
    if (*part != nullptr) *part = Replaced(*part, name, by);
  for (CExpressionPtr& extent : copy->variable.extents)
    if (extent != nullptr) extent = Replaced(extent, name, by);
  for (CStatementPtr& inner : copy->body) inner = Replaced(inner, name, by);
  return copy;
}

CExpressionPtr CPolynomial(const Polynomial& polynomial, const std::map<std::string, std::string>& names) {
  if (!polynomial.exact()) return nullptr;
  CExpressionPtr sum;
  for (const bool negative : {false, true})
    for (auto term = polynomial.terms().rbegin(); term != polynomial.terms().rend(); ++term) {
      const auto& [monomial, coefficient] = *term;
      if ((coefficient < 0) != negative) continue;
      const Int128 size = negative ? -coefficient : coefficient;
      if (size > INT32_MAX) return nullptr;
      CExpressionPtr product = CInteger(static_cast<int64_t>(size));
      for (const auto& [symbol, power] : monomial) {
        const auto known = names.find(symbol);
        if (known == names.end()) return nullptr;
        for (int i = 0; i < power; ++i) product = CBinary("*", product, CName(known->second));
      }
      if (sum == nullptr)
        sum = negative ? CBinary("-", CInteger(0), product) : product;
      else
        sum = CBinary(negative ? "-" : "+", sum, product);
    }
  return sum == nullptr ? CInteger(0) : sum;
}

}  // namespace fusion
