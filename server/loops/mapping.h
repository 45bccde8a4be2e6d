// The mapping says which loops become kernels, and what of them counts blocks and threads.
#pragma once

#include <string>
#include <vector>

#include "server/loops/check.h"
#include "server/loops/syntax.h"
#include "server/parse/error_list.h"

namespace fusion {

struct MappedLoops {
  // All loops for a device are nests of an even number of meta_for, as MetaFork has them: the first half
  // counts blocks, the others threads. Around them loops, conditions and declarations of the host may stand.
  CProgram program;
  // These of its parameters no text has: block shapes, granularities. They change no result.
  std::vector<CParameter> shapes;
  std::vector<std::string> asserted;  // for people: loops that are parallel by nothing but a pragma
  bool rearranged = false;            // serial nests have another order (rearranged.h)
};

struct MappingOptions {
  // Loops that are not proved to be parallel run one iteration after the other, as the C program without its
  // pragmas does.
  bool proved_only = false;
  // Statements stay in their order and loops around what they are around: loops are only cut into tiles.
  bool as_written = false;
  // Serial loops may be done in strips of K0 iterations (strips.h).
  bool in_strips = true;
  // Serial nests stay in their order.
  bool in_order = false;
};

// Nests of `meta_for` stay as they are. Other parallel loops, up to three around one another, are cut into
// tiles (Moreno Maza 2017, S1): of the last two each block has B0 x B1 threads, and each thread computes s0 x
// s1 iterations; guards keep to the loops' ranges. A parallel loop over several statements becomes a loop
// over each, and one inside of a serial loop is brought outside where it is proved to be parallel there, too.
// Loops of which iterations combine values become two kernels of G and of one block; their entries of arrays
// are added up in another order. Nests of serial loops take another order where that computes the same
// (rearranged.h). A serial loop in which each thread adds up is done in strips of K0 iterations, by all
// threads of a block together. Statements outside of all that become kernels of one thread. `errors`: what no
// kernel is made of.
MappedLoops MapLoops(const CheckedProgram& checked, const MappingOptions& options, ErrorList* errors);

}  // namespace fusion
