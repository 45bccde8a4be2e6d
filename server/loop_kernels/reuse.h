// A thread keeps what it uses again in registers.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/loops/evaluate.h"
#include "server/loops/syntax.h"

namespace fusion {

// Rewrites what one thread does.
//
// An entry of an array that all iterations of a loop write, and that no other statement there may touch, is a
// variable while the loop runs. And parts (CStatement::parts), which are independent, do each statement in
// turn instead of one after the other: a loop inside of them is gone through once for all of them, so that
// what it reads is read once. Both change no result: each entry gets the same values in the same order.
// `arrays`: types of arrays that are not declared in `body`. `constants`: values of names that are constants
// in the code.
CStatementPtr KeepInRegisters(const CStatementPtr& body, const std::map<std::string, CType>& arrays,
                              const IntegerValues& constants);

// Returns the entries of `arrays` that every iteration of a loop writes, and that no other statement there
// may touch. Names in `changed`, too, have other values from one iteration to the next.
std::vector<CExpressionPtr> EntriesOfAll(const CStatement& loop, const std::map<std::string, CType>& arrays,
                                         const std::set<std::string>& changed);

// Returns the statement with a variable in the place of an entry of an array.
CStatementPtr WithVariable(const CStatementPtr& statement, const CExpression& entry,
                           const CExpressionPtr& variable);

// Returns whether one of the names stands in an expression.
bool UsesAny(const CExpression& expression, const std::set<std::string>& names);

// Returns whether there is a loop in a statement, or it is one.
bool HasLoop(const CStatement& statement);

}  // namespace fusion
