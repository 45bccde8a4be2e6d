// What building the candidates of the farm's jobs costs (the examples of farm_bench.py at their own sizes, 16
// candidates each, built for the described H100): without a GPU or a server, by the processes that workers
// use, one for each thread.
//
//   build/release/tests/build_bench
//
// An iteration builds everything; the compilers have started before.
#include <benchmark/benchmark.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "server/model/cost_model.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"
#include "tests/example_source.h"
#include "worker/measure/processors.h"
#include "worker/measure/runner_process.h"

namespace fusion {
namespace {

constexpr int kCandidates = 16;

absl::StatusOr<std::vector<v1::BuildTask>> BuildsOfExamples() {
  std::vector<v1::BuildTask> builds;
  for (const char* name : {"vadd", "axpydot", "waxpby", "sscal", "bicgk", "atax", "gesummv", "sgemv"}) {
    absl::StatusOr<Submission> submission = CheckSource(testing::ExampleSource(name), *Catalog::BuiltIn());
    if (!submission.ok()) return submission.status();
    const CostModel model(DescribedDevice(v1::CUDA));
    absl::StatusOr<Plans> plans = PlanCovers(*submission, model, kCandidates, false);
    if (!plans.ok()) return plans.status();
    absl::StatusOr<GeneratedCode> code = GenerateCode(*submission, model, *plans);
    if (!code.ok()) return code.status();
    for (const auto& [key, build] : code->set.builds()) builds.push_back(build);
  }
  return builds;
}

void BuildCandidatesOfExamples(benchmark::State& state) {
  const absl::StatusOr<std::vector<v1::BuildTask>> builds = BuildsOfExamples();
  if (!builds.ok()) return state.SkipWithError(std::string(builds.status().message()).c_str());
  absl::StatusOr<std::unique_ptr<Builder>> builder = IsolatedBuilder::Create(v1::CUDA);
  if (!builder.ok()) return state.SkipWithError(std::string(builder.status().message()).c_str());
  // On as many threads as the benchmark has.
  const auto build = [&](size_t count) {
    std::atomic<size_t> next = 0;
    std::atomic<bool> failed = false;
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < state.range(0); ++i)
      threads.emplace_back([&] {
        for (size_t at = next++; at < count && !failed; at = next++)
          if ((*builder)->Build((*builds)[at], {}).result.outcome() != v1::OK) failed = true;
      });
    threads.clear();
    if (failed) state.SkipWithError("a build failed");
  };
  build(4 * state.range(0));
  for (auto _ : state) build(builds->size());
  state.counters["builds_per_s"] =
      benchmark::Counter(static_cast<double>(builds->size()), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BuildCandidatesOfExamples)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(AvailableProcessors())
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace fusion

BENCHMARK_MAIN();
