// Memory of which some may not be there.
#pragma once

#include <cstddef>

namespace fusion {

// Copies the bytes. Returns false, and does not fault, where some of them cannot be read or the system does
// not tell: then some may have been copied.
bool CopyReadable(char* to, const char* from, size_t bytes);

}  // namespace fusion
