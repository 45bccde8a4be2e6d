#include "server/loop_kernels/launches.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/loops/build_c.h"

namespace fusion {
namespace {

constexpr int64_t kMostBlocks = 2147483647;  // CUDA's limit of gridDim.x

class Host {
 public:
  Host(const LoopCode& code, const OnLaunch& on_launch) : code_(code), on_launch_(on_launch) {}

  absl::Status Run(const std::vector<HostStep>& steps, IntegerValues values) {
    for (const HostStep& step : steps) {
      if (++steps_ > kMostHostSteps)
        return absl::InvalidArgumentError(
            absl::StrCat("the host does more than ", kMostHostSteps, " steps between kernels"));
      FUSION_RETURN_IF_ERROR(Do(step, &values));
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<int64_t> Value(const CExpression& expression, const IntegerValues& values) const {
    if (const std::optional<int64_t> value = EvaluateC(expression, values)) return *value;
    return absl::InvalidArgumentError(absl::StrCat(CText(expression), " has no value on the host"));
  }

  absl::Status Do(const HostStep& step, IntegerValues* values) {
    switch (step.kind) {
      case HostStep::Kind::kLet: {
        FUSION_ASSIGN_OR_RETURN((*values)[step.statement->variable.name],
                                Value(*step.statement->value, *values));
        return absl::OkStatus();
      }
      case HostStep::Kind::kIf: {
        FUSION_ASSIGN_OR_RETURN(const int64_t holds, Value(*step.statement->value, *values));
        return Run(holds != 0 ? step.body : step.otherwise, *values);
      }
      case HostStep::Kind::kLoop: {
        FUSION_ASSIGN_OR_RETURN(const int64_t trips, Value(*TripCount(*step.statement), *values));
        const CExpressionPtr number = CName("");
        IntegerValues inner = *values;
        for (int64_t i = 0; i < trips; ++i) {
          inner[""] = i;
          FUSION_ASSIGN_OR_RETURN(const int64_t counter,
                                  Value(*CounterValue(*step.statement, number), inner));
          IntegerValues with = *values;
          with[step.statement->variable.name] = counter;
          FUSION_RETURN_IF_ERROR(Run(step.body, std::move(with)));
        }
        return absl::OkStatus();
      }
      case HostStep::Kind::kLaunch: {
        int64_t blocks = 1;
        for (const CExpressionPtr& extent : code_.kernels[step.kernel].blocks) {
          FUSION_ASSIGN_OR_RETURN(const int64_t size, Value(*extent, *values));
          if (size <= 0) return absl::OkStatus();
          if (__builtin_mul_overflow(blocks, size, &blocks) || blocks > kMostBlocks)
            return absl::InvalidArgumentError(
                absl::StrCat("a grid would have more than ", kMostBlocks, " blocks"));
        }
        if (++launches_ > kMostLaunches)
          return absl::InvalidArgumentError(
              absl::StrCat("the program has more than ", kMostLaunches, " launches"));
        return on_launch_(step.kernel, blocks, *values);
      }
    }
    return absl::OkStatus();
  }

  const LoopCode& code_;
  const OnLaunch& on_launch_;
  int64_t steps_ = 0, launches_ = 0;
};

}  // namespace

absl::Status ForEachLaunch(const LoopCode& code, const IntegerValues& given, const OnLaunch& on_launch) {
  Host host(code, on_launch);
  for (const RegionSteps& region : code.regions)
    FUSION_RETURN_IF_ERROR(host.Run(region.steps, ScopeValues(region.scope, given)));
  return absl::OkStatus();
}

}  // namespace fusion
