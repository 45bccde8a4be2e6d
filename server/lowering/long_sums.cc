#include "server/lowering/long_sums.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fusion {

bool IsLongSum(const LoweringContext& context, const Node& node) {
  return node.is_reduction() && node.overload->monoid == v1::SUM && context.CType(node) == "float";
}

std::string LongSumType(const LoweringContext& context, const Node& node) {
  return absl::StrCat("fu_long<", context.MonoidName(node), ">");
}

int StepsOfPart(int terms_per_step) { return std::max(1, kPartTerms / terms_per_step); }

std::vector<std::string> AddPart(const LoweringContext& context, const Node& node,
                                 const std::string& long_sum, const std::string& accumulator) {
  return {absl::StrCat(long_sum, ".add(", accumulator, ");"),
          absl::StrCat(accumulator, " = ", context.MonoidName(node), "::identity();")};
}

std::vector<std::string> EndLongSum(const std::string& long_sum, const std::string& accumulator) {
  return {absl::StrCat(long_sum, ".add(", accumulator, ");"),
          absl::StrCat(accumulator, " = ", long_sum, ".value();")};
}

}  // namespace fusion
