// Every skeleton with each of its options, at sizes from none to 1,000,003 entries and 4093 x 5001 that no
// vector, warp or block divides; with buffers that begin at multiples of 16 bytes, and all or every second of
// them one entry behind; with rows next to each other and further apart; in f32 and f64. Compared with plain
// loops in f64.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/codegen/kernel_versions.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"
#include "tests/property/codegen/kernel_options.h"

namespace fusion::testing {
namespace {

using Vector = std::vector<double>;
using Named = std::map<std::string, Vector>;

// A graph, and plain loops that compute it: what is computed from the inputs, rows next to each other.
struct Computation {
  std::string text;
  std::function<void(const SizeValues&, Named*)> compute;
};

// A map, a reduction, and a map that needs all of that.
const Computation kVectors = {
    R"(
size n;
vector[n] x, z, y, w;  scalar a, s;
input x, z, a;
y = axpy(a, x, z);
s = dot(y, x);
w = scal(s, y);
return y, s, w;
)",
    [](const SizeValues&, Named* v) {
      Vector y = v->at("z"), w;
      double s = 0;
      for (size_t i = 0; i < y.size(); ++i) {
        y[i] += v->at("a")[0] * v->at("x")[i];
        s += y[i] * v->at("x")[i];
      }
      for (double entry : y) w.push_back(s * entry);
      *v = {{"x", v->at("x")}, {"z", v->at("z")}, {"a", v->at("a")}, {"y", y}, {"s", {s}}, {"w", w}};
    }};

// A map, sums of rows and of columns of its result, and rows again that need all of the columns' sums.
const Computation kMatrix = {R"(
size m, n;
matrix[m,n] A, B;  vector[m] u, q, t;  vector[n] v, p, s;
input A, u, v, p;
B = ger(A, u, v);
q = gemv(1.0, B, p);
s = gemtv(1.0, B, q);
t = gemv(1.0, B, s);
return B, q, s, t;
)",
                             [](const SizeValues& sizes, Named* values) {
                               const size_t m = sizes.at("m"), n = sizes.at("n");
                               const Vector &u = values->at("u"), &v = values->at("v"), &p = values->at("p");
                               Vector B = values->at("A"), q(m, 0), s(n, 0), t(m, 0);
                               for (size_t i = 0; i < m; ++i) {
                                 double* const row = B.data() + i * n;
                                 for (size_t j = 0; j < n; ++j) row[j] += u[i] * v[j];
                                 for (size_t j = 0; j < n; ++j) q[i] += row[j] * p[j];
                                 for (size_t j = 0; j < n; ++j) s[j] += row[j] * q[i];
                               }
                               for (size_t i = 0; i < m; ++i)
                                 for (size_t j = 0; j < n; ++j) t[i] += B[i * n + j] * s[j];
                               (*values)["B"] = std::move(B);
                               (*values)["q"] = q, (*values)["s"] = s, (*values)["t"] = t;
                             }};

// A product of elements, r x k by k x c, and a sum with its right operand (r = k).
Computation Elements(int k, int c) {
  return {absl::StrCat("MATRIX", k, "x", k, " A; MATRIX", k, "x", c,
                       " B, C, D;\ninput A, B;\nC = mmul(A, B);\nD = madd(C, B);\nreturn D;\n"),
          [k, c](const SizeValues& sizes, Named* values) {
            const int64_t elements = sizes.at(kElementsSize);
            const Vector &A = values->at("A"), &B = values->at("B");
            Vector C(elements * k * c, 0), D = B;
            for (int64_t e = 0; e < elements; ++e)
              for (int i = 0; i < k; ++i)
                for (int j = 0; j < c; ++j) {
                  double& sum = C[(e * k + i) * c + j];
                  for (int l = 0; l < k; ++l) sum += A[(e * k + i) * k + l] * B[(e * k + l) * c + j];
                  D[(e * k + i) * c + j] += sum;
                }
            (*values)["C"] = std::move(C), (*values)["D"] = std::move(D);
          }};
}

using Options = std::set<std::string>;

struct OptionCase {
  std::string name;
  Computation computation;
  bool f64 = false, padded = false;
  std::vector<SizeValues> planned;  // for each the kernels that have what those before lack
  bool (*wanted)(const FusionImplementation&) = nullptr;  // of these kernels alone
  std::vector<SizeValues> sizes;                          // each kernel, each placement of buffers
  std::vector<SizeValues> large;                          // each kernel, a placement in turn
  Options options;                                        // that must occur
  v1::Target target = v1::CUDA;
  int multiprocessors = 3;
};

void PrintTo(const OptionCase& test, std::ostream* out) { *out << test.name; }

std::string TextOf(const OptionCase& test, bool padded) {
  std::string text = test.computation.text;
  if (padded)
    text = absl::StrReplaceAll(text, {{"size m, n;", "size m, n, lda, ldb;"},
                                      {"matrix[m,n] A, B;", "matrix[m,n,ld=lda] A; matrix[m,n,ld=ldb] B;"}});
  if (!test.f64) return text;
  return absl::StrReplaceAll(text, {{"matrix[", "f64 matrix["},
                                    {"vector[", "f64 vector["},
                                    {"scalar ", "f64 scalar "},
                                    {"MATRIX", "f64 MATRIX"}});
}

// Rows as far apart as the value's leading dimension says, NaN between.
Vector Spaced(const Value& value, const SizeValues& sizes, const Vector& dense) {
  if (!value.leading_dimension) return dense;
  const int64_t m = sizes.at("m"), n = sizes.at("n"), ld = sizes.at(value.leading_dimension->name);
  Vector out(m * ld, NAN);
  for (int64_t i = 0; i < m; ++i) std::copy_n(dense.begin() + i * n, n, out.begin() + i * ld);
  return out;
}

std::string Text(const SizeValues& sizes) { return absl::StrJoin(sizes, ",", absl::PairFormatter("=")); }

class EveryOption : public ::testing::TestWithParam<OptionCase> {
 protected:
  // Memory of large matrices is kept for the next run: the system takes longer to hand it out than kernels
  // run.
  static void SetUpTestSuite() {
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
  }

  // The kernels for all of `planned`.
  void Choose() {
    auto graph = ParseSource(TextSource(TextOf(GetParam(), GetParam().padded)), *Catalog::BuiltIn());
    auto dense = ParseSource(TextSource(TextOf(GetParam(), false)), *Catalog::BuiltIn());
    ASSERT_TRUE(graph.ok()) << graph.status();
    ASSERT_TRUE(dense.ok()) << dense.status();
    graph_ = *graph, dense_ = *dense;
    const bool cuda = GetParam().target == v1::CUDA;
    std::set<std::string> seen;
    for (const SizeValues& planned : GetParam().planned) {
      // Runs back to back over more than any cache holds: what there is for these is there too.
      const CostModel model(DescribedDevice(GetParam().target), cuda ? 1e12 : 0);
      SearchOptions options;
      options.implementation.keep = 1000;
      options.implementation.wanted = GetParam().wanted;
      auto space = SearchFusions(*graph_, WithRows(planned, 0), model, options);
      ASSERT_TRUE(space.ok()) << space.status();
      std::vector<FusionImplementation>& all = space->implementations;
      if (GetParam().wanted)
        all.erase(std::remove_if(all.begin(), all.end(), std::not_fn(GetParam().wanted)), all.end());
      for (FusionImplementation& chosen : WithAllOptions(*graph_, all, &seen)) {
        auto code = LowerFusion(*graph_, chosen, {.simt = cuda});
        ASSERT_TRUE(code.ok()) << code.status() << Describe(*graph_, chosen);
        codes_.push_back(*std::move(code));
        implementations_.push_back(std::move(chosen));
      }
    }
    for (const std::string& option : GetParam().options) EXPECT_TRUE(seen.count(option)) << option;
    std::vector<const FusionCode*> all;
    for (const FusionCode& code : codes_) all.push_back(&code);
    auto module = HostModule::Compile(all);
    ASSERT_TRUE(module.ok()) << module.status();
    module_ = *std::move(module);
  }

  // Rows of A so many entries further apart than they are long, those of B twice as many.
  SizeValues WithRows(SizeValues sizes, int64_t pad) const {
    if (!GetParam().padded) return sizes;
    sizes["lda"] = sizes.at("n") + pad, sizes["ldb"] = sizes.at("n") + 2 * pad;
    return sizes;
  }

  // All kernels that take the sizes, with the buffers of some values `off` their alignment.
  void Run(const SizeValues& sizes, int64_t pad, bool every_placement) {
    const SizeValues spaced = WithRows(sizes, pad);
    Values inputs;
    RandomInputs(*dense_, sizes, 5, &inputs);
    Named named;
    for (ValueId id : dense_->inputs()) named[dense_->value(id).name] = std::move(inputs[id.value]);
    GetParam().computation.compute(sizes, &named);
    Values expected;
    for (const Value& value : graph_->values()) {
      if (value.literal) continue;
      const Vector& dense = named.at(value.name);
      ASSERT_TRUE(std::all_of(dense.begin(), dense.end(), [](double x) { return std::isfinite(x); }));
      expected[value.id.value] = Spaced(value, spaced, dense);
    }
    // Which buffers begin an entry off: none, all, those with an odd or an even number.
    const EntriesOff placements[] = {[](ValueId) { return 0; }, [](ValueId) { return 1; },
                                     [](ValueId id) { return id.value % 2; },
                                     [](ValueId id) { return 1 - id.value % 2; }};
    for (size_t c = 0; c < codes_.size(); ++c) {
      const FusionCode& code = codes_[c];
      if (std::any_of(code.limits.begin(), code.limits.end(), [&](const FusionCode::ExtentLimit& limit) {
            return ExtentValue(limit.extent, sizes) > limit.limit;
          }))
        continue;
      ++runs_[c];
      const FusionImplementation& implementation = implementations_[c];
      for (size_t p = 0; p < std::size(placements); ++p) {
        if (!every_placement && p != (c + large_) % std::size(placements)) continue;
        const std::string where =
            absl::StrCat(Describe(*graph_, implementation), " at ", Text(spaced), ", placement ", p);
        const KernelLaunch& launch = code.launches[0];
        if (NeedsAlignment(launch, spaced) &&
            ChosenKernel(launch, spaced, placements[p]) == LaunchedName(launch, false))
          ++fallbacks_;
        else if (LaunchesWhole(launch, spaced))
          ++whole_;
        Values values;
        for (ValueId id : implementation.loads) values[id.value] = expected[id.value];
        const auto run = RunOnHost(*graph_, spaced, *module_, {&code}, GetParam().multiprocessors, false,
                                   implementation.loads, implementation.stores, &values, placements[p]);
        ASSERT_TRUE(run.ok()) << run << " " << where;
        for (ValueId id : implementation.stores)
          EXPECT_LE(RelativeError(values[id.value], expected[id.value]), GetParam().f64 ? 1e-10 : 2e-4)
              << graph_->value(id).name << " of " << where;
      }
    }
  }

  std::shared_ptr<const Graph> graph_, dense_;
  std::vector<FusionImplementation> implementations_;
  std::vector<FusionCode> codes_;
  std::unique_ptr<HostModule> module_;
  std::map<size_t, int> runs_;
  int whole_ = 0, fallbacks_ = 0, large_ = 0;
};

TEST_P(EveryOption, GivesWhatPlainLoopsGive) {
  Choose();
  if (HasFatalFailure()) return;
  for (const SizeValues& sizes : GetParam().sizes)
    for (const int64_t pad : {0, 3, 4}) {
      if (pad > 0 && !GetParam().padded) continue;
      Run(sizes, pad, true);
      if (HasFatalFailure()) return;
    }
  for (const SizeValues& sizes : GetParam().large) {
    Run(sizes, 3, false);
    if (HasFatalFailure()) return;
    ++large_;
  }
  for (size_t c = 0; c < codes_.size(); ++c)
    EXPECT_GE(runs_[c], static_cast<int>(GetParam().sizes.size())) << Describe(*graph_, implementations_[c]);
  // Kernels for aligned buffers ran with such, and others in their place with all others.
  if (std::any_of(codes_.begin(), codes_.end(),
                  [](const FusionCode& code) { return code.launches[0].whole.has_value(); })) {
    EXPECT_GT(whole_, 0);
    EXPECT_GT(fallbacks_, 0);
  }
}

std::vector<SizeValues> Lengths(const std::string& name, const std::vector<int64_t>& lengths) {
  std::vector<SizeValues> sizes;
  for (const int64_t length : lengths) sizes.push_back({{name, length}});
  return sizes;
}
std::vector<SizeValues> Shapes(const std::vector<std::pair<int64_t, int64_t>>& shapes) {
  std::vector<SizeValues> sizes;
  for (const auto& [m, n] : shapes) sizes.push_back({{"m", m}, {"n", n}});
  return sizes;
}

// Options that must occur (kernel_options.h): a search that no longer offers one shows here.
const Options kVectorOptions = {
    "cooperative atomic",       "cooperative in order",        "cooperative: vector map vectors",
    "cooperative: vector sums", "cooperative: vector mapsums", "vector in one block",
    "vector map entries",       "vector map vectors",          "vector mapsums entries",
    "vector mapsums vectors",   "vector sums entries",         "vector sums vectors",
    "vector one-shot",          "vector persistent",           "vector unrolled"};
const Options kElementOptions = {
    "element direct mmul_thread", "element direct mmul_entry", "element direct mmul_quad",
    "element staged mmul_thread", "element staged mmul_entry", "element staged mmul_quad",
    "element staged mmul_row",    "element staged mmul_tile",  "element staged madd_row",
    "element exchanged",          "element in place",          "element in registers",
    "element in shared memory",   "element one-shot",          "element persistent"};
const Options kLargeElementOptions = {"element direct mmul_quad", "element staged mmul_tile",
                                      "element one element a block"};
const Options kWarpOptions = {"element direct mmul_warp", "element staged mmul_warp",
                              "element one element a block"};
const Options kMatrixOptions = {"cooperative atomic",
                                "cooperative in order",
                                "cooperative: row_panel bulk chunks vectors",
                                "cooperative: row_panel direct chunks vectors",
                                "cooperative: row_panel staged chunks vectors",
                                "cooperative: row_panel keeps in registers",
                                "cooperative: row_panel keeps in shared memory",
                                "cooperative: row_panel in L2",
                                "cooperative: row_panel reversed",
                                "cooperative: row_panel ragged staged",
                                "row_panel bulk block",
                                "row_panel bulk cluster",
                                "row_panel bulk warp",
                                "row_panel bulk chunks",
                                "row_panel direct block",
                                "row_panel direct cluster",
                                "row_panel direct warp",
                                "row_panel direct chunks",
                                "row_panel direct loop",
                                "row_panel direct loop vectors",
                                "row_panel staged block",
                                "row_panel staged cluster",
                                "row_panel staged warp",
                                "row_panel staged chunks",
                                "row_panel holds",
                                "row_panel in L2",
                                "row_panel map vectors",
                                "row_panel rows vectors",
                                "row_panel sums vectors",
                                "row_panel maprowssums vectors",
                                "row_panel one-shot",
                                "row_panel persistent",
                                "row_panel ragged direct",
                                "row_panel ragged staged",
                                "row_panel steps of rows bulk",
                                "row_panel steps of rows direct",
                                "row_panel steps of rows staged",
                                "row_panel column tiles",
                                "row_panel tiles of rows"};
const Options kTileOptions = {
    "row_panel tiles of rows", "row_panel map vectors",  "row_panel maprows entries",
    "row_panel rows vectors",  "row_panel sums vectors", "row_panel sums entries",
    "row_panel holds"};
const Options kFewLaneOptions = {"row_panel direct few lanes", "row_panel map vectors",
                                 "row_panel rows vectors",     "row_panel maprows entries",
                                 "row_panel one-shot",         "row_panel persistent"};
const Options kHostMatrixOptions = {"row_panel map", "row_panel rows", "row_panel sums",
                                    "row_panel maprowssums"};

bool HasTilesOfRows(const FusionImplementation& implementation) {
  return ParametersOf(implementation).tile_rows > 0;
}
bool HasFewLanes(const FusionImplementation& implementation) {
  const AnyParameters p = ParametersOf(implementation);
  return p.threads_per_row > 0 && p.threads_per_row < 32;
}

std::vector<OptionCase> OptionCases() {
  std::vector<OptionCase> cases;
  for (const bool f64 : {false, true}) {
    const std::string type = f64 ? "_f64" : "_f32";
    cases.push_back({.name = "vectors" + type,
                     .computation = kVectors,
                     .f64 = f64,
                     .planned = Lengths("n", {1 << 24, 1000003, 6000}),
                     .sizes = Lengths("n", {0, 1, 31, 33, 4093}),
                     .large = Lengths("n", {1000003}),
                     .options = kVectorOptions});
    cases.push_back({.name = "elements" + type,
                     .computation = Elements(2, 4),
                     .f64 = f64,
                     .planned = Lengths(kElementsSize, {1000003}),
                     .sizes = Lengths(kElementsSize, {0, 1, 31, 33, 1009}),
                     .large = Lengths(kElementsSize, {1000003}),
                     .options = kElementOptions});
    // As above 1,000,003 elements would be 256 million entries.
    cases.push_back({.name = "large_elements" + type,
                     .computation = Elements(8, 8),
                     .f64 = f64,
                     .planned = Lengths(kElementsSize, {30011}),
                     .sizes = Lengths(kElementsSize, {0, 1, 31, 33}),
                     .large = Lengths(kElementsSize, {30011}),
                     .options = f64 ? kWarpOptions : kLargeElementOptions});
    cases.push_back({.name = "vectors_host" + type,
                     .computation = kVectors,
                     .f64 = f64,
                     .planned = Lengths("n", {1000003}),
                     .sizes = Lengths("n", {0, 1, 31, 33}),
                     .large = Lengths("n", {1000003}),
                     .options = Options{"vector map", "vector sums", "vector mapsums"},
                     .target = v1::HOST});
    cases.push_back(
        {.name = "elements_host" + type,
         .computation = Elements(2, 4),
         .f64 = f64,
         .planned = Lengths(kElementsSize, {1000003}),
         .sizes = Lengths(kElementsSize, {0, 1, 31, 33}),
         .large = Lengths(kElementsSize, {1000003}),
         .options = Options{"element in registers", "element in shared memory", "element staged mmul_tile"},
         .target = v1::HOST});
    cases.push_back({.name = "matrix_host" + type,
                     .computation = kMatrix,
                     .f64 = f64,
                     .padded = f64,
                     .planned = Shapes({{4093, 5001}, {4096, 4096}}),
                     .sizes = Shapes({{0, 33}, {31, 0}, {1, 1}, {31, 33}, {33, 31}, {31, 4096}}),
                     .large = Shapes({{4093, 1}, {1, 5001}, {4093, 5001}}),
                     .options = kHostMatrixOptions,
                     .target = v1::HOST});
    for (const bool padded : {false, true}) {
      const std::string suffix = absl::StrCat(padded ? "_padded" : "", type);
      // The largest of rows next to each other in f32, and of others in f64: they take most of the time.
      const bool largest = padded == f64;
      cases.push_back(
          {.name = "matrix" + suffix,
           .computation = kMatrix,
           .f64 = f64,
           .padded = padded,
           .planned = Shapes({{4093, 5001}, {4093, 5000}, {4096, 4096}, {4096, 16384}, {2048, 2048}}),
           .sizes = Shapes({{0, 33}, {31, 0}, {1, 1}, {31, 33}, {33, 31}, {31, 4096}}),
           .large = largest ? Shapes({{4093, 1}, {1, 5001}, {4093, 5001}}) : Shapes({{4093, 1}, {1, 5001}}),
           .options = kMatrixOptions});
      cases.push_back({.name = "long_rows" + suffix,
                       .computation = kMatrix,
                       .f64 = f64,
                       .padded = padded,
                       .planned = Shapes({{3, 1000003}, {100, 20480}}),
                       .wanted = HasTilesOfRows,
                       .sizes = Shapes({{0, 33}, {3, 0}, {1, 1}, {31, 33}, {33, 31}, {31, 8192}}),
                       .large = largest ? Shapes({{1, 1000003}, {4093, 1}, {4093, 5001}})
                                        : Shapes({{1, 1000003}, {4093, 1}}),
                       .options = kTileOptions,
                       .multiprocessors = 132});
      cases.push_back({.name = "short_rows" + suffix,
                       .computation = kMatrix,
                       .f64 = f64,
                       .padded = padded,
                       .planned = Shapes({{1000003, 3}, {1000003, 4}, {30011, 13}}),
                       .wanted = HasFewLanes,
                       .sizes = Shapes({{0, 3}, {31, 0}, {1, 1}, {31, 3}, {33, 2}, {31, 4}}),
                       .large = Shapes({{1000003, 1}, {1000003, 3}}),
                       .options = kFewLaneOptions});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, EveryOption, ::testing::ValuesIn(OptionCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusion::testing
