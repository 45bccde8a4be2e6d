// Parts of syntax trees that no text has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/loops/syntax.h"
#include "server/polynomial/polynomial.h"

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
CExpressionPtr CAll(const std::vector<CExpressionPtr>& conditions);  // of one or more
// Returns how many iterations a loop has, where that is positive; else a number that is not.
CExpressionPtr TripCount(const CStatement& loop);
// Returns the value of a loop's counter in its iteration `number`, from 0.
CExpressionPtr CounterValue(const CStatement& loop, const CExpressionPtr& number);

// Returns the expression with another one in the place of a name.
CExpressionPtr Replaced(const CExpressionPtr& expression, const std::string& name, const CExpressionPtr& by);
// Returns the statement with an expression in the place of a name that nothing in it declares.
CStatementPtr Replaced(const CStatementPtr& statement, const std::string& name, const CExpressionPtr& by);

// Returns the polynomial as C, where `names` has a name for each of its symbols; else null.
CExpressionPtr CPolynomial(const Polynomial& polynomial, const std::map<std::string, std::string>& names);

}  // namespace fusion
