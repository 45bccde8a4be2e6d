#include "server/loops/syntax.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace fusion {

const char* CTypeName(CType type) {
  switch (type) {
    case CType::kInt:
      return "int";
    case CType::kLong:
      return "long";
    case CType::kFloat:
      return "float";
    case CType::kDouble:
      return "double";
    case CType::kOther:
      return "another type";
  }
  return "";
}

bool CDirective::Has(const std::string& construct) const {
  return std::find(constructs.begin(), constructs.end(), construct) != constructs.end();
}

bool CClause::IsPrivate() const {
  return name == "private" || name == "firstprivate" || name == "lastprivate" || name == "linear";
}

bool IsNamed(const CExpression& expression, const std::string& name) {
  return expression.kind == CExpression::Kind::kName && expression.text == name;
}

bool HasEntries(const CExpression& expression) {
  return expression.kind == CExpression::Kind::kSubscript ||
         std::any_of(expression.operands.begin(), expression.operands.end(),
                     [](const CExpressionPtr& operand) { return HasEntries(*operand); });
}
bool ReadsMemory(const CExpression& expression) {
  return expression.kind == CExpression::Kind::kSubscript || expression.kind == CExpression::Kind::kCall ||
         std::any_of(expression.operands.begin(), expression.operands.end(),
                     [](const CExpressionPtr& operand) { return ReadsMemory(*operand); });
}

void AddNames(const CExpression& expression, std::set<std::string>* names) {
  using Kind = CExpression::Kind;
  if (expression.kind == Kind::kName || expression.kind == Kind::kSubscript) names->insert(expression.text);
  for (const CExpressionPtr& operand : expression.operands) AddNames(*operand, names);
}

void AddNames(const CStatement& statement, std::set<std::string>* names) {
  if (!statement.variable.name.empty()) names->insert(statement.variable.name);
  std::vector<CExpressionPtr> parts = {statement.target, statement.value, statement.start, statement.bound,
                                       statement.step};
  parts.insert(parts.end(), statement.cached.begin(), statement.cached.end());
  parts.insert(parts.end(), statement.variable.extents.begin(), statement.variable.extents.end());
  for (const CDirective& directive : statement.directives)
    for (const CClause& clause : directive.clauses) {
      parts.insert(parts.end(), clause.expressions.begin(), clause.expressions.end());
      names->insert(clause.names.begin(), clause.names.end());
    }
  for (const CExpressionPtr& part : parts)
    if (part != nullptr) AddNames(*part, names);
  for (const CStatementPtr& inner : statement.body) AddNames(*inner, names);
}

void AddNames(const CVariable& variable, std::set<std::string>* names) {
  for (const CExpressionPtr& extent : variable.extents)
    if (extent != nullptr) AddNames(*extent, names);
  if (variable.initial != nullptr) AddNames(*variable.initial, names);
}

void AddDeclared(const CStatement& statement, std::set<std::string>* names) {
  if (statement.kind == CStatement::Kind::kDeclaration ||
      (statement.kind == CStatement::Kind::kFor && statement.declares))
    names->insert(statement.variable.name);
  for (const CStatementPtr& inner : statement.body) AddDeclared(*inner, names);
}

CStatementPtr Unwrapped(CStatementPtr statement) {
  while ((statement->kind == CStatement::Kind::kBlock || statement->kind == CStatement::Kind::kSchedule) &&
         statement->body.size() == 1)
    statement = statement->body[0];
  return statement;
}

std::vector<const CStatement*> LoopsOf(const CStatement& statement) {
  std::vector<const CStatement*> loops;
  if (statement.kind == CStatement::Kind::kFor) loops.push_back(&statement);
  for (const CStatementPtr& inner : statement.body) {
    const std::vector<const CStatement*> inside = LoopsOf(*inner);
    loops.insert(loops.end(), inside.begin(), inside.end());
  }
  return loops;
}

bool HasMeta(const CStatement& statement) {
  return statement.meta || std::any_of(statement.body.begin(), statement.body.end(),
                                       [](const CStatementPtr& inner) { return HasMeta(*inner); });
}

int MetaDepth(const CStatement& statement) {
  int inside = 0;
  for (const CStatementPtr& inner : statement.body) inside = std::max(inside, MetaDepth(*inner));
  return inside + (statement.meta ? 1 : 0);
}

namespace {

// Returns how tightly an operator binds, as in C.
int BindingOf(const CExpression& expression) {
  using Kind = CExpression::Kind;
  static const std::pair<absl::string_view, int> kBindings[] = {
      {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},  {"<=", 7},
      {">", 7},  {">=", 7}, {"<<", 8}, {">>", 8}, {"+", 9}, {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
  if (expression.kind == Kind::kConditional) return 0;
  if (expression.kind == Kind::kUnary || expression.kind == Kind::kCast) return 11;
  if (expression.kind == Kind::kBinary)
    for (const auto& [operation, binding] : kBindings)
      if (operation == expression.text) return binding;
  return 12;
}

std::string InBrackets(const CExpression& expression, int least) {
  std::string text = CText(expression);
  return BindingOf(expression) < least ? absl::StrCat("(", text, ")") : text;
}

}  // namespace

std::string CText(const CExpression& expression) {
  using Kind = CExpression::Kind;
  const auto& operands = expression.operands;
  const int binding = BindingOf(expression);
  switch (expression.kind) {
    case Kind::kInteger:
    case Kind::kReal:
    case Kind::kName:
      return expression.text;
    case Kind::kSubscript: {
      std::string text = expression.text;
      for (const CExpressionPtr& index : operands) absl::StrAppend(&text, "[", CText(*index), "]");
      return text;
    }
    case Kind::kUnary:
      if (expression.text.size() == 2) return absl::StrCat(InBrackets(*operands[0], 12), expression.text);
      return absl::StrCat(expression.text, InBrackets(*operands[0], 12));
    case Kind::kCast:
      return absl::StrCat("(", expression.text, ")", InBrackets(*operands[0], 11));
    case Kind::kBinary:
      return absl::StrCat(InBrackets(*operands[0], binding), " ", expression.text, " ",
                          InBrackets(*operands[1], binding + 1));
    case Kind::kConditional:
      return absl::StrCat(InBrackets(*operands[0], 1), " ? ", CText(*operands[1]), " : ",
                          CText(*operands[2]));
    case Kind::kCall:
      return absl::StrCat(expression.text, "(",
                          absl::StrJoin(operands, ", ",
                                        [](std::string* out, const CExpressionPtr& operand) {
                                          out->append(CText(*operand));
                                        }),
                          ")");
  }
  return "";
}

}  // namespace fusion
