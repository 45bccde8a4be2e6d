// A sum in a scalar becomes one in the entry that it is for.
#pragma once

#include <functional>
#include <vector>

#include "server/loops/syntax.h"

namespace fusion {

// Returns `x = first; for (...) x += ...; a[i] = x;` as `a[i] = first; for (...) a[i] += ...;`, without the
// first statement where `first` is a[i]: where x is of the type of a and used for nothing else, and nothing
// there touches other entries of a. Else null. Then what a thread adds up is known by its entry, as it is
// where the text says so itself. `scope`: variables around. `with_body`: makes a loop with another body.
CStatementPtr SumInEntry(
    const CStatement& block, const std::vector<CVariable>& scope,
    const std::function<CStatementPtr(const CStatement&, const CStatementPtr&)>& with_body);

}  // namespace fusion
