// Dependences say whether iterations of loops may run at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/loops/nest.h"

namespace fusion {

enum class Verdict : uint8_t {
  kIndependent,  // proved: no two iterations touch the same memory, of which one writes
  kCarried,      // a pair of iterations does, and there is a witness
  kReduction,    // the same, and all that they do there is to add up, multiply, or take the larger
  kUnknown,
};

struct LoopVerdict {
  int loop = 0;
  Verdict verdict = Verdict::kUnknown;
  // The pair that is carried, or of which nothing is known. `text` is for people: "a[i + 1] (written here,
  // read at 7:14)".
  SourcePosition position;
  std::string text;
  std::vector<std::string>
      own;              // scalars of which each iteration has to have its own, as each writes them first
  std::string witness;  // kCarried, kReduction: "n = 3: i = 0 and i = 1 both touch a[1]"
};

// Returns what is known of each loop that somebody claims to be parallel, or asks about, by number. A loop of
// which nothing is proved is unknown, and never independent.
std::vector<LoopVerdict> FindDependences(const Nest& nest);

}  // namespace fusion
