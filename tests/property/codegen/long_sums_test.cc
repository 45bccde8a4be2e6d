// Sums of many positive entries in f32 keep f32's digits in every skeleton with each of its options: where
// all entries are equal too, so that all roundings of a chain of additions go one way. By one multiprocessor,
// so that chains are long; on hosts with their long sums in f64, and those for GPUs as pairs of floats.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"
#include "tests/property/codegen/kernel_options.h"

namespace fusion::testing {
namespace {

constexpr double kBound = 2e-6;

using Sums = std::map<std::string, std::vector<double>>;

struct SumCase {
  std::string name, text;
  std::vector<SizeValues> planned, sizes;
  // What a run computes from the entries of the only input but "one", a vector of ones.
  Sums (*expected)(const SizeValues& sizes, const std::vector<double>& entries);
  v1::Target target = v1::CUDA;
};

constexpr char kVector[] = R"(
size n;
vector[n] x, one;  scalar s, a, d, r;
input x, one;
s = sum(x);
a = asum(x);
d = dot(x, one);
r = nrm2(x);
return s, a, d, r;
)";

Sums OfVector(const SizeValues&, const std::vector<double>& entries) {
  long double sum = 0, squares = 0;
  for (double x : entries) sum += x, squares += (long double)x * x;
  const std::vector<double> s = {static_cast<double>(sum)};
  return {{"s", s}, {"a", s}, {"d", s}, {"r", {static_cast<double>(std::sqrt(squares))}}};
}

// Sums of columns, of rows, and of what those give. (Means and norms differ from sums by what is done once at
// the end; those of vectors are above.)
constexpr char kSumsOfMatrix[] = R"(
size m, n;
matrix[m,n] A;  vector[m] one, r;  vector[n] c, t;  scalar d;
input A, one;
c = colsum(A);
t = gemtv(1.0, A, one);
r = rowsum(A);
d = dot(r, one);
return c, t, r, d;
)";

Sums OfMatrix(const SizeValues& sizes, const std::vector<double>& entries) {
  const int64_t m = sizes.at("m"), n = sizes.at("n");
  std::vector<long double> rows(m, 0), columns(n, 0);
  long double all = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const long double x = entries[i * n + j];
      rows[i] += x, columns[j] += x, all += x;
    }
  const std::vector<double> of_columns(columns.begin(), columns.end());
  return {{"c", of_columns},
          {"t", of_columns},
          {"r", {rows.begin(), rows.end()}},
          {"d", {static_cast<double>(all)}}};
}

void PrintTo(const SumCase& test, std::ostream* out) { *out << test.name; }

class LongSums : public ::testing::TestWithParam<SumCase> {};

TEST_P(LongSums, KeepTheDigitsOfF32) {
  const SumCase& test = GetParam();
  auto parsed = ParseSource(TextSource(test.text), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  const bool cuda = test.target == v1::CUDA;
  std::set<std::string> seen;
  std::vector<FusionImplementation> implementations;
  std::vector<FusionCode> codes;
  for (const SizeValues& planned : test.planned) {
    SearchOptions options;
    options.implementation.keep = 1000;
    auto space =
        SearchFusions(graph, planned, CostModel(DescribedDevice(test.target), cuda ? 1e12 : 0), options);
    ASSERT_TRUE(space.ok()) << space.status();
    for (FusionImplementation& chosen : WithAllOptions(graph, space->implementations, &seen)) {
      auto code = LowerFusion(graph, chosen, {.simt = cuda});
      ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, chosen);
      codes.push_back(*std::move(code));
      implementations.push_back(std::move(chosen));
    }
  }
  std::vector<const FusionCode*> all;
  for (const FusionCode& code : codes) all.push_back(&code);
  auto module =
      HostModule::Compile(all, {.before = absl::StrCat("#define FUSION_WIDE ", cuda ? 0 : 1, "\n")});
  ASSERT_TRUE(module.ok()) << module.status();

  int runs = 0;
  for (const SizeValues& sizes : test.sizes)
    for (const bool equal : {true, false}) {
      std::mt19937 generator(3);
      std::uniform_real_distribution<float> positive(0.5f, 2.0f);
      Values inputs;
      std::vector<double>* entries = nullptr;
      for (ValueId id : graph.inputs()) {
        const Value& value = graph.value(id);
        std::vector<double>& of_input = inputs[id.value];
        of_input.assign(StorageEntries(value, sizes), value.name == "one" ? 1.0 : 450123.4f);
        if (value.name == "one") continue;
        entries = &of_input;
        if (!equal)
          for (double& entry : of_input) entry = positive(generator);
      }
      Sums expected = test.expected(sizes, *entries);
      for (size_t c = 0; c < codes.size(); ++c) {
        if (std::any_of(codes[c].limits.begin(), codes[c].limits.end(),
                        [&](const FusionCode::ExtentLimit& limit) {
                          return ExtentValue(limit.extent, sizes) > limit.limit;
                        }))
          continue;
        ++runs;
        const FusionImplementation& implementation = implementations[c];
        Values values = inputs;
        // A kernel that takes results of others gets them as they should be.
        for (ValueId id : implementation.loads)
          if (const auto found = expected.find(graph.value(id).name); found != expected.end())
            values[id.value] = found->second;
        const auto run = RunOnHost(graph, sizes, **module, {&codes[c]}, 1, false, implementation.loads,
                                   implementation.stores, &values);
        ASSERT_TRUE(run.ok()) << run;
        for (ValueId id : implementation.stores)
          EXPECT_LE(RelativeError(values[id.value], expected.at(graph.value(id).name)), kBound)
              << graph.value(id).name << (equal ? " of equal entries by " : " of random entries by ")
              << Describe(graph, implementation) << " at "
              << absl::StrJoin(sizes, ",", absl::PairFormatter("="));
      }
    }
  EXPECT_GE(runs, static_cast<int>(2 * codes.size()));
}

std::vector<SumCase> SumCases() {
  const std::vector<SizeValues> lengths = {{{"n", 6000}}, {{"n", 3000017}}};
  const std::vector<SizeValues> shapes = {{{"m", 1000003}, {"n", 3}},
                                          {{"m", 3001}, {"n", 501}},
                                          {{"m", 3}, {"n", 1000003}},
                                          {{"m", 701}, {"n", 4096}}};
  std::vector<SumCase> cases = {
      {.name = "vector",
       .text = kVector,
       .planned = {{{"n", 1 << 24}}, {{"n", 1000003}}, {{"n", 6000}}},
       .sizes = lengths,
       .expected = OfVector},
      {.name = "vector_host",
       .text = kVector,
       .planned = {{{"n", 1000003}}},
       .sizes = lengths,
       .expected = OfVector,
       .target = v1::HOST},
      {.name = "matrix_host",
       .text = kSumsOfMatrix,
       .planned = {{{"m", 4093}, {"n", 5001}}},
       .sizes = shapes,
       .expected = OfMatrix,
       .target = v1::HOST},
  };
  // A case for each shape: compiling its kernels takes most of the time.
  const struct {
    std::string name;
    SizeValues planned, size;
  } of_shapes[] = {{"ragged", {{"m", 4093}, {"n", 5001}}, {{"m", 3001}, {"n", 501}}},
                   {"wide", {{"m", 4096}, {"n", 16384}}, {{"m", 701}, {"n", 4096}}},
                   {"tall", {{"m", 1000003}, {"n", 3}}, {{"m", 1000003}, {"n", 3}}},
                   {"long", {{"m", 3}, {"n", 1000003}}, {{"m", 3}, {"n", 1000003}}}};
  for (const auto& [name, planned, size] : of_shapes)
    cases.push_back({.name = "matrix_" + name,
                     .text = kSumsOfMatrix,
                     .planned = {planned},
                     .sizes = {size},
                     .expected = OfMatrix});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, LongSums, ::testing::ValuesIn(SumCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusion::testing
