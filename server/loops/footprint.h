// The footprint says how many words of arrays a block of threads touches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/loops/nest.h"
#include "server/polynomial/polynomial.h"

namespace fusion {

// The loops of one kernel, by number.
struct KernelLoops {
  int root = 0;  // the outermost meta_for
  // These loops are around each other, outermost first; the first half counts blocks. Where there are several
  // loops over threads one after the other, these are the first ones.
  std::vector<int> metas;
  std::vector<int> local;  // loops that run inside of a block: from the first that counts threads on
  // The serial loop that says how many entries a thread computes, and the name of that parameter.
  std::optional<int> granular;
  std::string granularity;
};

// Returns the kernels of a nest, in the order of the text. Loops whose meta_fors are not an even number have
// none.
std::vector<KernelLoops> KernelsOf(const Nest& nest);

// A part of an array that a block touches. Numbers are polynomials in what is the same for the whole block,
// but for `Use::place`.
struct TouchedBox {
  int array = 0;
  // These are by dimension. An array of one dimension has two here where its index is that of rows and
  // columns.
  std::vector<Polynomial> first;    // index; inexact where it is not known
  std::vector<Polynomial> extents;  // indices
  std::vector<Polynomial> strides;  // entries of the array from one index to the next
  // An access, by number, and which index of the box it touches in each dimension, from 0.
  struct Use {
    int access = 0;
    std::vector<Polynomial> place;
  };
  std::vector<Use> uses;
  const NestGuard* guard = nullptr;  // the same for the whole kernel, and around all uses; null: none
};

// Returns the boxes of arrays whose indices are polynomials, in the order of the text: one for accesses that
// differ by constants alone and are under the same guard.
std::vector<TouchedBox> BoxesOf(const Nest& nest, const KernelLoops& kernel);

struct Footprint {
  std::vector<std::string> arrays;  // that can be cached, in the order of the text
  Polynomial words;                 // of all of them
};

// Returns what a block touches of arrays whose indices are polynomials: boxes, one for accesses that differ
// by constants alone. A condition that is the same for the whole kernel chooses between its branches; where
// they touch different numbers of words the sum is returned. `single`: with a granularity of 1.
Footprint FootprintOf(const Nest& nest, const KernelLoops& kernel, bool single);

}  // namespace fusion
