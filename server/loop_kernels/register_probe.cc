#include "server/loop_kernels/register_probe.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/codegen/device_runtime.h"
#include "server/loop_kernels/lowering.h"
#include "server/loops/footprint.h"
#include "server/loops/nest.h"
#include "server/loops/result_scalars.h"
#include "server/target/target.h"

namespace fusion {
namespace {

constexpr int64_t kThreads = 256;

}  // namespace

absl::StatusOr<RegisterProbe> ProbeRegisters(absl::string_view text, const std::string& file_name) {
  FUSION_ASSIGN_OR_RETURN(CheckedProgram checked, CheckLoops(text, file_name));
  checked = WithResultsInArrays(std::move(checked));
  ErrorList errors(file_name);
  const MappedLoops mapped = MapLoops(checked, {}, &errors);
  std::set<std::string> granularities, threads, all;
  for (const CParameter& parameter : mapped.program.parameters) all.insert(parameter.name);
  for (const CRegion& region : mapped.program.regions) {
    const std::unique_ptr<const Nest> nest = BuildNest(mapped.program, region, &errors);
    for (const KernelLoops& kernel : KernelsOf(*nest)) {
      granularities.insert(kernel.granularity);
      for (size_t i = kernel.metas.size() / 2; i < kernel.metas.size(); ++i)
        for (const Polynomial& high : nest->loops[kernel.metas[i]].highs)
          for (const std::string& symbol : high.Symbols()) threads.insert(symbol);
    }
  }
  all.insert(threads.begin(), threads.end());
  RegisterProbe probe{.source = DeviceRuntime()};
  for (const bool granular : {true, false}) {
    LoopLoweringOptions options{.prefix = granular ? "granular" : "single"};
    for (const std::string& name : all) {
      const bool one_of_two = threads.size() > 1;
      int64_t value = threads.count(name) > 0         ? (one_of_two ? 16 : kThreads)
                      : granularities.count(name) > 0 ? (granular ? kProbedGranularity : 1)
                      : name[0] == 's'                ? 1
                                                      : 16;
      for (const CParameter& parameter : mapped.program.parameters)
        if (parameter.name == name) value = std::clamp(value, parameter.low, parameter.high.value_or(value));
      options.constants[name] = value;
    }
    const LoopCode code = LowerLoops(mapped, options, &errors);
    probe.kernels = static_cast<int>(code.kernels.size());
    for (const LoopKernel& kernel : code.kernels)
      absl::StrAppend(&probe.source, "\n", TargetOf(v1::CUDA).Print(kernel.kernel));
  }
  if (!errors.empty()) return errors.ToStatus();
  return probe;
}

}  // namespace fusion
