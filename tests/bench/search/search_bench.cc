// Google Benchmark of the search: whole searches of examples with their 50 best covers, and covers of random graphs. One thread.
//
//   build/release/tests/search_bench --benchmark_out=search.json --benchmark_out_format=json
//
// Counters: gap_percent of the best cover found over the bound proved; proved: 1 when the best cover of all was found; covers.
#include <benchmark/benchmark.h>

#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/service/job_stages.h"
#include "tests/example_source.h"
#include "tests/random_dags.h"

namespace fusion {
namespace {

void Report(benchmark::State& state, const CoverResult& result) {
  state.counters["gap_percent"] = 100 * (1 - result.bound_seconds / result.covers[0].seconds);
  state.counters["proved"] = result.proved_optimal;
  state.counters["covers"] = static_cast<double>(result.covers.size());
}

// Parsing is not counted.
void Example(benchmark::State& state, const std::string& name) {
  auto graph = ParseSource(testing::ExampleSource(name), *Catalog::BuiltIn());
  if (!graph.ok()) return state.SkipWithError(std::string(graph.status().message()).c_str());
  SizeValues sizes;
  for (const Size& size : (*graph)->sizes()) sizes[size.name] = size.default_value.value_or(1000);
  const CostModel model(DescribedDevice(v1::CUDA));
  for (auto _ : state) {
    auto space = SearchFusions(**graph, sizes, model, {});
    auto covers = SolveCoversOf(**graph, *space, [](const NodeSet&) { return true; }, {.count = 50});
    if (!covers.ok()) return state.SkipWithError(std::string(covers.status().message()).c_str());
    Report(state, *covers);
  }
}

// Sets of up to six nodes; `state`: nodes, covers, seconds, seed.
void RandomGraph(benchmark::State& state) {
  const FusibleSetProblem dag = testing::RandomDag(static_cast<int>(state.range(0)), static_cast<unsigned>(state.range(3)));
  for (auto _ : state) {
    const auto sets = EnumerateFusibleSets(dag, {.max_nodes = 6, .max_sets = 1'000'000, .max_candidates = 100'000'000});
    state.counters["sets"] = static_cast<double>(sets.sets.size());
    const CoverProblem problem = testing::TrafficProblem(dag, sets.sets);
    const auto covers = SolveCovers(problem, {.count = static_cast<int>(state.range(1)),
                                              .time_limit = std::chrono::seconds(state.range(2))});
    if (!covers.ok()) return state.SkipWithError(std::string(covers.status().message()).c_str());
    Report(state, *covers);
  }
}

BENCHMARK_CAPTURE(Example, function1, "function1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Example, gemver, "gemver")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Example, layer_norm, "layer_norm")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Example, st_venant_kirchhoff, "st_venant_kirchhoff")->Unit(benchmark::kMillisecond);
BENCHMARK(RandomGraph)
    ->ArgNames({"nodes", "covers", "limit_s", "seed"})
    ->Args({100, 1, 10, 1})
    ->Args({200, 1, 10, 1})
    ->ArgsProduct({{300}, {1}, {10}, {1, 2, 3, 4}})
    ->Args({1000, 1, 10, 1})
    ->Args({1000, 50, 30, 1})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace fusion

BENCHMARK_MAIN();
