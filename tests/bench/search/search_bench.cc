// Google Benchmark of the search: whole searches of examples with their 50 best covers, and covers of random
// graphs. One thread.
//
//   build/release/tests/search_bench --benchmark_out=search.json --benchmark_out_format=json
//
// Counters: best_us of the best cover found, predicted; gap_percent of it over the bound proved; proved: 1
// when the best cover of all was found; listed_gap_percent: the gap among covers of the sets that were looked
// at; covers; sets that were looked at; most_megabytes of memory that the process had by then.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/model/cost_model.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
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

// A random graph of as many operations on vectors. `own_inputs`: nodes read nothing in common but results of
// others, so that fusible sets are few; else two inputs are read by half of all nodes.
absl::StatusOr<Submission> VectorSubmission(int nodes, unsigned seed, bool own_inputs) {
  const FusibleSetProblem dag = testing::RandomDag(nodes, seed);
  std::vector<std::vector<int>> operands(nodes);
  for (int node = 0; node < nodes; ++node)
    for (int successor : dag.successors[node]) operands[successor].push_back(node);
  std::vector<std::string> inputs, results, names;
  if (!own_inputs) inputs = {"x", "y"};
  std::string text;
  for (int node = 0; node < nodes; ++node) {
    std::vector<std::string> read;
    for (int operand : operands[node]) read.push_back(absl::StrCat("v", operand));
    if (read.empty()) read.push_back(own_inputs ? inputs.emplace_back(absl::StrCat("x", node)) : "x");
    if (read.size() == 1 && !own_inputs) read.push_back("y");
    names.push_back(absl::StrCat("v", node));
    absl::StrAppend(&text, names.back(), read.size() == 1 ? " = square(" : " = vadd(",
                    absl::StrJoin(read, ", "), ");\n");
    if (dag.successors[node].empty()) results.push_back(names.back());
  }
  v1::GraphSource source;
  source.set_fuse(absl::StrCat("size n = 1048576;\nvector[n] ", absl::StrJoin(inputs, ", "), ", ",
                               absl::StrJoin(names, ", "), ";\ninput ", absl::StrJoin(inputs, ", "), ";\n",
                               text, "return ", absl::StrJoin(results, ", "), ";\n"));
  return CheckSource(source, *Catalog::BuiltIn());
}

// Planned as `explain` does it: search by the cost model, 30 covers, their best.
void Plan(benchmark::State& state, bool own_inputs) {
  auto checked = VectorSubmission(static_cast<int>(state.range(0)), 1, own_inputs);
  if (!checked.ok()) return state.SkipWithError(std::string(checked.status().message()).c_str());
  const CostModel model(DescribedDevice(v1::CUDA));
  for (auto _ : state) {
    auto plans = PlanCovers(*checked, model, 30, false);
    if (!plans.ok()) return state.SkipWithError(std::string(plans.status().message()).c_str());
    Report(state, plans->covers);
    state.counters["listed_gap_percent"] = 100 * plans->summary.listed_gap();
    state.counters["sets"] = static_cast<double>(plans->space.fusible_sets);
  }
}
void VectorGraph(benchmark::State& state) { Plan(state, false); }
void OwnInputs(benchmark::State& state) { Plan(state, true); }

// All sets of up to six nodes of such a graph, each with its predicted time, and their best cover.
void SetsUpToSix(benchmark::State& state) {
  auto checked = VectorSubmission(static_cast<int>(state.range(0)), 1, true);
  if (!checked.ok()) return state.SkipWithError(std::string(checked.status().message()).c_str());
  const CostModel model(DescribedDevice(v1::CUDA));
  SearchOptions options{.max_fusion_nodes = 6, .max_fusions = 1'000'000, .max_grown_nodes = 0};
  options.implementation.keep = 1;
  for (auto _ : state) {
    auto space = SearchFusions(*checked->graph, checked->sizes, model, options);
    if (!space.ok()) return state.SkipWithError(std::string(space.status().message()).c_str());
    auto covers =
        SolveCoversOf(*checked->graph, *space, [](const FusionImplementation&) { return true; }, {});
    if (!covers.ok()) return state.SkipWithError(std::string(covers.status().message()).c_str());
    Report(state, *covers);
    state.counters["sets"] = static_cast<double>(space->fusible_sets);
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
BENCHMARK(OwnInputs)->ArgName("nodes")->Arg(300)->Arg(1000)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(SetsUpToSix)->ArgName("nodes")->Arg(300)->Arg(1000)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace fusion

BENCHMARK_MAIN();
