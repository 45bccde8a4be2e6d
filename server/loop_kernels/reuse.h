// A thread keeps what it uses again in registers.
#pragma once

#include <map>
#include <string>

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

}  // namespace fusion
