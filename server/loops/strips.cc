#include "server/loops/strips.h"

#include <algorithm>
#include <memory>
#include <set>

#include "server/loops/build_c.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

// Says what the iterations of a loop write; `varies` has names that differ from one to the next.
struct Written {
  std::set<std::string> varies;
  bool entries = false, alike = true;
};

void Look(const CStatement& statement, Written* written) {
  if (statement.kind == Kind::kDeclaration) written->varies.insert(statement.variable.name);
  if (statement.kind == Kind::kFor || statement.meta) written->alike = false;
  if (statement.kind == Kind::kAssignment) {
    if (statement.target->kind == CExpression::Kind::kSubscript) {
      written->entries = true;
      std::set<std::string> names;
      for (const CExpressionPtr& index : statement.target->operands) AddNames(*index, &names);
      for (const std::string& name : names) written->alike &= written->varies.count(name) == 0;
    } else {
      written->alike &= written->varies.count(statement.target->text) > 0;
    }
  }
  for (const CStatementPtr& inner : statement.body) Look(*inner, written);
}

}  // namespace

bool MayBeInStrips(const CStatement& statement) {
  if (statement.kind != Kind::kFor || statement.meta || statement.parts || statement.down) return false;
  if (statement.step->kind != CExpression::Kind::kInteger || statement.step->integer != 1) return false;
  Written written{.varies = {statement.variable.name}};
  Look(*statement.body[0], &written);
  return written.entries && written.alike;
}

CExpressionPtr StripCount(const CStatement& loop, const CExpressionPtr& length) {
  return CBinary("/", CBinary("-", CBinary("+", TripCount(loop), length), CInteger(1)), length);
}

CStatementPtr StripOf(const CStatement& loop, const CExpressionPtr& strip, const CExpressionPtr& length) {
  auto one = std::make_shared<CStatement>(loop);
  one->start = CBinary("+", loop.start, CBinary("*", strip, length));
  const bool inclusive = loop.relation == "<=";
  one->relation = "<";
  one->bound = CSmaller(CBinary("+", one->start, length),
                        inclusive ? CBinary("+", loop.bound, CInteger(1)) : loop.bound);
  return one;
}

}  // namespace fusion
