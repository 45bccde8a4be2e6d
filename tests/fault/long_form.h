// How much of a test of faults is done: enough for every commit, or, with FUSION_LONG_TESTS=1 in the
// environment, all of it.
#pragma once

#include <cstdlib>
#include <cstring>

namespace fusion {

inline bool LongForm() {
  const char* wanted = std::getenv("FUSION_LONG_TESTS");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

inline int Count(int short_form, int long_form) { return LongForm() ? long_form : short_form; }

}  // namespace fusion
