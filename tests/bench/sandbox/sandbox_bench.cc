// What confining costs: from nothing to a runner that has computed something, and a build of an empty source.
//   build/release/tests/sandbox_bench
#include <benchmark/benchmark.h>

#include "worker/build/host_builder.h"
#include "worker/measure/host_backend.h"
#include "worker/measure/runner_process.h"

namespace fusion {
namespace {

void StartRunner(benchmark::State& state) {
  SandboxPolicy policy;
  policy.kind = SandboxKind::kHostCode;
  policy.use_bubblewrap = state.range(0) != 0;
  policy.use_landlock = state.range(1) != 0;
  for (auto _ : state) {
    RunnerProcess runner("", policy);
    if (absl::Status probed = runner.Probe(HostUuid()); !probed.ok())
      state.SkipWithError(std::string(probed.message()).c_str());
  }
}
BENCHMARK(StartRunner)
    ->ArgNames({"bubblewrap", "landlock"})
    ->Args({0, 0})
    ->Args({0, 1})
    ->Args({1, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// In the strongest confinement that this machine offers; FUSION_BWRAP=none takes bubblewrap away.
void CompileNothing(benchmark::State& state) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = HostBuilder::Create();
  if (!builder.ok()) return state.SkipWithError("no compiler");
  v1::BuildTask task;
  task.set_target(v1::HOST);
  task.set_arch(HostArch());
  task.set_source("int f() { return 1; }");
  for (auto _ : state)
    if ((*builder)->Build(task, {}).result.outcome() != v1::OK) state.SkipWithError("the build failed");
  state.SetLabel((*builder)->Confinement());
}
BENCHMARK(CompileNothing)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace fusion

BENCHMARK_MAIN();
