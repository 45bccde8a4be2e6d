// A block takes so many elements of a list at once, with so many threads.
#pragma once

#include <vector>

#include "server/skeletons/element/element.h"

namespace fusion {

// The threads that compute the elements of a fusion.
struct Granularities {
  bool all_thread = true, any_thread = false;  // a thread for an element: all functions, some
  bool one_choice = false;                     // no function can be computed otherwise
  int items_per_element = 1;                   // items of the function that divides elements most
};

struct Tile {
  int threads, elements;
  bool idle = false;  // some threads have nothing to do: for where no other tile fits
};

// Returns the tiles that blocks may do at once, in the order in which equal predictions are preferred.
// `placed`: with the placement of values.
std::vector<Tile> TilesOf(const FusionShape& shape, const FusionImplementation& placed,
                          const Granularities& of);

}  // namespace fusion
