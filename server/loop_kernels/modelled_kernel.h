// Counts of what kernels do, as polynomials, for models of computation (models.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/loops/mapping.h"
#include "server/loops/nest.h"
#include "server/polynomial/polynomial.h"

namespace fusion {

// A thread does this at most: of branches the larger one counts, of loops whose ends differ the longest.
// Arithmetic of indices and of counters is left out. A word has four bytes; an entry that is the same for all
// parts of a thread, or all along an innermost loop, counts once, as registers hold it. An access is
// coalesced where neighbouring threads touch the same entry or neighbouring ones, else it is scattered.
struct ThreadWork {
  Polynomial operations;
  Polynomial coalesced_reads, scattered_reads, coalesced_writes, scattered_writes;  // words
};

// Numbers are inexact where they are not known.
struct KernelCounts {
  Polynomial blocks, threads;  // threads of a block
  ThreadWork thread;
  Polynomial block_words;  // that a block touches, of FootprintOf
};

struct ModelledKernel {
  std::string name;         // the counter of its outermost loop, and its place: "v0 at 11:5"
  std::string granularity;  // the parameter that says how many entries a thread computes; "": there is none
  Polynomial launches;      // at most
  KernelCounts counts;      // of a launch, in which counters of the host's loops may stand
  KernelCounts most;        // of any launch
  std::map<std::string, Polynomial> arrays;      // that it touches: their entries
  std::shared_ptr<const Nest> nest;              // symbols of the polynomials are its
  std::map<std::string, std::string> variables;  // of the text, by the quotient's symbol that is their value
};

// Returns the kernels in the order of LoopCode::kernels.
std::vector<ModelledKernel> ModelledKernels(const MappedLoops& mapped);

// Returns the larger of two numbers that are not negative; where the signs of their terms do not tell which
// that is, their sum.
Polynomial AtMostEither(const Polynomial& a, const Polynomial& b);

}  // namespace fusion
