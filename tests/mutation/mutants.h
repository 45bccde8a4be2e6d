// Wrong kernels, each made from a right one by one change of a kind that code generators get wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/codegen/source.h"
#include "server/lowering/fusion_code.h"

namespace fusion::testing {

enum class MutationKind {
  kBound,    // a bound of a loop, of a tile or of a range is off by one
  kGuard,    // a condition is taken to hold
  kBarrier,  // those who should wait do not
  kStride,   // a step or a distance is another
  kInitial,  // a sum, product or maximum begins as something else, or as what was left there before
  kLane,     // the part of a lane, a warp, a group or a block is left out
};
inline constexpr MutationKind kMutationKinds[] = {MutationKind::kBound,   MutationKind::kGuard,
                                                  MutationKind::kBarrier, MutationKind::kStride,
                                                  MutationKind::kInitial, MutationKind::kLane};
const char* NameOf(MutationKind kind);
// Why mutants of the kind can compute what the original does: for people.
const char* WhyEquivalent(MutationKind kind, v1::Target target);

// The code of one fusion that can be changed in every respect.
struct MutableCode {
  FusionCode code;
  std::string routines;  // sources of its elementary functions
  std::string runtime;   // changed copies of functions of the device runtime
  // Changes the printed text of the kernels, if set.
  std::function<std::string(std::string)> change_text;
};

// A place in the code, and what is done there.
struct Mutation {
  MutationKind kind = MutationKind::kBound;
  std::string what;  // for people: before and after
  std::function<void(MutableCode*)> apply;
};

// All mutations of the launches from `first_launch` up to `last_launch`, without the last, in a fixed order.
// Barriers of the host: kernels have none there, since the lanes of a group are a loop and the end of a
// parallel loop is what blocks wait at. What corresponds to a barrier that is lost is that what stands behind
// it runs before what stands in front of it is done: the loops over lanes on both sides are joined, a loop or
// a reduction runs before the loop that it has to wait for, and the loops over the blocks are joined.
std::vector<Mutation> MutationsOf(const FusionCode& code, v1::Target target, size_t first_launch,
                                  size_t last_launch);

// The code without a change.
MutableCode Unchanged(const FusionCode& code);

// Kernels and routines, to be compiled behind the device runtime. `name` begins the names of kernels in
// *code, which is changed to have them. `sizes`: kernels that launches at these choose.
std::string PrintKernels(MutableCode* code, v1::Target target, const std::string& name,
                         const SizeValues& sizes);

}  // namespace fusion::testing
