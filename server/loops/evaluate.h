// Evaluates integer expressions, as C does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/loops/syntax.h"

namespace fusion {

using IntegerValues = std::map<std::string, int64_t>;

// Returns the value; nothing where a name has none, where it is no integer, or where C has no answer:
// division by 0, more than 64 bits.
std::optional<int64_t> EvaluateC(const CExpression& expression, const IntegerValues& values);

// Returns `given` with the values of all variables of a scope that follow: constants, and what is computed of
// others. What is given replaces constants.
IntegerValues ScopeValues(const std::vector<CVariable>& scope, const IntegerValues& given);

}  // namespace fusion
