// Sums over threads, at random sizes and shapes of blocks, beside the C that they were made from. All numbers
// are whole, so that no order of additions rounds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "server/loops/result_scalars.h"
#include "tests/property/loop_kernels/host_run.h"

namespace fusion {
namespace {

using testing::ArrayBytes;
using testing::SharedObject;

constexpr int kShapes = 12;

template <class Real>
void Round(std::vector<char>* bytes) {
  for (size_t at = 0; at < bytes->size(); at += sizeof(Real)) {
    Real entry;
    std::memcpy(&entry, bytes->data() + at, sizeof(Real));
    entry = std::round(entry * 9);
    std::memcpy(bytes->data() + at, &entry, sizeof(Real));
  }
}
ArrayBytes WholeArrays(const LoopInterface& interface, const IntegerValues& values, uint64_t seed) {
  ArrayBytes arrays = testing::RandomArrays(interface, values, seed);
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (interface.arrays[i].variable.type == CType::kFloat) Round<float>(&arrays[i]);
    if (interface.arrays[i].variable.type == CType::kDouble) Round<double>(&arrays[i]);
  }
  return arrays;
}

struct Mapped {
  CheckedProgram checked;
  MappedLoops loops;
  LoopInterface interface;
};
Mapped MapText(const std::string& text) {
  Mapped mapped;
  auto checked = CheckLoops(text, "x.c");
  EXPECT_TRUE(checked.ok()) << checked.status();
  if (!checked.ok()) return mapped;
  mapped.checked = WithResultsInArrays(*std::move(checked));
  ErrorList errors("x.c");
  mapped.loops = MapLoops(mapped.checked, {}, &errors);
  mapped.interface = InterfaceOf(mapped.loops.program, &errors);
  for (const CParameter& shape : mapped.loops.shapes) std::erase(mapped.interface.integers, shape.name);
  EXPECT_TRUE(errors.empty()) << errors.ToStatus() << text;
  return mapped;
}

// `workspaces`: how many sums are shared out.
void Compare(const std::string& text, size_t workspaces) {
  SCOPED_TRACE(text);
  const Mapped mapped = MapText(text);
  ASSERT_FALSE(::testing::Test::HasFailure());
  ErrorList errors("x.c");
  std::mt19937 random(static_cast<unsigned>(text.size()));
  std::vector<LoopCode> codes;
  std::vector<IntegerValues> all_values;
  std::string source = testing::HostRuntime();
  for (int shape = 0; shape < kShapes; ++shape) {
    IntegerValues constants;
    for (const CParameter& parameter : mapped.loops.shapes)
      constants[parameter.name] = int64_t{1} << random() % (parameter.name == "B0" ? 8 : 4);
    codes.push_back(
        LowerLoops(mapped.loops, {.constants = constants, .prefix = absl::StrCat("k", shape, "_")}, &errors));
    ASSERT_TRUE(errors.empty()) << errors.ToStatus();
    EXPECT_EQ(codes.back().workspaces.size(), workspaces);
    source += testing::KernelSource(codes.back());
    for (const char* const size : {"n", "m"})
      constants[size] = 1 + static_cast<int64_t>(random() % (shape % 3 == 0 ? 3 : 300));
    all_values.push_back(std::move(constants));
  }
  const auto serial =
      SharedObject::Compile(testing::SerialSource(mapped.checked.program, mapped.interface, "serial"), true);
  const auto kernels = SharedObject::Compile(source, false);
  ASSERT_TRUE(serial != nullptr && kernels != nullptr);
  for (int shape = 0; shape < kShapes; ++shape) {
    const IntegerValues& values = all_values[shape];
    ArrayBytes expected = WholeArrays(mapped.interface, values, shape), got = expected;
    testing::RunSerial(*serial, "serial", mapped.interface, values, &expected);
    testing::RunKernels(*kernels, codes[shape], mapped.interface, values, &got);
    for (size_t array = 0; array < expected.size(); ++array)
      EXPECT_EQ(expected[array], got[array]) << mapped.interface.arrays[array].variable.name
                                             << " at n=" << values.at("n") << " m=" << values.at("m");
  }
}

TEST(SumsTest, OfClauses) {
  Compare(R"(
int n, m;
float a[n], b[n], s;
#pragma omp target teams distribute parallel for reduction(+ : s) map(to : a, b) map(tofrom : s)
for (int i = 0; i < n; i++) s += a[i] * b[i];
)",
          1);
  Compare(R"(
int n, m;
double a[n][m], s, most;
int i, j;
#pragma omp target teams distribute parallel for collapse(2) reduction(+ : s) reduction(max : most)
for (i = 0; i < n; i++)
  for (j = 0; j < m; j++) {
    double here = a[i][j] - 2;
    s -= here;
    most = fmax(most, here * here);
  }
)",
          2);
  // An iteration writes an entry of its own beside the sum.
  Compare(R"(
int n, m;
int a[n], b[n], s;
#pragma omp target teams distribute parallel for reduction(+ : s)
for (int i = n - 1; i >= 0; i--) {
  b[i] = a[i] + i;
  if (a[i] > 0) s += a[i];
}
)",
          1);
}
TEST(SumsTest, ThatNobodyAsksFor) {
  Compare(R"(
int n, m;
int a[n][m];
double s[3];
#pragma fusion parametric
{
  for (int i = 0; i < n; i += 3)
    for (int j = 0; j < m; j++) s[1] = a[i][j] + s[1];
  for (int i = 0; i < n; i++) a[i][0] = a[i][0] + s[1];
}
)",
          1);
  // These sum up a triangle, and loops of few iterations.
  Compare(R"(
int n, m;
int a[n][n], b[n][4], s, least;
#pragma fusion parametric
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) s += a[i][j];
  least = 5;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 4; j++) least = min(least, b[i][j]);
}
)",
          2);
  // A loop of the host is around it, and its entries are those of the array that it reads.
  Compare(R"(
int n, m;
int L[n][n], x[n], b[n];
#pragma fusion parametric
for (int i = 0; i < n; i++) {
  x[i] = b[i];
  for (int j = 0; j < i; j++) x[i] -= (L[i][j] & 3) * (x[j] & 7);
  x[i] = x[i] - (x[i] / 2);
}
)",
          1);
  Compare(R"(
int n, m;
double a[n], p;
#pragma fusion parametric
for (int i = 0; i < n; i++) p *= a[i] < 0 ? -1 : 1;
)",
          1);
}
TEST(SumsTest, NotWhereIterationsReadThem) {
  // Running sums, and one whose entry another name may be.
  Compare(R"(
int n, m;
int a[n], b[n], s;
#pragma fusion parametric
for (int i = 0; i < n; i++) {
  s += a[i];
  b[i] = s;
}
)",
          0);
  Compare(R"(
int n, m;
int a[n], s[2];
#pragma fusion parametric
for (int i = 0; i < n; i++) {
  s[0] += a[i];
  s[1] *= 3;
  a[i] = s[0];
}
)",
          0);
  Compare(R"(
int n, m;
int a[n], s, q;
#pragma fusion parametric
for (int i = 0; i < n; i++) {
  s = s * 2 + a[i];
  q = a[i] - q;
}
)",
          0);
  // Each thread of a parallel loop has sums of its own.
  Compare(R"(
int n, m;
int a[n][m], b[n];
#pragma omp target teams distribute
for (int i = 0; i < n; i++) {
  int s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int j = 0; j < m; j++) s += a[i][j];
  b[i] = s;
}
)",
          0);
}

// The clause names a value that iterations read while it grows, which no kernel can combine.
// The entries of s are told apart by a counter, wherever it is declared.
TEST(SumsTest, NotOfEntriesThatACounterFurtherInTells) {
  for (const char* const declared : {"", "int "})
    Compare(absl::StrCat("int n, m;\nfloat a[n][m], r[n], s[m];\nint i, j;\n#pragma scop\nfor (", declared,
                         "i = 0; i < n; i++)\n  for (", declared,
                         "j = 0; j < m; j++) s[j] = s[j] + r[i] * a[i][j];\n#pragma endscop\n"),
            0);
}
TEST(SumsTest, UnknownOnesAreRefused) {
  auto checked = CheckLoops(R"(
int n;
int a[n], s;
#pragma omp target teams distribute parallel for reduction(+ : s)
for (int i = 0; i < n; i++) {
  s += a[i];
  a[i] = s;
}
)",
                            "x.c");
  ASSERT_TRUE(checked.ok()) << checked.status();
  ErrorList errors("x.c");
  MapLoops(WithResultsInArrays(*std::move(checked)), {}, &errors);
  EXPECT_NE(std::string(errors.ToStatus().message())
                .find("x.c:5:1: error: no kernel is known for what iterations of i combine"),
            std::string::npos)
      << errors.ToStatus();
}

}  // namespace
}  // namespace fusion
