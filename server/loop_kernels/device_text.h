// Words of C as generated code has them.
#pragma once

#include <string>

#include "server/loops/syntax.h"

namespace fusion {

// Returns the name that generated code has for one of the text: the same, unless generated code means
// something else by it, or the C++ of a device does.
std::string DeviceName(const std::string& name);

// Returns the type in generated code; `force_f64`: float becomes double.
const char* DeviceType(CType type, bool force_f64);

// Returns the call of a function of C as both printers of kernels have it; its arguments are ready.
CExpressionPtr DeviceCall(const CExpression& call, bool force_f64);

// Returns an expression with such names and calls; its entries of arrays stay as they are.
CExpressionPtr DeviceExpression(const CExpression& expression, bool force_f64);

}  // namespace fusion
