// Parts of syntax trees that no text has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/loops/syntax.h"

namespace fusion {

CExpressionPtr CInteger(int64_t value);
CExpressionPtr CName(const std::string& name);
CExpressionPtr CEntry(const std::string& array, const CExpressionPtr& index);
CExpressionPtr CCall(const std::string& function, std::vector<CExpressionPtr> arguments);
// Simplifies what constants allow: x*1, x+0, 2*3.
CExpressionPtr CBinary(const std::string& operation, const CExpressionPtr& left, const CExpressionPtr& right);
CExpressionPtr CSmaller(const CExpressionPtr& left,
                        const CExpressionPtr& right);  // left < right ? left : right
CExpressionPtr CLarger(const CExpressionPtr& left, const CExpressionPtr& right);

CStatementPtr CDeclare(CType type, const std::string& name, const CExpressionPtr& value);  // null: no value
CStatementPtr CAssign(const CExpressionPtr& target, const CExpressionPtr& value);
CStatementPtr CBlock(std::vector<CStatementPtr> body);
CStatementPtr CWhere(const CExpressionPtr& condition, const CStatementPtr& body);
// `for (int counter = 0; counter < bound; counter++)`, or meta_for.
std::shared_ptr<CStatement> CCount(const std::string& counter, const CExpressionPtr& bound,
                                   const CStatementPtr& body, bool meta);

// Returns the condition under which a loop goes on.
CExpressionPtr GoesOn(const CStatement& loop);
// Returns how many iterations a loop has, where that is positive; else a number that is not.
CExpressionPtr TripCount(const CStatement& loop);
// Returns the value of a loop's counter in its iteration `number`, from 0.
CExpressionPtr CounterValue(const CStatement& loop, const CExpressionPtr& number);

// Returns the expression with another one in the place of a name.
CExpressionPtr Replaced(const CExpressionPtr& expression, const std::string& name, const CExpressionPtr& by);

}  // namespace fusion
