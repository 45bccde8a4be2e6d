// Words that descriptions of kernels have in common (server/plan/README.md lists them all).
#pragma once

#include <string>

#include "server/plan/plan.h"

namespace fusion {

// "{q s} row_panel T256": what the kernel computes, in order, its skeleton and its threads.
std::string DescriptionStart(const Graph& graph, const FusionImplementation& kernel, int threads);

// " V4", where the number is more than one; else "".
std::string WordIfSeveral(const char* letter, int number);
// " one-shot", " B2", or "" for one.
std::string BlocksWord(int blocks_per_multiprocessor);
// " L2 40%", or "" for none.
std::string L2Word(int percent);

}  // namespace fusion
