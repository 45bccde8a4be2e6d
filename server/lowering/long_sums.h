// Sums in f32 of many terms. A chain of k additions in f32 is off by up to 3e-8 k, so accumulators take a few
// terms and give their sum to a long one (fu_long in library/device/fusion_monoids.h), which costs two
// registers but next to no time. Other reductions, and sums in f64, have no long ones. Internal to
// server/lowering.
#pragma once

#include <string>
#include <vector>

#include "server/lowering/lowering_context.h"

namespace fusion {

// Terms that an accumulator takes until its sum goes to the long one: it is off by at most 8 roundings then.
inline constexpr int kPartTerms = 16;

// sizeof(fu_long<fu_sum<float>>), on hosts and GPUs.
inline constexpr int kLongSumBytes = 8;

// Returns whether the reduction is a sum in f32.
bool IsLongSum(const LoweringContext& context, const Node& node);
// Returns "fu_long<fu_sum<float>>".
std::string LongSumType(const LoweringContext& context, const Node& node);
// Returns how many steps of a loop fill an accumulator to which each step adds so many terms.
int StepsOfPart(int terms_per_step);
// Gives the sum of the accumulator to the long sum, and begins the accumulator again.
std::vector<std::string> AddPart(const LoweringContext& context, const Node& node,
                                 const std::string& long_sum, const std::string& accumulator);
// Puts the whole sum into the accumulator; the long sum is worth nothing afterwards.
std::vector<std::string> EndLongSum(const std::string& long_sum, const std::string& accumulator);

}  // namespace fusion
