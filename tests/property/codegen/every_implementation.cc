#include "tests/property/codegen/every_implementation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/codegen/program.h"
#include "server/model/cost_model.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {

void ExpectEveryImplementationIsRight(const Graph& graph, const std::string& name, v1::Target target) {
  const bool cuda = target == v1::CUDA;
  // Runs back to back over more than any cache holds: what there is for others is there for them too.
  const CostModel model(DescribedDevice(target), cuda ? 1e12 : 0);

  // Generated at ragged sizes, so that vector, chunked and run-time loops all occur; run at these and at tiny
  // ones.
  SizeValues generated;
  int next = 0;
  const int64_t ragged[] = {131, 517, 260};
  for (const Size& size : graph.sizes())
    generated[size.name] = size.name == kElementsSize ? 301 : ragged[next++ % 3];
  if (graph.sizes().size() == 1 && graph.sizes()[0].name != kElementsSize) generated.begin()->second = 516;

  SearchOptions options;
  options.implementation.keep = 12;
  auto space = SearchFusions(graph, generated, model, options);
  ASSERT_TRUE(space.ok()) << space.status();

  // Implementations of each fusion that differ in structure are chosen; all would take minutes to compile.
  std::vector<const FusionImplementation*> chosen;
  std::map<std::string, int> seen;
  for (const FusionImplementation& implementation : space->implementations) {
    const AnyParameters p = ParametersOf(implementation);
    bool keeps = false;
    for (const FusionImplementation& sweep : SweepsOf(implementation))
      keeps |= ParametersOf(sweep).kept.any();
    const std::string structure = absl::StrCat(
        absl::StrJoin(implementation.fusion.nodes.Members(), ","), "/", implementation.skeleton->name(),
        p.vector_width > 1, p.chunks > 0, p.stages > 0, p.threads_per_row == p.threads, p.hold_columns,
        p.unroll > 1, static_cast<int>(p.load_path), p.blocks_per_multiprocessor == 0, p.rows_per_step > 1,
        keeps, p.atomic, p.l2_percent > 0, absl::StrJoin(ParametersOf(implementation).choices, ""));
    if (seen[structure]++ == 0) chosen.push_back(&implementation);
  }
  // The largest fusions and an even choice of the others: graphs of many small operations have thousands.
  constexpr size_t kMost = 48;
  if (chosen.size() > kMost) {
    std::vector<const FusionImplementation*> kept;
    for (size_t i = 0; i < kMost / 4; ++i) kept.push_back(chosen[chosen.size() - 1 - i]);
    const size_t rest = chosen.size() - kept.size(), others = kMost - kept.size();
    for (size_t i = 0; i < others; ++i) kept.push_back(chosen[i * rest / others]);
    chosen = std::move(kept);
  }
  std::vector<FusionCode> codes;
  for (const FusionImplementation* implementation : chosen) {
    auto code = LowerFusion(graph, *implementation, {.simt = cuda});
    ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, *implementation);
    codes.push_back(*std::move(code));
  }
  const auto compared = ComparedCodes::Compile(graph, generated, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();

  std::vector<SizeValues> runs = {generated};
  for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{33}}) {
    runs.push_back(generated);
    for (auto& [symbol, value] : runs.back()) value = size;
  }
  if (generated.size() == 2) {
    auto first = generated.begin(), second = std::next(first);
    runs.push_back({{first->first, 1}, {second->first, second->second}});
    runs.push_back({{first->first, first->second}, {second->first, 1}});
    runs.push_back({{first->first, 0}, {second->first, 7}});
    runs.push_back({{first->first, 7}, {second->first, 0}});
  }
  std::vector<ValueId> produced;
  for (const Node& node : graph.nodes()) produced.push_back(node.result);
  int checked = 0;
  for (const SizeValues& sizes : runs) {
    Values inputs;
    RandomInputs(graph, sizes, 7, &inputs);
    Values expected = inputs;
    auto status = (*compared)->RunReference(sizes, produced, &expected);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < codes.size(); ++i) {
      // The fusion under test reads what the reference computed: only its own errors show.
      const FusionImplementation& implementation = *chosen[i];
      Values values = expected;
      auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[i]}, 3, false, implementation.loads,
                           implementation.stores, &values);
      ASSERT_TRUE(run.ok()) << run << " " << Describe(graph, implementation);
      for (ValueId id : implementation.stores) {
        const double error = RelativeError(values[id.value], expected[id.value]);
        EXPECT_LE(error, 2e-4) << name << " " << Describe(graph, implementation) << ": "
                               << graph.value(id).name << " at "
                               << absl::StrJoin(sizes, ",", absl::PairFormatter("="));
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, static_cast<int>(codes.size()));
}

}  // namespace fusion::testing
