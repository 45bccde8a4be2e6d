#include <set>

#include "server/graph/graph.h"
#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

std::string HashOf(const std::string& text) {
  auto graph = testing::ParseText(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << text;
  return graph.ok() ? GraphHash(**graph) : "";
}

constexpr char kBase[] =
    "size m, n; matrix[m,n] A; vector[n] x; vector[m] y, z, t; input A, x; y = gemv(2, A, x); z = neg(y); t "
    "= exp(y); "
    "return z, t;";

TEST(GraphHash, Form) {
  const std::string hash = HashOf(kBase);
  EXPECT_EQ(hash.substr(0, 7), "sha256:");
  EXPECT_EQ(hash.size(), 7u + 16);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef", 7), std::string::npos);
}

TEST(GraphHash, NamesOrderAndDefaultsDoNotCount) {
  // Other names of variables and sizes, other order of statements and declarations, sizes with values,
  // comments.
  EXPECT_EQ(
      HashOf(
          "size c = 7, r = 3, unused = 2; vector[r] q, p, o; vector[c] v; matrix[r,c] M; input M; input v; "
          "p = gemv(2.0, M, v); /* swapped */ o = exp(p); q = neg(p); return q, o;"),
      HashOf(kBase));
}

TEST(GraphHash, EverythingElseCounts) {
  const std::vector<std::string> different = {
      kBase,
      // order of outputs
      "size m, n; matrix[m,n] A; vector[n] x; vector[m] y, z, t; input A, x; y = gemv(2, A, x); z = neg(y); "
      "t = exp(y); "
      "return t, z;",
      // order of inputs
      "size m, n; matrix[m,n] A; vector[n] x; vector[m] y, z, t; input x, A; y = gemv(2, A, x); z = neg(y); "
      "t = exp(y); "
      "return z, t;",
      // one more output
      "size m, n; matrix[m,n] A; vector[n] x; vector[m] y, z, t; input A, x; y = gemv(2, A, x); z = neg(y); "
      "t = exp(y); "
      "return z, t, y;",
      // a literal
      "size m, n; matrix[m,n] A; vector[n] x; vector[m] y, z, t; input A, x; y = gemv(3, A, x); z = neg(y); "
      "t = exp(y); "
      "return z, t;",
      // a function
      "size m, n; matrix[m,n] A; vector[n] x; vector[m] y, z, t; input A, x; y = gemv(2, A, x); z = abs(y); "
      "t = exp(y); "
      "return z, t;",
      // a square matrix
      "size n; matrix[n,n] A; vector[n] x, y, z, t; input A, x; y = gemv(2, A, x); z = neg(y); t = exp(y); "
      "return z, t;",
      // a constant size
      "size n; matrix[8,n] A; vector[n] x; vector[8] y, z, t; input A, x; y = gemv(2, A, x); z = neg(y); t = "
      "exp(y); "
      "return z, t;",
      // another data type
      "size m, n; f64 matrix[m,n] A; f64 vector[n] x; f64 vector[m] y, z, t; input A, x; y = gemv(2, A, x); "
      "z = neg(y); "
      "t = exp(y); return z, t;",
      // elements, of two sizes
      "MATRIX3x3 x, y; input x; y = neg(x); return y;", "MATRIX3x4 x, y; input x; y = neg(x); return y;",
      "VECTOR3 x, y; input x; y = neg(x); return y;", "SCALAR x, y; input x; y = neg(x); return y;",
      "scalar x, y; input x; y = neg(x); return y;",
      // order of operands
      "SCALAR a, b, c; input a, b; c = sub(a, b); return c;",
      "SCALAR a, b, c; input a, b; c = sub(b, a); return c;",
      // which of two equal results is used where
      "SCALAR x, a, b, c, d; input x; a = exp(x); b = exp(x); c = add(a, b); d = sub(a, b); return c, d;",
      "SCALAR x, a, b, c, d; input x; a = exp(x); b = exp(x); c = add(a, b); d = sub(b, a); return c, d;",
      "SCALAR x, a, b, c, d; input x; a = exp(x); b = exp(x); c = add(a, b); d = sub(a, a); return c, d;",
      "SCALAR x, a, c, d; input x; a = exp(x); c = add(a, a); d = sub(a, a); return c, d;"};
  std::set<std::string> hashes;
  for (const std::string& text : different) EXPECT_TRUE(hashes.insert(HashOf(text)).second) << text;
}

TEST(GraphHash, DeepGraphs) {
  std::string text = "SCALAR x0";
  for (int i = 1; i <= 50000; ++i) text += ",x" + std::to_string(i);
  text += "; input x0;";
  for (int i = 1; i <= 50000; ++i) text += "x" + std::to_string(i) + "=neg(x" + std::to_string(i - 1) + ");";
  EXPECT_EQ(HashOf(text + "return x50000;").size(), 23u);
}

}  // namespace
}  // namespace fusion
