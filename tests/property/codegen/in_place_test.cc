// Graphs whose outputs take the memory of inputs: every kernel that the search offers reads what it needs
// before it is overwritten. The runs have the memory of both in one place, as programs of users do.
#include <gtest/gtest.h>

#include <tuple>

#include "absl/strings/str_cat.h"
#include "server/parse/parse.h"
#include "tests/property/codegen/every_implementation.h"

namespace fusion::testing {
namespace {

struct InPlaceGraph {
  const char* name;
  const char* text;
};

// Rows are passed once, twice and more often; columns and whole vectors are summed beside and before what is
// overwritten; results are read behind it.
constexpr InPlaceGraph kGraphs[] = {
    {"softmax",
     "size m, n;\nmatrix[m,n] A, B, C, D;\nvector[m] r, s;\ninput A;\n"
     "r = rowmax(A);\nB = rowsub(A, r);\nC = exp(B);\ns = rowsum(C);\nD = rowdiv(C, s);\nreturn D into A;\n"},
    {"residual_norm",
     "size m, n;\nmatrix[m,n] X, R, H, Q, N;\nvector[m] mean, scale;\ninput X, R;\n"
     "H = madd(X, R);\nQ = square(H);\nmean = rowmean(Q);\nscale = sqrt(mean);\nN = rowmul(H, scale);\n"
     "return H into R, N into X;\n"},
    {"columns",
     "size m, n;\nmatrix[m,n] A, B, C;\nvector[n] c;\nvector[m] r;\ninput A;\n"
     "c = colsum(A);\nr = rowsum(A);\nB = coladd(A, c);\nC = relu(B);\nreturn C into A, r;\n"},
    {"conjugate_gradients",
     "size n;\nvector[n] x, r, p, q, x2, r2, p2;\nscalar a, b, rr, norm;\ninput x, r, p, q, a, b;\n"
     "x2 = axpy(a, p, x);\nr2 = axpby(1.0, r, a, q);\nrr = dot(r2, r2);\np2 = axpby(1.0, r2, b, p);\n"
     "norm = sqrt(rr);\nreturn x2 into x, r2 into r, p2 into p, norm;\n"},
    {"normalized",
     "size n;\nvector[n] x, y;\nscalar s, t;\ninput x;\n"
     "s = nrm2(x);\nt = recip(s);\ny = scal(t, x);\nreturn y into x;\n"},
    {"unread",
     "size m, n;\nmatrix[m,n] A;\nvector[n] x;\nvector[m] y, z, w;\ninput A, x, w;\n"
     "z = neg(w);\ny = gemv(2.0, A, x);\nreturn y into w, z;\n"},
};

class InPlaceKernelTest : public ::testing::TestWithParam<std::tuple<InPlaceGraph, v1::Target>> {};

TEST_P(InPlaceKernelTest, ReadsBeforeItWrites) {
  const auto& [of, target] = GetParam();
  v1::GraphSource source;
  source.set_fuse(of.text);
  const auto graph = ParseSource(source, *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  ExpectEveryImplementationIsRight(**graph, of.name, target);
}

INSTANTIATE_TEST_SUITE_P(All, InPlaceKernelTest,
                         ::testing::Combine(::testing::ValuesIn(kGraphs),
                                            ::testing::Values(v1::HOST, v1::CUDA)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name,
                                               std::get<1>(info.param) == v1::CUDA ? "_cuda" : "_host");
                         });

}  // namespace
}  // namespace fusion::testing
