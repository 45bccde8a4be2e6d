// These numbers say how often programs that measure a routine repeat it: few and many times.
#pragma once

#include <algorithm>

namespace fusion {

struct Repeats {
  int few = 1, many = 2;
};

inline constexpr int kFewestRepeats = 4;
// Seconds: the clock of a GPU counts in steps of half a microsecond to one.
inline constexpr double kLeastDifference = 3e-5;
inline constexpr int kRepeatsGrow = 8;  // from one round of measuring to the next

// The peak rate alone says how often a routine has to be repeated at most, so that it takes longer than loads
// and stores, which run beside it. Routines of many instructions for each operation, and those of few
// threads, take a hundred times as long: measuring begins with few repeats and goes on where these do not
// suffice.
inline Repeats FirstRepeats(Repeats most) {
  constexpr int kLess = kRepeatsGrow * kRepeatsGrow;
  const int few = std::min(most.few, std::max(kFewestRepeats, (most.few + kLess - 1) / kLess));
  return {.few = few, .many = 2 * few};
}

inline Repeats NextRepeats(Repeats repeats, Repeats most) {
  const int few = std::min(repeats.few * kRepeatsGrow, most.few);
  return {.few = few, .many = 2 * few};
}

// Returns whether the difference of two times in seconds, of a routine repeated few times and twice as often,
// is the time that the repeats took, to 6 %: then nothing that ran beside them was much longer than the
// fewer, and the clock's steps are small beside it.
inline bool RoutineStandsOut(double few, double many) {
  return many >= 1.9 * few && many - few >= kLeastDifference;
}

}  // namespace fusion
