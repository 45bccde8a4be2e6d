#include "server/loops/evaluate.h"

#include <algorithm>
#include <limits>

namespace fusion {
namespace {

using ExpressionKind = CExpression::Kind;

std::optional<int64_t> Binary(const std::string& operation, int64_t a, int64_t b) {
  int64_t result = 0;
  if (operation == "+") return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (operation == "-") return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (operation == "*") return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (operation == "/" || operation == "%") {
    if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
    return operation == "/" ? a / b : a % b;
  }
  if (operation == "<<" || operation == ">>") {
    if (b < 0 || b > 62 || a < 0) return std::nullopt;
    if (operation == ">>") return a >> b;
    return __builtin_mul_overflow(a, int64_t{1} << b, &result) ? std::nullopt : std::optional(result);
  }
  if (operation == "<") return a < b;
  if (operation == "<=") return a <= b;
  if (operation == ">") return a > b;
  if (operation == ">=") return a >= b;
  if (operation == "==") return a == b;
  if (operation == "!=") return a != b;
  if (operation == "&&") return a != 0 && b != 0;
  if (operation == "||") return a != 0 || b != 0;
  if (operation == "&") return a & b;
  if (operation == "|") return a | b;
  if (operation == "^") return a ^ b;
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> EvaluateC(const CExpression& expression, const IntegerValues& values) {
  const auto operand = [&](size_t i) { return EvaluateC(*expression.operands[i], values); };
  switch (expression.kind) {
    case ExpressionKind::kInteger:
      return expression.integer;
    case ExpressionKind::kName: {
      const auto found = values.find(expression.text);
      return found == values.end() ? std::nullopt : std::optional(found->second);
    }
    case ExpressionKind::kUnary: {
      const std::optional<int64_t> value = operand(0);
      if (!value || *value == std::numeric_limits<int64_t>::min()) return std::nullopt;
      if (expression.text == "-") return -*value;
      if (expression.text == "!") return *value == 0;
      return std::nullopt;
    }
    case ExpressionKind::kCast:
      return IsIntegerType(expression.type) ? operand(0) : std::nullopt;
    case ExpressionKind::kConditional: {
      const std::optional<int64_t> condition = operand(0);
      if (!condition) return std::nullopt;
      return operand(*condition != 0 ? 1 : 2);
    }
    case ExpressionKind::kCall: {
      if ((expression.text != "min" && expression.text != "max") || expression.operands.size() != 2)
        return std::nullopt;
      const std::optional<int64_t> a = operand(0), b = operand(1);
      if (!a || !b) return std::nullopt;
      return expression.text == "min" ? std::min(*a, *b) : std::max(*a, *b);
    }
    case ExpressionKind::kBinary: {
      const std::optional<int64_t> a = operand(0), b = operand(1);
      return a && b ? Binary(expression.text, *a, *b) : std::nullopt;
    }
    case ExpressionKind::kReal:
    case ExpressionKind::kSubscript:
      return std::nullopt;
  }
  return std::nullopt;
}

IntegerValues ScopeValues(const std::vector<CVariable>& scope, const IntegerValues& given) {
  IntegerValues values = given;
  for (const CVariable& variable : scope) {
    if (variable.array || values.count(variable.name) > 0) continue;
    if (variable.initial != nullptr) {
      if (const auto value = EvaluateC(*variable.initial, values)) values[variable.name] = *value;
    } else if (variable.constant) {
      values[variable.name] = *variable.constant;
    }
  }
  return values;
}

}  // namespace fusion
