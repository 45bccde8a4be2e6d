// Google Benchmark of the search: whole searches of examples with their 50 best covers, and covers of random
// graphs. One thread.
//
//   build/release/tests/search_bench --benchmark_out=search.json --benchmark_out_format=json
//
// Counters: best_us of the best cover found, predicted; gap_percent of it over the bound proved; proved: 1
// when the best cover of all was found; listed_gap_percent: the gap among covers of the sets that were looked
// at; covers; most_megabytes of memory that the process had by then.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/service/job_stages.h"
#include "server/service/submission.h"
#include "tests/example_source.h"
#include "tests/random_dags.h"

namespace fusion {
namespace {

void Report(benchmark::State& state, const CoverResult& result) {
  state.counters["gap_percent"] = 100 * (1 - result.bound_seconds / result.covers[0].seconds);
  state.counters["best_us"] = result.covers[0].seconds * 1e6;
  state.counters["proved"] = result.proved_optimal;
  state.counters["covers"] = static_cast<double>(result.covers.size());
  // Of the process, all benchmarks before included: what this one took is no more.
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["most_megabytes"] = double(usage.ru_maxrss) / 1024;
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
    auto covers =
        SolveCoversOf(**graph, *space, [](const FusionImplementation&) { return true; }, {.count = 50});
    if (!covers.ok()) return state.SkipWithError(std::string(covers.status().message()).c_str());
    Report(state, *covers);
  }
}

// Sets of up to six nodes; `state`: nodes, covers, seconds, seed.
void RandomGraph(benchmark::State& state) {
  const FusibleSetProblem dag =
      testing::RandomDag(static_cast<int>(state.range(0)), static_cast<unsigned>(state.range(3)));
  for (auto _ : state) {
    const auto sets =
        EnumerateFusibleSets(dag, {.max_nodes = 6, .max_sets = 1'000'000, .max_candidates = 100'000'000});
    state.counters["sets"] = static_cast<double>(sets.sets.size());
    const CoverProblem problem = testing::TrafficProblem(dag, sets.sets);
    const auto covers = SolveCovers(problem, {.count = static_cast<int>(state.range(1)),
                                              .time_limit = std::chrono::seconds(state.range(2))});
    if (!covers.ok()) return state.SkipWithError(std::string(covers.status().message()).c_str());
    Report(state, *covers);
  }
}

// A graph of as many operations on vectors, planned as `explain` does it: search by the cost model, 30
// covers, their best.
void VectorGraph(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  const FusibleSetProblem dag = testing::RandomDag(nodes, 1);
  std::vector<std::vector<int>> operands(nodes);
  for (int node = 0; node < nodes; ++node)
    for (int successor : dag.successors[node]) operands[successor].push_back(node);
  std::string text = "size n = 1048576;\nvector[n] x, y";
  for (int node = 0; node < nodes; ++node) absl::StrAppend(&text, ", v", node);
  absl::StrAppend(&text, ";\ninput x, y;\n");
  const auto operand = [&](int node, size_t k) {
    return k < operands[node].size() ? absl::StrCat("v", operands[node][k]) : std::string(k == 0 ? "x" : "y");
  };
  std::vector<std::string> results;
  for (int node = 0; node < nodes; ++node) {
    absl::StrAppend(&text, "v", node, " = vadd(", operand(node, 0), ", ", operand(node, 1), ");\n");
    if (dag.successors[node].empty()) results.push_back(absl::StrCat("v", node));
  }
  v1::GraphSource source;
  source.set_fuse(absl::StrCat(text, "return ", absl::StrJoin(results, ", "), ";\n"));
  auto checked = CheckSource(source, *Catalog::BuiltIn());
  if (!checked.ok()) return state.SkipWithError(std::string(checked.status().message()).c_str());
  const CostModel model(DescribedDevice(v1::CUDA));
  for (auto _ : state) {
    auto plans = PlanCovers(*checked, model, 30, false);
    if (!plans.ok()) return state.SkipWithError(std::string(plans.status().message()).c_str());
    Report(state, plans->covers);
    state.counters["listed_gap_percent"] = 100 * plans->summary.listed_gap();
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
    ->ArgsProduct({{300}, {1}, {10}, benchmark::CreateDenseRange(1, 36, 1)})
    ->ArgsProduct({{1000}, {1}, {9}, {1, 2, 3}})
    ->Args({1000, 50, 30, 1})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

BENCHMARK(VectorGraph)
    ->ArgName("nodes")
    ->Arg(300)
    ->Arg(1000)
    ->Arg(10000)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace fusion

BENCHMARK_MAIN();
