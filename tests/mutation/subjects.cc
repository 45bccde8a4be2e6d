#include "tests/mutation/subjects.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/kernel_options.h"

namespace fusion::testing {
namespace {

constexpr char kVectors[] = R"(
size n;
vector[n] x, z, y, w;  scalar a, s;
input x, z, a;
y = axpy(a, x, z);
s = dot(y, x);
w = scal(s, y);
return y, s, w;
)";
constexpr char kVectorChoices[] = R"(
size n;
vector[n] x, z, y, e;  scalar a, big, small, at, length, all;
input x, z, a;
y = axpy(a, x, z);
big = vmax(y);
small = vmin(x);
at = argmax(y);
length = nrm2(x);
all = sum(z);
return big, small, at, length, all;
)";
constexpr char kVectorSums[] = R"(
size n;
vector[n] x, z, u, v;  scalar a, b, c, d, e, f;
input x, z, a;
u = vmul(x, z);
v = axpby(a, u, a, z);
b = sum(u);
c = asum(v);
d = dot(v, x);
e = nrm2(u);
f = vmin(v);
return v, b, c, d, e, f;
)";
constexpr char kVectorSteps[] = R"(
size n;
vector[n] x, z, u, v, w;  scalar b, c;
input x, z;
u = vsub(x, z);
b = dot(u, z);
v = scal(b, u);
c = vmax(v);
w = scale(c, v);
return u, b, v, c, w;
)";
constexpr char kProducts[] = R"(
size m, n;
matrix[m,n] A, B;  vector[m] u, q, t;  vector[n] v, p, s;
input A, u, v, p;
B = ger(A, u, v);
q = gemv(1.0, B, p);
s = gemtv(1.0, B, q);
t = gemv(1.0, B, s);
return B, q, s, t;
)";
constexpr char kSoftmax[] = R"(
size m, n;
matrix[m,n] X, D, E, Y;  vector[m] largest, total;
input X;
largest = rowmax(X);
D = rowsub(X, largest);
E = exp(D);
total = rowsum(E);
Y = rowdiv(E, total);
return Y;
)";
constexpr char kLayerNorm[] = R"(
size m, n;
matrix[m,n] X, D, Q, N, G, Y;  vector[m] mean, variance, shifted, r;  vector[n] gain, bias;
input X, gain, bias;
mean = rowmean(X);
D = rowsub(X, mean);
Q = square(D);
variance = rowmean(Q);
shifted = shift(1e-5, variance);
r = rsqrt(shifted);
N = rowmul(D, r);
G = colmul(N, gain);
Y = coladd(G, bias);
return Y;
)";
constexpr char kBoth[] = R"(
size m, n;
matrix[m,n] A;  vector[m] t, w, r, q;  vector[n] c, d, s, p;
input A, r, p;
t = rowmax(A);
w = rowsum(A);
q = gemv(1.0, A, p);
c = colmax(A);
d = colmin(A);
s = gemtv(1.0, A, r);
return t, w, q, c, d, s;
)";
constexpr char kColumns[] = R"(
size m, n;
matrix[m,n] A;  vector[m] r;  vector[n] c, d, s;
input A, r;
c = colmax(A);
d = colsum(A);
s = gemtv(1.0, A, r);
return c, d, s;
)";
constexpr char kElements[] = R"(
MATRIX4x4 A, B, C, D, E;  VECTOR4 x, y;
input A, B, D, x;
C = mmul(A, B);
E = madd(C, D);
y = mvmul(E, x);
return E, y;
)";
constexpr char kOddElements[] = R"(
MATRIX3x3 A, B, M1;
VECTOR3 c, v1;
SCALAR s1;
input A, B, c;
M1 = mmul33(A, B);
v1 = mvmul33(M1, c);
s1 = venorm3(v1);
return M1, s1;
)";

struct Case {
  const char* text;
  SizeValues planned;   // the kernels are those for these sizes
  SizeValues verified;  // and run at these, which no vector, warp, block or tile divides
};
SizeValues N(int64_t n) { return {{"n", n}}; }
SizeValues Rows(int64_t m, int64_t n) { return {{"m", m}, {"n", n}}; }
SizeValues Count(int64_t elements) { return {{kElementsSize, elements}}; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* text : {kVectors, kVectorChoices, kVectorSums, kVectorSteps}) {
    cases.push_back({text, N(1 << 24), N(30011)});
    cases.push_back({text, N(6000), N(5003)});
  }
  for (const char* text : {kElements, kOddElements}) cases.push_back({text, Count(1000003), Count(2003)});
  for (const char* text : {kProducts, kSoftmax, kLayerNorm, kBoth, kColumns}) {
    cases.push_back({text, Rows(4093, 5001), Rows(23, 5001)});
    cases.push_back({text, Rows(4096, 4096), Rows(23, 4001)});
    cases.push_back({text, Rows(4096, 16384), Rows(13, 16001)});
    cases.push_back({text, Rows(100003, 100), Rows(203, 99)});
    cases.push_back({text, Rows(1000003, 13), Rows(1003, 13)});
    cases.push_back({text, Rows(3, 1000003), Rows(3, 30011)});
    cases.push_back({text, Rows(100, 20480), Rows(37, 9001)});
  }
  return cases;
}

using Implementation = FusionImplementation;
struct Row {
  const char* name;
  std::function<bool(const Implementation&)> has;
};
bool IsPanel(const Implementation& implementation) { return implementation.skeleton == &RowPanelSkeleton(); }
bool IsPlainPanel(const Implementation& implementation) {
  const AnyParameters p = ParametersOf(implementation);
  return IsPanel(implementation) && p.cluster_blocks == 1 && p.stages == 0 && !p.column_tiles;
}
const std::vector<Row>& TableRows() {
  static const auto* rows = new std::vector<Row>{
      {"element", [](const Implementation& i) { return i.skeleton == &ElementSkeleton(); }},
      {"vector", [](const Implementation& i) { return i.skeleton == &VectorSkeleton(); }},
      {"block_vector", [](const Implementation& i) { return i.skeleton == &BlockVectorSkeleton(); }},
      {"narrow_columns", [](const Implementation& i) { return i.skeleton == &NarrowColumnsSkeleton(); }},
      {"row_panel block",
       [](const Implementation& i) {
         return IsPlainPanel(i) && ParametersOf(i).threads_per_row == ParametersOf(i).threads;
       }},
      {"row_panel warp",
       [](const Implementation& i) { return IsPlainPanel(i) && ParametersOf(i).threads_per_row == 32; }},
      {"row_panel few lanes",
       [](const Implementation& i) { return IsPlainPanel(i) && ParametersOf(i).threads_per_row < 32; }},
      {"row_panel cluster",
       [](const Implementation& i) { return IsPanel(i) && ParametersOf(i).cluster_blocks > 1; }},
      {"row_panel stages",
       [](const Implementation& i) {
         return IsPanel(i) && ParametersOf(i).stages > 0 && ParametersOf(i).cluster_blocks == 1;
       }},
      {"row_panel column_tiles",
       [](const Implementation& i) {
         return IsPanel(i) && ParametersOf(i).column_tiles && ParametersOf(i).tile_rows == 0;
       }},
      {"row_panel tile_rows",
       [](const Implementation& i) { return IsPanel(i) && ParametersOf(i).tile_rows > 0; }},
      {"cooperative", [](const Implementation& i) { return i.skeleton == &CooperativeSkeleton(); }},
      {"finish",  // the second kernel of any
       [](const Implementation& i) {
         return i.skeleton == &VectorSkeleton() || i.skeleton == &RowPanelSkeleton();
       }}};
  return *rows;
}

// What a case offers a row, in the order in which it is taken: fusions of many nodes first, and of them such
// as have what those before lack.
std::vector<Implementation> Offers(const Graph& graph, const std::vector<Implementation>& all,
                                   const Row& row) {
  std::vector<Implementation> fitting;
  for (const Implementation& implementation : all)
    if (row.has(implementation)) fitting.push_back(implementation);
  std::set<std::string> seen;
  std::vector<Implementation> chosen = WithAllOptions(graph, fitting, &seen);
  std::stable_sort(chosen.begin(), chosen.end(), [](const Implementation& a, const Implementation& b) {
    return a.order.size() > b.order.size();
  });
  return chosen;
}

}  // namespace

const std::vector<std::string>& RowNames() {
  static const auto* names = [] {
    auto* all = new std::vector<std::string>;
    for (const Row& row : TableRows()) all->push_back(row.name);
    return all;
  }();
  return *names;
}

absl::StatusOr<std::vector<Subject>> MakeSubjects(size_t most) {
  // Runs back to back over more than any cache holds: what there is for these is there too.
  const CostModel model(DescribedDevice(v1::CUDA), 1e12);
  std::map<std::string, std::vector<std::vector<Subject>>> offered;  // by row and case
  for (const Case& wanted : Cases()) {
    auto graph = ParseSource(TextSource(wanted.text), *Catalog::BuiltIn());
    if (!graph.ok()) return graph.status();
    SearchOptions options;
    options.implementation.keep = 200;
    auto space = SearchFusions(**graph, wanted.planned, model, options);
    if (!space.ok()) return space.status();
    for (const Row& row : TableRows()) {
      std::vector<Subject> subjects;
      for (const Implementation& implementation : Offers(**graph, space->implementations, row)) {
        if (subjects.size() >= most) break;
        auto code = LowerFusion(**graph, implementation, {.simt = true});
        if (!code.ok()) return code.status();
        const bool finish = std::string(row.name) == "finish";
        const bool fits =
            std::all_of(code->limits.begin(), code->limits.end(), [&](const FusionCode::ExtentLimit& limit) {
              return ExtentValue(limit.extent, wanted.verified) <= limit.limit;
            });
        if (!fits || (finish && code->launches.size() < 2)) continue;
        subjects.push_back({.row = row.name,
                            .graph = *graph,
                            .sizes = wanted.verified,
                            .implementation = implementation,
                            .code = *std::move(code),
                            .first_launch = finish ? size_t{1} : size_t{0},
                            .last_launch = finish ? size_t{2} : size_t{1}});
      }
      if (!subjects.empty()) offered[row.name].push_back(std::move(subjects));
    }
  }
  // In turn from each case, so that all graphs and sizes are there.
  std::vector<Subject> chosen;
  for (const Row& row : TableRows()) {
    size_t count = 0;
    for (size_t i = 0; i < most && count < most; ++i)
      for (std::vector<Subject>& subjects : offered[row.name])
        if (i < subjects.size() && count < most) {
          chosen.push_back(std::move(subjects[i]));
          ++count;
        }
  }
  return chosen;
}

}  // namespace fusion::testing
