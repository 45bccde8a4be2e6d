// Kernels of the listings, at sizes that tiles fit and at others, beside the C that they were made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/folders.h"
#include "tests/property/loop_kernels/host_run.h"

namespace fusion {
namespace {

using testing::ArrayBytes;
using testing::SharedObject;

struct Shape {
  IntegerValues sizes, parameters;
};

// Runs `text` at these shapes, with and without shared memory.
void Compare(const std::string& text, const std::string& file, const std::vector<Shape>& shapes) {
  std::set<std::string> sizes;
  for (const auto& [name, value] : shapes[0].sizes) sizes.insert(name);
  const auto checked = CheckLoops(text, file, sizes);
  ASSERT_TRUE(checked.ok()) << checked.status();
  ErrorList errors(file);
  const MappedLoops mapped = MapLoops(*checked, {}, &errors);
  const LoopInterface interface = InterfaceOf(checked->program, &errors);
  ASSERT_TRUE(errors.empty()) << errors.ToStatus();
  const auto serial =
      SharedObject::Compile(testing::SerialSource(checked->program, interface, "serial"), true);
  ASSERT_NE(serial, nullptr);
  std::vector<LoopCode> codes;
  std::string source = testing::HostRuntime();
  for (const Shape& shape : shapes)
    for (const bool cached : {false, true}) {
      codes.push_back(LowerLoops(
          mapped,
          {.constants = shape.parameters, .cached = cached, .prefix = absl::StrCat("k", codes.size(), "_")},
          &errors));
      ASSERT_TRUE(errors.empty()) << errors.ToStatus();
      source += testing::KernelSource(codes.back());
    }
  const auto kernels = SharedObject::Compile(source, false);
  ASSERT_NE(kernels, nullptr);
  for (size_t i = 0; i < codes.size(); ++i) {
    IntegerValues values = shapes[i / 2].sizes;
    values.insert(shapes[i / 2].parameters.begin(), shapes[i / 2].parameters.end());
    for (const CRegion& region : checked->program.regions) values = ScopeValues(region.scope, values);
    ArrayBytes expected = testing::RandomArrays(interface, values, 7), got = expected;
    testing::RunSerial(*serial, "serial", interface, values, &expected);
    testing::RunKernels(*kernels, codes[i], interface, values, &got);
    for (size_t array = 0; array < interface.arrays.size(); ++array)
      EXPECT_EQ(expected[array], got[array]) << file << ": " << interface.arrays[array].variable.name
                                             << ", shape " << i / 2 << (i % 2 ? ", cached" : "");
  }
}

std::string Listing(const std::string& name) {
  std::ifstream file(testing::SourceFolder() + "/examples/loops/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ListingsTest, Reversal) {
  Compare(Listing("reversal.c"), "reversal.c",
          {{{{"N", 1024}}, {{"s", 4}, {"B", 32}}},
           {{{"N", 1000}}, {{"s", 1}, {"B", 50}}},
           {{{"N", 31}}, {{"s", 2}, {"B", 8}}}});
}
TEST(ListingsTest, SerialReversal) {
  for (const int64_t n : {1, 31, 33, 1000})
    Compare(Listing("reversal_serial.c"), "reversal_serial.c",
            {{{{"N", n}}, {{"s0", 1}, {"B0", 32}}}, {{{"N", n}}, {{"s0", 4}, {"B0", 64}}}});
}
TEST(ListingsTest, Jacobi) {
  Compare(Listing("jacobi.c"), "jacobi.c",
          {{{{"N", 258}, {"T", 5}}, {{"s", 4}, {"B", 32}}}, {{{"N", 100}, {"T", 4}}, {{"s", 2}, {"B", 16}}}});
}
TEST(ListingsTest, Smoothing) {
  Compare(Listing("smoothing.c"), "smoothing.c",
          {{{{"N", 258}, {"T", 3}}, {{"B", 32}}}, {{{"N", 101}, {"T", 3}}, {{"B", 64}}}});
}
TEST(ListingsTest, Multiplication) {
  Compare(Listing("matmul.c"), "matmul.c",
          {{{{"N", 64}}, {{"s", 2}, {"B0", 8}, {"B1", 16}, {"B", 16}}},
           {{{"N", 50}}, {{"s", 1}, {"B0", 5}, {"B1", 10}, {"B", 8}}}});
}
TEST(ListingsTest, MultiplicationInOpenMp) {
  Compare(Listing("matmul_openmp.c"), "matmul_openmp.c",
          {{{{"N", 70}, {"G", 1}}, {{"s0", 2}, {"B0", 16}, {"s1", 1}, {"B1_", 4}, {"B1", 1}, {"K0", 8}}},
           {{{"N", 33}, {"G", 1}}, {{"s0", 1}, {"B0", 8}, {"s1", 2}, {"B1_", 8}, {"B1", 1}, {"K0", 16}}}});
}
TEST(ListingsTest, Addition) {
  Compare(Listing("addition.c"), "addition.c",
          {{{{"N", 64}}, {{"B0", 8}, {"B1", 16}}}, {{{"N", 33}}, {{"B0", 4}, {"B1", 4}}}});
}
TEST(ListingsTest, Decomposition) {
  Compare(Listing("lu.c"), "lu.c",
          {{{{"N", 40}, {"G", 1}, {"B", 1}}, {{"s0", 1}, {"B0", 16}, {"s1", 2}, {"B1", 4}}}});
}

// Threads wait for each other between two loops over them; and names that generated code has are the text's
// own.
constexpr char kTwice[] = R"(
int n, B, block, c_block;
float a[n], b[n], lane[n], h_x[n];
int blocks = (n + B - 1) / B;
meta_schedule {
  meta_for (int v = 0; v < blocks; v++) {
    int base = v * B;
    meta_for (int u = 0; u < B; u++)
      if (base + u < n) b[base + u] = a[base + u] * block + lane[base + u];
    meta_for (int u = 0; u < B; u++)
      if (base + u < n) h_x[base + u] = b[base + (u + 1) % B < n ? base + (u + 1) % B : base] - c_block;
  }
  meta_for (int v = 0; v < blocks; v++)
    meta_for (int u = 0; u < B; u++)
      if (v * B + u < n) a[v * B + u] = a[v * B + u] + lane[v * B + u];
}
)";

constexpr char kGemm[] = R"(
int ni, nj, nk;
double alpha, beta;
double C[ni][nj], A[ni][nk], B[nk][nj];
#pragma scop
for (int i = 0; i < ni; i++) {
  for (int j = 0; j < nj; j++)
    C[i][j] *= beta;
  for (int k = 0; k < nk; k++)
    for (int j = 0; j < nj; j++)
      C[i][j] += alpha * A[i][k] * B[k][j];
}
#pragma endscop
)";
constexpr char kTriangle[] = R"(
int n;
double L[n][n], x[n], b[n];
#pragma fusion parametric
for (int i = 0; i < n; i++)
  for (int j = 0; j <= i; j++)
    L[i][j] = x[j] * b[i] - L[i][j];
)";
constexpr char kOddSteps[] = R"(
int n;
float a[n], b[n];
int i, t;
for (t = 0; t < 3; t++) {
#pragma omp parallel for
  for (i = n - 1; i > 1; i -= 3)
    a[i] = b[i] + 1;
#pragma omp parallel for
  for (i = 2; i <= n - 1; i += 4)
    b[i] = a[i] * 2;
  b[0] = a[0] + b[1];
}
)";
constexpr char kOneByOne[] = R"(
int n;
int A[n][n], s[n], q[n], r[n], p[n];
#pragma scop
for (int i = 0; i < n; i++)
  s[i] = 0;
for (int i = 0; i < n; i++) {
  q[i] = 0.0;
  for (int j = 0; j < n; j++) {
    s[j] = s[j] + r[i] * A[i][j];
    q[i] = q[i] + A[i][j] * p[j];
  }
}
#pragma endscop
)";

// Nothing that is turned around: what results are compared with.
TEST(ListingsTest, AsWrittenAndProvedAlone) {
  const auto checked = CheckLoops(Listing("lu.c"), "lu.c", {"N"});
  ASSERT_TRUE(checked.ok());
  ErrorList errors("lu.c");
  const MappedLoops mapped = MapLoops(*checked, {.proved_only = true, .as_written = true}, &errors);
  ASSERT_TRUE(errors.empty());
  EXPECT_EQ(mapped.shapes.size(), 2u);  // of one loop
  EXPECT_EQ(MapLoops(*checked, {.proved_only = true}, &errors).shapes.size(), 4u);
}

TEST(ListingsTest, SeveralLoopsOverThreadsAndNamesOfGeneratedCode) {
  Compare(kTwice, "twice.c",
          {{{{"n", 100}, {"block", 3}, {"c_block", 7}}, {{"B", 16}}},
           {{{"n", 64}, {"block", 2}, {"c_block", 5}}, {{"B", 32}}}});
}
// A bound that stands in brackets.
constexpr char kSmallerBound[] = R"(
int n, m;
int a[n][n], b[n];
#pragma fusion parametric
for (int i = 0; i < n; i++) {
  b[i] = 0;
  for (int k = 1; k < (i < m ? i : m); k++) b[i] += a[i][k] * k;
}
)";
TEST(ListingsTest, BoundsThatAreConditions) {
  const auto checked = CheckLoops(kSmallerBound, "bound.c");
  ASSERT_TRUE(checked.ok());
  ErrorList errors("bound.c");
  EXPECT_THAT(PrintSerial(checked->program, InterfaceOf(checked->program, &errors), {}, "serial", false),
              ::testing::HasSubstr("k < (i < m ? i : m)"));
  Compare(kSmallerBound, "bound.c", {{{{"n", 37}, {"m", 9}}, {{"s0", 2}, {"B0", 8}}}});
}

TEST(ListingsTest, LoopsOfPolyBench) {
  Compare(kGemm, "gemm.c",
          {{{{"ni", 33}, {"nj", 21}, {"nk", 17}}, {{"s0", 2}, {"B0", 8}, {"s1", 2}, {"B1", 4}, {"K0", 8}}},
           {{{"ni", 16}, {"nj", 24}, {"nk", 3}}, {{"s0", 1}, {"B0", 8}, {"s1", 2}, {"B1", 4}, {"K0", 4}}}});
  Compare(kTriangle, "triangle.c", {{{{"n", 37}}, {{"s0", 2}, {"B0", 8}, {"s1", 1}, {"B1", 4}}}});
  Compare(kOddSteps, "steps.c",
          {{{{"n", 53}}, {{"s0", 2}, {"B0", 4}}}, {{{"n", 2}}, {{"s0", 1}, {"B0", 4}}}});
  Compare(kOneByOne, "bicg.c", {{{{"n", 29}}, {{"s0", 2}, {"B0", 4}, {"G", 2}}}});
}

// Strips of loops that begin behind 0, include their bound, have conditions, add to two arrays, or are empty.
constexpr char kStrips[] = R"(
int n, m, first, last;
float a[n][m], b[m][n], c[n][n], rows[n];
int counts[n];
#pragma fusion parametric
for (int i = 0; i < n; i++)
    for (int k = first; k <= last; k++) {
        float x = a[i][k] * 2;
        x += b[k][i];
        rows[i] += x;
        if (x > 0.5f) counts[i] = counts[i] + k;
    }
#pragma fusion parametric
for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
        for (int k = first; k < last - 4; k++)
            c[i][j] = c[i][j] * 0.5f + a[i][k] * b[k][j];
)";
TEST(StripsTest, OfAllKinds) {
  const IntegerValues shape = {{"s0", 2}, {"B0", 8}, {"s1", 2}, {"B1", 4}, {"K0", 8}};
  IntegerValues other = shape;
  other["K0"] = 4, other["s0"] = 1, other["B1"] = 3;
  Compare(kStrips, "strips.c",
          {{{{"n", 37}, {"m", 29}, {"first", 3}, {"last", 28}}, shape},
           {{{"n", 16}, {"m", 40}, {"first", 0}, {"last", 39}}, shape},
           {{{"n", 9}, {"m", 9}, {"first", 5}, {"last", 4}}, shape},
           {{{"n", 21}, {"m", 12}, {"first", 1}, {"last", 10}}, other}});
}

// Returns the kernels of a text, with parts in shared memory.
LoopCode CodeOf(const std::string& text, const IntegerValues& shape) {
  ErrorList errors("text.c");
  const auto checked = CheckLoops(text, "text.c");
  EXPECT_TRUE(checked.ok()) << checked.status();
  if (!checked.ok()) return {};
  LoopCode code = LowerLoops(MapLoops(*checked, {}, &errors), {.constants = shape, .cached = true}, &errors);
  EXPECT_TRUE(errors.empty()) << errors.ToStatus();
  return code;
}

TEST(StripsTest, ThreadsKeepTheirSumsAndShareWhatTheyRead) {
  const LoopCode code = CodeOf(kGemm, {{"s0", 2}, {"B0", 8}, {"s1", 4}, {"B1", 4}, {"K0", 16}});
  ASSERT_EQ(code.kernels.size(), 2u);
  const LoopKernel& product = code.kernels[1];
  EXPECT_THAT(product.cached, ::testing::UnorderedElementsAre("A", "B"));
  // Two buffers for 16 columns of 16 rows of A, and 16 columns of 16 rows of B, with 16 bytes behind each
  // row.
  EXPECT_EQ(product.shared_bytes, 2 * (16 * (16 + 2) + 16 * (16 + 2)) * 8);
  ASSERT_EQ(product.kernel.sections[0].lane_variables.size(), 1u);
  EXPECT_EQ(product.kernel.sections[0].lane_variables[0].extents, "[4][2]");
}

// Loops whose ends differ between threads, and those that read other entries of what they write.
constexpr char kNoStrips[] = R"(
int n;
float a[n][n], b[n], c[n];
#pragma fusion parametric
for (int i = 0; i < n; i++)
    for (int k = 0; k < i; k++)
        b[i] += a[i][k];
#pragma fusion parametric
for (int i = 0; i < n; i++)
    for (int k = 1; k < n; k++)
        a[i][k] += a[i][k - 1] * c[i];
)";
TEST(StripsTest, NotWhereThreadsDiffer) {
  const LoopCode code = CodeOf(kNoStrips, {{"s0", 1}, {"B0", 8}});
  ASSERT_EQ(code.kernels.size(), 2u);
  for (const LoopKernel& kernel : code.kernels) EXPECT_TRUE(kernel.kernel.sections[0].lane_variables.empty());
}

// Sums in scalars: for an entry that they begin with, for one that they do not, and for what is more than an
// entry.
constexpr char kScalarSums[] = R"(
int n, m;
float a[n][m], b[m], c[n], d[n*n];
double e[n];
#pragma fusion parametric
for (int i = 0; i < n; i++) {
    float sum = c[i];
    for (int k = 0; k < m; k++) {
        float x = a[i][k];
        sum -= x * b[k];
    }
    c[i] = sum;
}
#pragma fusion parametric
for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
        float sum;
        int place = i * n + j;
        sum = b[0] * 2;
        for (int k = 0; k < m; k++)
            sum = sum * 0.5f + (k != j ? a[i][k] * a[j][k] : b[k]);
        d[place] = sum;
    }
#pragma fusion parametric
for (int i = 0; i < n; i++) {
    float sum = 0;
    for (int k = 0; k < m; k++)
        sum += a[i][k];
    e[i] = sum;
}
#pragma fusion parametric
for (int i = 0; i < n; i++) {
    float sum = c[i] + 1;
    for (int k = 0; k < m; k++)
        sum += a[i][k] * c[i];
    c[i] = sum;
}
)";
TEST(StripsTest, OfSumsInScalars) {
  const IntegerValues shape = {{"s0", 2}, {"B0", 8}, {"s1", 2}, {"B1", 4}, {"K0", 8}};
  Compare(kScalarSums, "scalars.c",
          {{{{"n", 19}, {"m", 21}}, shape}, {{{"n", 8}, {"m", 16}}, shape}, {{{"n", 3}, {"m", 1}}, shape}});
  const LoopCode code = CodeOf(kScalarSums, shape);
  std::vector<size_t> kept;
  for (const LoopKernel& kernel : code.kernels)
    kept.push_back(kernel.kernel.sections[0].lane_variables.size());
  // The third sum is of another type than its entry, the fourth one reads the entry.
  EXPECT_THAT(kept, ::testing::ElementsAre(1u, 0u, 1u, 0u, 0u));
}

}  // namespace
}  // namespace fusion
