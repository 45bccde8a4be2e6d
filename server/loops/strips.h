// A loop in which a thread adds up is done in strips.
#pragma once

#include <string>

#include "server/loops/syntax.h"

namespace fusion {

// Returns whether a statement is a loop, of one iteration after the other, whose iterations all write the
// same entries of arrays: a sum over what they read, as a rule. Threads of a block that go through it
// together can share what a strip of it reads.
bool MayBeInStrips(const CStatement& statement);

// Returns how many strips of `length` iterations there are; the last one may be shorter.
CExpressionPtr StripCount(const CStatement& loop, const CExpressionPtr& length);

// Returns the loop over one of the strips: that with the number `strip`. Its bound is the smaller of the
// strip's end, which stands first, and the loop's.
CStatementPtr StripOf(const CStatement& loop, const CExpressionPtr& strip, const CExpressionPtr& length);

}  // namespace fusion
