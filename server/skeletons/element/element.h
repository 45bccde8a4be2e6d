// Kernels over mapped lists: tiles of elements, with one thread or several for each.
#pragma once

#include <string>
#include <vector>

#include "server/skeletons/element/parameters.h"
#include "server/skeletons/skeleton.h"

namespace fusion {

const Skeleton& ElementSkeleton();
absl::StatusOr<FusionCode> LowerElement(LoweringContext& context);

// Appends every kernel that the device can run, of at most so many combinations of ways to compute the nodes.
void ConfigureElement(const FusionShape& shape, int max_combinations, std::vector<FusionImplementation>* out,
                      NearestMiss* miss);

// Places the values of a kernel whose order, choices and load path are set. Returns the registers that a
// thread needs for values, in 32-bit words. `stores_in_place`: results of several threads may be written by
// these, not through shared memory.
int PlaceElementValues(const FusionShape& shape, FusionImplementation* kernel, bool stores_in_place = true);

// Returns the entries from one element to the next in shared memory. Elements of a multiple of 16
// bytes are an odd multiple apart, so that neighbouring lanes which read 16 bytes of different elements meet
// in no bank.
int64_t SharedElementStride(int entries, int entry_bytes);
// Returns the units of 16 bytes of an element if neighbouring lanes of a warp can exchange them
// (LoadPath::kExchanged): 2, 4 or 8. 1: they cannot.
int ExchangeableUnits(const Value& value);
// A kernel that reads and writes by exchange does so in these units: the largest ExchangeableUnits of its
// loads and stores. Those with as many are exchanged, others accessed directly.
int ExchangedUnits(const Graph& graph, const FusionImplementation& kernel);
// Several threads of an element read some input where it is, in device memory.
bool ReadsInPlace(const FusionImplementation& kernel);

// Returns into how many items a function of sub-warp granularity divides each element. `choice`: position in
// Overload::implementations, which means nothing where the function goes entry by entry.
int ItemsPerElement(const Graph& graph, const Node& node, int choice);
// One thread does all that the node does for an element.
bool ByOneThread(const Node& node, int choice);
// The granularity of a node's choice.
v1::Granularity GranularityOf(const Node& node, int choice);

}  // namespace fusion
