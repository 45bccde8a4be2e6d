#include "server/loops/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// The lines of all loops, or the errors.
std::string Checked(absl::string_view text) {
  const auto checked = CheckLoops(text, "x.c");
  if (!checked.ok()) return std::string(checked.status().message());
  return absl::StrJoin(checked->loops, "\n", [](std::string* out, const CheckedLoop& loop) {
    absl::StrAppend(out, LoopText(loop, "x.c"));
  });
}

TEST(CheckLoopsTest, ReversalIsParallel) {
  EXPECT_EQ(Checked("int N, In[N], Out[N];\n"
                    "#pragma fusion parametric\n"
                    "for (int i = 0; i < N; i++)\n"
                    "  Out[N-1-i] = In[i];\n"),
            "x.c:3:1: i is parallel: proved");
}

// The distance of two iterations is no name of the text.
TEST(CheckLoopsTest, AnOffsetMayBeCalledDelta) {
  EXPECT_THAT(Checked("int n, delta;\nfloat a[2*n + delta];\n#pragma fusion parametric\n"
                      "for (int i = 0; i < n; i++) a[2*i] = a[2*i + delta] + 1;\n"),
              HasSubstr("x.c:4:1: i is serial: its iterations share a[2 * i]"));
}

// Chen et al. 2017: smoothing, whose two kernels run one after the other in a loop on the host.
constexpr char kSmoothing[] =
    "int N, B, T;\n"
    "float a[N], b[N];\n"
    "int ub_v = (N - 2) / B;\n"
    "meta_schedule {\n"
    "  for (int t = 0; t < T; ++t) {\n"
    "    meta_for (int v = 0; v < ub_v; v++)\n"
    "      meta_for (int u = 0; u < B; u++) {\n"
    "        int p = v * B + u;\n"
    "        b[p+1] = (a[p] + a[p+1] + a[p+2])/3;\n"
    "      }\n"
    "    meta_for (int v = 0; v < ub_v; v++)\n"
    "      meta_for (int u = 0; u < B; u++) {\n"
    "        int w = v * B + u;\n"
    "        a[w+1] = b[w+1];\n"
    "      }\n"
    "  }\n"
    "}\n";
TEST(CheckLoopsTest, SmoothingIsParallel) {
  EXPECT_EQ(Checked(kSmoothing),
            "x.c:6:5: v is parallel: proved\nx.c:7:7: u is parallel: proved\n"
            "x.c:11:5: v is parallel: proved\nx.c:12:7: u is parallel: proved");
}

TEST(CheckLoopsTest, GranularityAndReversalWithABlockSize) {
  EXPECT_EQ(Checked("int N, B, s, dim;\nfloat a[N], c[N];\n"
                    "#pragma fusion parameter s in 1..64\n"
                    "#pragma fusion parameter B in 1..1024\n"
                    "meta_schedule cache(a, c) {\n"
                    "  meta_for (int i = 0; i < dim; i++)\n"
                    "    meta_for (int j = 0; j < B; j++)\n"
                    "      for (int k = 0; k < s; ++k) {\n"
                    "        int x = (i*s+k)*B+j;\n"
                    "        int y = N-1-x;\n"
                    "        c[y] = a[x];\n"
                    "      }\n"
                    "}\n"),
            "x.c:6:3: i is parallel: proved\nx.c:7:5: j is parallel: proved");
}

TEST(CheckLoopsTest, AWrongStrideIsFoundWithTheIterations) {
  EXPECT_THAT(Checked("int N, B, s, dim;\nfloat a[N], c[N];\n"
                      "#pragma fusion parameter s in 2..64\n"
                      "#pragma fusion parameter B in 2..1024\n"
                      "meta_schedule {\n"
                      "  meta_for (int i = 0; i < dim; i++)\n"
                      "    meta_for (int j = 0; j < B; j++)\n"
                      "      for (int k = 0; k < s; ++k)\n"
                      "        c[i*s*B+k*(B-1)+j] = a[i*s*B+k*B+j];\n"
                      "}\n"),
              HasSubstr("x.c:9:9: error: iterations of j share c[i * s * B + k * (B - 1) + j] (written "
                        "here), so meta_for at 7:5 is wrong: "));
}

TEST(CheckLoopsTest, BranchesOfOneConditionDoNotMeet) {
  // Chen et al. 2017: 1D Jacobi in one array of 2 N entries.
  EXPECT_EQ(Checked("int T, N, s, B;\nint a[2*N];\nint dim = (N-2)/(s*B);\n"
                    "for (int t = 0; t < T; ++t)\n"
                    "  meta_schedule {\n"
                    "    meta_for (int i = 0; i < dim; i++)\n"
                    "    meta_for (int j = 0; j < B; j++)\n"
                    "      for (int k = 0; k < s; ++k) {\n"
                    "        int p = i * s * B + k * B + j;\n"
                    "        int p1 = p + 1;\n"
                    "        int p2 = p + 2;\n"
                    "        int np = N + p;\n"
                    "        int np1 = N + p + 1;\n"
                    "        int np2 = N + p + 2;\n"
                    "        if (t % 2)\n"
                    "          a[p1] = (a[np] + a[np1] + a[np2]) / 3;\n"
                    "        else\n"
                    "          a[np1] = (a[p] + a[p1] + a[p2]) / 3;\n"
                    "      }\n"
                    "  }\n"),
            "x.c:6:5: i is parallel: proved\nx.c:7:5: j is parallel: proved");
}

TEST(CheckLoopsTest, MultiplicationInTilesWithFlatIndices) {
  EXPECT_EQ(
      Checked("int N, B0, B1, B, s, dim, dim0, dim1;\nfloat a[N][N], b[N][N], c[N*N];\n"
              "#pragma fusion parametric\n"
              "for (int i = 0; i < N; i++)\n"
              "  for (int j = 0; j < N; j++)\n"
              "    for (int k = 0; k < N; k++)\n"
              "      c[i*N+j] = c[i*N+j] + a[i][k] * b[k][j];\n"),
      "x.c:4:1: i is parallel: proved\nx.c:5:3: j is parallel: proved\n"
      "x.c:6:5: k adds up c[i * N + j] (written here, read at 7:18): N = 3: k = 0 and k = 1 both touch c[0]");
}

TEST(CheckLoopsTest, ACarriedDependenceNamesBothAccesses) {
  EXPECT_EQ(Checked("float a[1000];\n"
                    "int main() {\n"
                    "  int i, len = 1000;\n"
                    "#pragma omp parallel for private(i)\n"
                    "  for (i = 0; i < len - 1; i++)\n"
                    "    a[i] = a[i+1] + 1;\n"
                    "  return 0;\n"
                    "}\n"),
            "x.c:6:5: error: iterations of i share a[i] (written here, read at 6:12), so the pragma at 5:3 "
            "is wrong: "
            "i = 0 and i = 1 both touch a[1]");
}

TEST(CheckLoopsTest, ScalarsAreSharedUnlessSomebodySaysOtherwise) {
  const auto with = [](absl::string_view clause) {
    return Checked(absl::StrCat("int n; float a[n]; float sum; int i;\n#pragma omp parallel for ", clause,
                                "\nfor (i = 0; i < n; i++) sum += a[i];\n"));
  };
  EXPECT_EQ(with("reduction(+: sum)"), "x.c:3:1: i is parallel: proved");
  EXPECT_EQ(with(""),
            "x.c:3:25: error: iterations of i share sum (written here, read at 3:25), so the pragma at 3:1 "
            "is wrong: n = 3: i = 0 and i = 1 "
            "both touch sum; what is only added up wants a reduction clause");
  // The counter of an inner loop that is declared outside.
  EXPECT_THAT(Checked("int n; float a[n][n]; int i, j;\n#pragma omp parallel for\nfor (i = 0; i < n; i++)\n"
                      "  for (j = 0; j < n; j++) a[i][j] = 1;\n"),
              HasSubstr("iterations of i share j (written here)"));
  EXPECT_EQ(
      Checked(
          "int n; float a[n][n]; int i, j;\n#pragma omp parallel for private(j)\nfor (i = 0; i < n; i++)\n"
          "  for (j = 0; j < n; j++) a[i][j] = 1;\n"),
      "x.c:3:1: i is parallel: proved");
}

TEST(CheckLoopsTest, IterationsMayHaveTheirOwnScalars) {
  const auto with = [](absl::string_view body, absl::string_view behind = "") {
    return Checked(
        absl::StrCat("int n; float a[n], b[n]; float t; int i, j;\n#pragma scop\nfor (i = 0; i < n; i++) { ",
                     body, " }\n", behind, "#pragma endscop\n"));
  };
  EXPECT_EQ(with("t = a[i]; b[i] = t * t;"),
            "x.c:3:1: i is parallel: proved, where each iteration has its own t");
  EXPECT_THAT(with("b[i] = t; t = a[i];"), HasSubstr("i is serial: its iterations share t"));
  EXPECT_THAT(with("if (i > 2) t = a[i]; b[i] = t;"), HasSubstr("i is serial: its iterations share t"));
  EXPECT_THAT(with("for (j = 0; j < i; j++) t = a[j]; b[i] = t;"),
              HasSubstr("i is serial: its iterations share t"));
  EXPECT_THAT(with("t = a[i];", "b[0] = t;\n"), HasSubstr("i is serial: its iterations share t"));
}

TEST(CheckLoopsTest, CountersBelongToTheirLoops) {
  EXPECT_THAT(Checked("int n; float a[n];\n#pragma fusion parametric\nfor (int i = 0; i < n; i++) { a[i] = "
                      "0; i += 1; }\n"),
              HasSubstr("x.c:3:41: error: i counts a loop, whose body may not change it"));
  EXPECT_THAT(Checked("int n, i; float a[n];\n#pragma fusion parametric\nfor (i = 0; i < n; i++) for (i = 0; "
                      "i < n; i++) a[i] = 0;\n"),
              HasSubstr("x.c:3:30: error: i counts a loop around this one, too"));
}

// A loop up to (n - 4)/2 runs for n of 6 and more alone; others run for any n, and here all iterations meet
// for 0.
TEST(CheckLoopsTest, QuotientsSayNothingWhereTheNumeratorMayBeNegative) {
  EXPECT_THAT(Checked("int n, m;\nint h = (n - 4) / 2;\nfloat a[1000];\n#pragma fusion parametric\n"
                      "for (int i = 0; i < m; i++) a[n * i + h] = 0;\n"),
              HasSubstr("i is serial"));
}

TEST(CheckLoopsTest, WhatOnlyThePragmaSaysIsMarked) {
  EXPECT_EQ(Checked("int n, idx[n]; float a[n], b[n];\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) "
                    "a[idx[i]] = b[i];\n"),
            "x.c:3:1: i is parallel: the pragma says so; not proved, because of a[idx[i]] (written here)");
  EXPECT_EQ(Checked("int n, idx[n]; float a[n], b[n];\n#pragma fusion parametric\nfor (int i = 0; i < n; "
                    "i++) a[idx[i]] = b[i];\n"),
            "x.c:3:1: i is serial: not proved to be parallel, because of a[idx[i]] (written here)");
  // Reading by an index from memory is no harm.
  EXPECT_EQ(Checked("int n, idx[n]; float a[n], b[n];\n#pragma fusion parametric\nfor (int i = 0; i < n; "
                    "i++) a[i] = b[idx[i]];\n"),
            "x.c:3:1: i is parallel: proved");
}

TEST(CheckLoopsTest, TrianglesGuardsAndSteps) {
  // LU of Chen et al. 2017, with the undeclared d repaired: p is k + 1 at least, so columns are apart.
  EXPECT_EQ(Checked("#define N 2048\nfloat L[N*N], U[N*N];\nint G, B;\n"
                    "for (int k = 0; k < N; ++k) {\n"
                    "#pragma omp target\n#pragma omp teams num_teams(G) \\\n  thread_limit(B)\n"
                    "#pragma omp distribute parallel for schedule(static, 1)\n"
                    "for (int i = 0; i < N; i++)\n"
                    "  if (i < N-k-1) {\n"
                    "    int p = i + k + 1;\n"
                    "    int in1 = k*N+p, in2 = k*N+k;\n"
                    "    L[in1] = U[in1] / U[in2];\n"
                    "    for (int j = k; j < N; j++) {\n"
                    "      int in3 = j*N+p;\n"
                    "      int in4 = k*N+p, in5 = j*N+k;\n"
                    "      U[in3] -= L[in4] * U[in5];\n"
                    "    }\n"
                    "  }\n}\n"),
            "x.c:9:1: i is parallel: proved");
  EXPECT_EQ(Checked("int n; float a[2*n];\n#pragma fusion parametric\nfor (int i = 0; i < 2*n; i += 2) a[i] "
                    "= a[i+1];\n"),
            "x.c:3:1: i is parallel: proved");
  EXPECT_EQ(Checked("int n; float a[n][n];\n#pragma fusion parametric\nfor (int i = 0; i < n; i++)\n  for "
                    "(int j = 0; j < i; j++) a[i][j] = a[j][i];\n"),
            "x.c:3:1: i is parallel: proved\nx.c:4:3: j is parallel: proved");
}

TEST(CheckLoopsTest, AllErrorsAreReportedAtTheirPlaces) {
  EXPECT_EQ(Checked("int n; float a[n];\n"
                    "#pragma omp parallel for shedule(static)\n"
                    "for (int i = 0; i < n; i++) a[i] = b[i] + d;\n"
                    "#pragma fusion parametric\n"
                    "for (int i = 0; i < n; i++) { a[i][0] = foo(i); break; }\n"
                    "#pragma fusion parametric\n"
                    "for (int i = 0; i < n; i++) while (1) a[i] = 0;\n"),
            "x.c:2:26: error: the clause shedule is unknown (did you mean schedule?)\n"
            "x.c:3:36: error: b is not declared\nx.c:3:43: error: d is not declared\n"
            "x.c:5:49: error: \"break\" has no place in loops for a device; put what it skips into an if\n"
            "x.c:7:29: error: \"while\" has no place in loops for a device; write a for that counts");
  EXPECT_EQ(
      Checked(
          "int n; float a[n];\n#pragma fusion parametric\nfor (int i = 0; i < n; i++) a[i] = b[i] + d;\n"),
      "x.c:3:36: error: b is not declared\nx.c:3:43: error: d is not declared");
  EXPECT_EQ(Checked("int n; float a[n];\n#pragma fusion parametric\nfor (int i = 0; i < n; i--) a[i] = 0;\n"),
            "x.c:3:17: error: this loop counts down and ends above its bound, which it never meets");
  EXPECT_EQ(Checked("long x;\nmeta_schedule { x = meta_fork fib(3); }\n"),
            "x.c:2:21: error: meta_fork is of the fork-join model, which no GPU has; loops for a device are "
            "meta_for");
  EXPECT_THAT(Checked("int main() { return 0; }\n"), HasSubstr("no loops are marked"));
  EXPECT_THAT(Checked(std::string(70000, ' ')), HasSubstr("the text has 70000 bytes; 65536 are allowed"));
  EXPECT_THAT(Checked("#ifdef X\n#endif\n#pragma fusion parametric\nfor (int i = 0; i < 3; i++) ;\n"),
              HasSubstr("x.c:1:1: error: #ifdef is the preprocessor's; give what `cc -E` makes of the file"));
}

TEST(CheckLoopsTest, PointersThatAreGivenOthersMayBeTheSameMemory) {
  const auto with = [](absl::string_view statement) {
    return Checked(absl::StrCat(
        "int n; double *u, *v;\nvoid f(void) {\n  u = malloc(n); v = malloc(n);\n", statement,
        "\n#pragma omp parallel for\n  for (int i = 1; i < n - 1; i++) v[i] = u[i-1] + u[i+1];\n}\n"));
  };
  EXPECT_EQ(with(""), "x.c:6:3: i is parallel: proved");
  EXPECT_THAT(
      with("u = v;"),
      HasSubstr(
          "the pragma says so; not proved, because of u[i - 1] and v[i], which may be the same memory"));
}

TEST(CheckLoopsTest, IndicesThatLeaveTheirRowsTouchTheRowBefore) {
  EXPECT_EQ(Checked("int n; double b[n][n];\n#pragma omp parallel for\nfor (int i = 1; i < n; i++)\n  for "
                    "(int j = 0; j < n; j++) b[i][j] = b[i][j-1];\n"),
            "x.c:4:31: error: iterations of i share b[i][j] (written here, read at 4:41), so the pragma at "
            "3:1 is wrong: n = 3: i = 1 and i = 2 "
            "both touch b[1][2]");
}

TEST(CheckLoopsTest, TeamsDoNotWaitBetweenLoops) {
  EXPECT_THAT(
      Checked("int n; float a[n], b[n];\n#pragma omp target\n#pragma omp teams\n{\n#pragma omp "
              "distribute\nfor (int i = 0; i < n; i++) a[i] = i;\n"
              "#pragma omp distribute\nfor (int i = 0; i < n; i++) b[i] = a[n-1-i];\n}\n"),
      HasSubstr(
          "x.c:3:1: error: teams do not wait for one another between the loops at 6 and 8, which share a"));
  EXPECT_THAT(
      Checked("int n; float a[n];\n#pragma omp target teams\nfor (int i = 0; i < n; i++) a[i] = i;\n"),
      HasSubstr("x.c:2:1: error: no loop of this directive says what to share out"));
}

TEST(CheckLoopsTest, LoopsOfPolyhedralCompilersAreRead) {
  EXPECT_EQ(
      Checked("void f(int n, double a[1000][1000], double x[1000]) {\n  int i, j;\n#pragma scop\n  for (i = "
              "0; i < n; i++)\n    x[i] = 0;\n"
              "  for (i = 0; i < n; i++)\n    for (j = 0; j < i; j++)\n      x[i] = x[i] + a[i][j];\n#pragma "
              "endscop\n}\n"),
      "x.c:4:3: i is parallel: proved\nx.c:6:3: i is parallel: proved\n"
      "x.c:7:5: j adds up x[i] (written here, read at 8:14): n = 3: j = 0 and j = 1 both touch x[2]");
  EXPECT_THAT(Checked("int n; float a[n];\n#pragma scop\nfor (int i = 0; i < n; i++) a[i] = 1;\n"),
              HasSubstr("x.c:2:1: error: #pragma scop wants a #pragma endscop"));
}

TEST(CheckLoopsTest, OtherStatementsMayBeAnyC) {
  EXPECT_EQ(Checked("#include <stdio.h>\n"
                    "typedef struct { int x; } S;\n"
                    "static double sum(double *p, int n) { while (n--) *p++ += 1; return *p; }\n"
                    "int main(int argc, char *argv[]) {\n"
                    "  int i, len = 100;\n  if (argc > 1) len = atoi(argv[1]);\n"
                    "  double a[len], *q = malloc(len * sizeof(double));\n"
                    "  S s = {1}; switch (s.x) { case 1: break; }\n"
                    "#pragma omp parallel for\n"
                    "  for (i = 0; i < len; i++) a[i] = i;\n"
                    "  printf(\"a[%d]\\n\", a[0]);\n  do { q[0]++; } while (q[0] < 3);\n  return 0;\n}\n"),
            "x.c:10:3: i is parallel: proved");
}

TEST(CheckLoopsTest, DeclarationsThatLoopsDoNotUseMayHaveAnythingInThem) {
  EXPECT_EQ(Checked("int n;\nchar line[BUFSIZ];\nint mode = WRITE_ONLY;\nfloat a[n];\n"
                    "#pragma fusion parametric\nfor (int i = 0; i < n; i++) a[i] = 1;\n"),
            "x.c:6:1: i is parallel: proved");
}

// A directive of a block holds in that block alone.
TEST(CheckLoopsTest, PrivatesEndWithTheirBlock) {
  EXPECT_THAT(Checked("int n, i, j;\nfloat x, a[n], b[n];\nfor (j = 0; j < n; j++) {\n"
                      "#pragma omp parallel private(x)\n{\n#pragma omp for\n"
                      "for (i = 0; i < n; i++) { x = a[i]; a[i] = x + 1; }\n}\n"
                      "#pragma omp parallel for\n"
                      "for (i = 0; i < n; i++) { b[i] = x; x = a[i]; }\n}\n"),
              HasSubstr("x.c:10:37: error: iterations of i share x (written here, read at 10:34)"));
}

TEST(CheckLoopsTest, ANumberThatIsGivenIsNoConstant) {
  const std::string text =
      "#define N 8\nfloat a[N*N];\n#pragma fusion parametric\nfor (int i = 0; i < N; i++)\n"
      "for (int j = 0; j < 8; j++) a[i*N+j] = 1;\n";
  EXPECT_EQ(CheckLoops(text, "x.c")->loops[0].verdict.verdict, Verdict::kIndependent);
  EXPECT_NE(CheckLoops(text, "x.c", {"N"})->loops[0].verdict.verdict, Verdict::kIndependent);
}

// Each thread would have such an array, of which kernels have one.
TEST(CheckLoopsTest, PrivateArraysAreNotWritten) {
  const auto with = [](const std::string& clause, const std::string& body) {
    return Checked("float a[100], b[100], t[2];\n#pragma omp target teams distribute parallel for " + clause +
                   "\nfor (int i = 0; i < 100; i++) {" + body + "}\n");
  };
  for (const char* clause : {"private(t)", "firstprivate(t)", "lastprivate(t)"})
    EXPECT_THAT(
        with(clause, "t[0] = a[i]; b[i] = t[0];"),
        HasSubstr("x.c:3:32: error: t is an array that a clause makes private, and kernels have one of "
                  "it for all threads; declare it in the loop"));
  EXPECT_THAT(with("private(t)", "for (int j = 0; j < 2; j++) t[j] = a[i];"), HasSubstr("makes private"));
  EXPECT_EQ(with("firstprivate(t)", "b[i] = t[0] + a[i];"), "x.c:3:1: i is parallel: proved");
  EXPECT_EQ(with("private(t)", "float t[2]; t[0] = a[i]; b[i] = t[0];"), "x.c:3:1: i is parallel: proved");
  EXPECT_THAT(Checked("float a[100], t[2];\n#pragma omp target parallel private(t)\n{\n#pragma omp for\n"
                      "for (int i = 0; i < 100; i++) { t[0] = a[i]; a[i] = 2 * t[0]; }\n}\n"),
              HasSubstr("x.c:5:33: error: t is an array that a clause makes private"));
}

}  // namespace
}  // namespace fusion
