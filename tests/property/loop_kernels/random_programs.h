// Random loops as kernels in random shapes.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "server/loop_kernels/interface.h"
#include "server/loop_kernels/lowering.h"

namespace fusion::testing {

struct RandomProgramOptions {
  // Type of the arrays. Reals are added up in the order of the text alone, stay small, and are not divided.
  CType type = CType::kInt;
  int most_iterations = 7;  // sizes are at most that
  int most_threads = 4;     // sides of blocks are at most that
};

struct RandomProgram {
  std::string text;
  CProgram program;
  LoopInterface interface;
  LoopCode code;
  IntegerValues sizes;
  size_t parallel = 0;  // loops of the text
  bool rearranged = false;
};

// Makes a program; its kernels are named after `number`. Fails the test where that cannot be.
RandomProgram MakeRandomProgram(std::mt19937& random, int number, const RandomProgramOptions& options);
// Makes a program of a given text, with random shapes and sizes n and m. Nothing in the text may claim
// anything, as claims may be refused.
RandomProgram MakeProgramOf(const std::string& text, std::mt19937& random, int number,
                            const RandomProgramOptions& options);

// Runs the programs `first`, `first` + 1 ... of one compilation on this host, and fails the test where an
// array is not the same as in C bit for bit. Every second one runs backwards (host_run.h).
void CompareWithC(const std::vector<RandomProgram>& programs, int first);

}  // namespace fusion::testing
