// Memory of which some may not be there.
#pragma once

#include <cstddef>

#include "client/partition/ranges.h"

namespace fusion {

// Copies the bytes. Returns false, and does not fault, where some of them cannot be read or the system does
// not tell: then some may have been copied.
bool CopyReadable(char* to, const char* from, size_t bytes);

// Returns false where memory that not all of an array's iterations touch begins or ends with bytes that are
// not there: such a range may be much larger than memory, and needs no copy then.
bool EndsAreReadable(const LoopRanges& ranges);

}  // namespace fusion
