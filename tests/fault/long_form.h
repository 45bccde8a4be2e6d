// Says how much of a test of faults is done: enough for every commit, or, with FUSION_LONG_TESTS=1 in the
// environment, all of it. It also tells what the test counted, for deploy/dev/soak.sh.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fusion {

inline bool LongForm() {
  const char* wanted = std::getenv("FUSION_LONG_TESTS");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

inline int Count(int short_form, int long_form) { return LongForm() ? long_form : short_form; }

// Prints a line that tests/fault/soak.py reads. Several of one name are added up, or the largest or smallest
// is taken, as the row there says.
inline void TellFigure(const char* name, double value) { std::printf("figure: %s = %.10g\n", name, value); }

}  // namespace fusion
