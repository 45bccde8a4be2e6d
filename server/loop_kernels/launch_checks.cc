#include "server/loop_kernels/launch_checks.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/loop_kernels/device_text.h"
#include "server/loops/build_c.h"

namespace fusion {
namespace {

// With 64 bits.
std::string Wide(const CExpression& expression) {
  std::set<std::string> names;
  AddNames(expression, &names);
  CExpressionPtr wide = std::make_shared<CExpression>(expression);
  for (const std::string& name : names)
    wide = Replaced(wide, name, CName(absl::StrCat("(int64_t)", DeviceName(name))));
  return CText(*wide);
}

// The address behind an array.
std::string EndOf(const CVariable& array) {
  std::string end = absl::StrCat("(const char*)(", DeviceName(array.name), " + 1");
  for (const CExpressionPtr& extent : array.extents) absl::StrAppend(&end, " * (", Wide(*extent), ")");
  return end + ")";
}

}  // namespace

std::vector<LaunchCheck> LaunchChecks(const LoopInterface& interface) {
  std::vector<LaunchCheck> checks;
  const auto add = [&](std::string condition, const char* code) {
    if (std::none_of(checks.begin(), checks.end(),
                     [&](const LaunchCheck& known) { return known.condition == condition; }))
      checks.push_back({std::move(condition), code});
  };
  for (const LoopArray& array : interface.arrays) {
    add(absl::StrCat(DeviceName(array.variable.name), " == nullptr"), "FUSED_INVALID_ARGUMENT");
    std::vector<std::string> factors;
    for (const CExpressionPtr& extent : array.variable.extents) {
      add(absl::StrCat(Wide(*extent), " < 1"), "FUSED_INVALID_ARGUMENT");
      factors.push_back(absl::StrCat("(double)(", Wide(*extent), ")"));
    }
    add(absl::StrCat(absl::StrJoin(factors, " * "), " >= 2147483648.0"), "FUSED_SIZE_TOO_LARGE");
  }
  for (size_t i = 0; i < interface.arrays.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      const LoopArray &one = interface.arrays[i], &other = interface.arrays[k];
      if (one.writes || other.writes)
        add(absl::StrCat("(const char*)", DeviceName(one.variable.name), " < ", EndOf(other.variable),
                         " && (const char*)", DeviceName(other.variable.name), " < ", EndOf(one.variable)),
            "FUSED_INVALID_ARGUMENT");
    }
  return checks;
}

}  // namespace fusion
