// Random loops as kernels in random shapes.
#pragma once

#include <random>
#include <string>

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
  size_t parallel = 0;  // loops
};

// Makes a program; its kernels are named after `number`. Fails the test where that cannot be.
RandomProgram MakeRandomProgram(std::mt19937& random, int number, const RandomProgramOptions& options);

}  // namespace fusion::testing
