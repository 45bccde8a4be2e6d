#include "library/catalog/resolve.h"

#include <gtest/gtest.h>

#include "library/catalog/catalog.h"

namespace fusion {
namespace {

using Operands = std::vector<std::optional<Type>>;
constexpr std::nullopt_t kLiteral = std::nullopt;

const Extent kM{.name = "m"};
const Extent kN{.name = "n"};
const Extent kElements{.name = kElementsSize};

Type Vector(const Extent& n) { return Type::Vector(v1::F32, n); }
Type Matrix(const Extent& m, const Extent& n) { return Type::Matrix(v1::F32, m, n); }
Type Element(std::vector<int> shape) { return Type::Element(v1::F32, std::move(shape)); }
const Type kScalar = Type::Scalar(v1::F32);

absl::StatusOr<ResolvedCall> Resolve(const std::string& name, const Operands& operands,
                                     const std::string& suffix = "") {
  static const std::shared_ptr<const Catalog> catalog = Catalog::BuiltIn().value();
  return ResolveCall(*catalog->Find(name), operands, suffix);
}
std::string ErrorOf(const std::string& name, const Operands& operands, const std::string& suffix = "") {
  absl::StatusOr<ResolvedCall> call = Resolve(name, operands, suffix);
  return call.ok() ? "resolved to " + call->result.ToString() : std::string(call.status().message());
}

TEST(ResolveTest, ReductionBindsDimensions) {
  ResolvedCall call = Resolve("gemv", {kScalar, Matrix(kM, kN), Vector(kN)}).value();
  EXPECT_EQ(call.overload->form, v1::REDUCE);
  EXPECT_EQ(call.result, Vector(kM));
  EXPECT_EQ(call.dimensions, (std::vector<ResolvedDimension>{{kM, v1::PARALLEL}, {kN, v1::REDUCTION}}));
  EXPECT_EQ(call.operand_maps, (std::vector<std::vector<int>>{{}, {0, 1}, {1}}));
  EXPECT_EQ(call.result_map, (std::vector<int>{0}));
}

TEST(ResolveTest, NumberOfOperandsChoosesTheOverload) {
  ResolvedCall call = Resolve("gemtv", {kLiteral, Matrix(kM, kN), Vector(kM), kLiteral, Vector(kN)}).value();
  EXPECT_EQ(call.overload->operands.size(), 5u);
  EXPECT_EQ(call.result, Vector(kN));
  EXPECT_EQ(call.operand_maps, (std::vector<std::vector<int>>{{}, {0, 1}, {0}, {}, {1}}));
  EXPECT_EQ(ErrorOf("gemtv", {kScalar, Matrix(kM, kN), Vector(kM), kScalar}),
            "the call has 4 operands; write gemtv(a, A, x) or gemtv(a, A, x, b, y)");
}

TEST(ResolveTest, FormsOfResults) {
  EXPECT_EQ(Resolve("dot", {Vector(kN), Vector(kN)})->result, kScalar);
  EXPECT_EQ(Resolve("ger", {Matrix(kM, kN), Vector(kM), Vector(kN)})->result, Matrix(kM, kN));
  EXPECT_EQ(Resolve("rowsum", {Matrix(kM, kN)})->result, Vector(kM));
  EXPECT_EQ(Resolve("colsum", {Matrix(kM, kN)})->result, Vector(kN));
  EXPECT_EQ(Resolve("rowadd", {Matrix(kM, kN), Vector(kM)})->result, Matrix(kM, kN));
}

TEST(ResolveTest, MismatchNamesBothOperands) {
  EXPECT_EQ(ErrorOf("gemv", {kScalar, Matrix(kM, kN), Vector(kM)}),
            "gemv(a, A, x): x must be vector[n] because A is matrix[m,n], but it is vector[m]");
  EXPECT_EQ(ErrorOf("ger", {Matrix(kM, kN), Vector(kN), Vector(kN)}),
            "ger(A, u, v): u must be vector[m] because A is matrix[m,n], but it is vector[n]");
  EXPECT_EQ(ErrorOf("gemv", {kScalar, Vector(kN), Vector(kN)}),
            "gemv(a, A, x): A must be a matrix, but it is vector[n]");
  EXPECT_EQ(ErrorOf("gemv", {Vector(kM), Matrix(kM, kN), Vector(kN)}),
            "gemv(a, A, x): a must be scalar, but it is vector[m]");
  EXPECT_EQ(ErrorOf("dot", {kLiteral, Vector(kN)}), "dot(x, y): x must be a vector, but it is a literal");
  EXPECT_EQ(ErrorOf("axpy", {Element({}), Vector(kN), Vector(kN)}),
            "axpy(a, x, y): a must be scalar, but it is SCALAR");
  EXPECT_EQ(ErrorOf("vadd", {Vector({"", 3}), Vector({"", 4})}),
            "vadd(x, y): y must be vector[3] because x is vector[3], but it is vector[4]");
}

TEST(ResolveTest, NearestOverloadIsTheOneWithMostFittingOperands) {
  EXPECT_EQ(ErrorOf("madd", {Element({3, 3}), Element({5, 5})}),
            "madd(A, B): B must be MATRIX3x3 because A is MATRIX3x3, but it is MATRIX5x5");
  EXPECT_EQ(ErrorOf("madd", {Matrix(kM, kN), Matrix(kN, kM)}),
            "madd(A, B): B must be matrix[m,n] because A is matrix[m,n], but it is matrix[n,m]");
  EXPECT_EQ(ErrorOf("gemv", {kScalar, Matrix(kM, kN), Vector(kN), kScalar, Vector(kN)}),
            "gemv(a, A, x, b, y): y must be vector[m] because A is matrix[m,n], but it is vector[n]");
}

TEST(ResolveTest, DataTypesAgree) {
  Type f64 = Type::Vector(v1::F64, kN);
  EXPECT_EQ(Resolve("vadd", {f64, f64})->result, f64);
  EXPECT_EQ(Resolve("axpy", {kLiteral, f64, f64})->result, f64);
  EXPECT_EQ(ErrorOf("vadd", {Vector(kN), f64}),
            "vadd(x, y): y must be f32 because x is vector[n], but it is f64 vector[n]");
}

TEST(ResolveTest, SquareMatrices) {
  EXPECT_EQ(Resolve("symv", {kScalar, Matrix(kN, kN), Vector(kN)})->result, Vector(kN));
  EXPECT_EQ(ErrorOf("symv", {kScalar, Matrix(kM, kN), Vector(kN)}),
            "symv(a, A, x): A must be square, but it is matrix[m,n]");
  EXPECT_EQ(ErrorOf("mdet", {Element({3, 4})}), "mdet(A): A must be square, but it is MATRIX3x4");
}

TEST(ResolveTest, ElementsBindStaticParameters) {
  ResolvedCall call = Resolve("mmul", {Element({2, 3}), Element({3, 4})}).value();
  EXPECT_EQ(call.static_parameters, (StaticParameters{2, 3, 4}));
  EXPECT_EQ(call.result, Element({2, 4}));
  EXPECT_EQ(call.dimensions, (std::vector<ResolvedDimension>{{kElements, v1::PARALLEL}}));
  EXPECT_EQ(call.operand_maps, (std::vector<std::vector<int>>{{0}, {0}}));
  EXPECT_EQ(call.result_map, (std::vector<int>{0}));
  EXPECT_EQ(ErrorOf("mmul", {Element({2, 3}), Element({4, 4})}),
            "mmul(A, B): B must be MATRIX3x_ because A is MATRIX2x3, but it is MATRIX4x4");
  EXPECT_EQ(ErrorOf("mmul", {Matrix(kM, kN), Element({4, 4})}),
            "mmul(A, B): A must be an element MATRIX, but it is matrix[m,n]");
  EXPECT_EQ(ErrorOf("vecross", {Element({3}), Element({4})}),
            "vecross(u, v): v must be VECTOR3, but it is VECTOR4");
}

TEST(ResolveTest, ConstraintsOfStaticParameters) {
  EXPECT_TRUE(Resolve("minv", {Element({4, 4})}).ok());
  EXPECT_EQ(ErrorOf("minv", {Element({5, 5})}), "minv(A): needs n >= 2 && n <= 4, but n = 5");
  EXPECT_EQ(ErrorOf("mmul", {Element({33, 1}), Element({1, 1})}),
            "mmul(A, B): needs r <= 32 && k <= 32 && c <= 32, but r = 33, k = 1, c = 1");
}

TEST(ResolveTest, ScalarOperandOfElementFunctions) {
  EXPECT_EQ(Resolve("smmul", {Element({5, 5}), Element({})})->operand_maps,
            (std::vector<std::vector<int>>{{0}, {0}}));
  EXPECT_EQ(Resolve("smmul", {Element({5, 5}), kScalar})->operand_maps,
            (std::vector<std::vector<int>>{{0}, {}}));
  EXPECT_EQ(Resolve("smmul", {Element({5, 5}), kLiteral})->operand_maps,
            (std::vector<std::vector<int>>{{0}, {}}));
  EXPECT_EQ(ErrorOf("smmul", {Element({5, 5}), Vector(kN)}),
            "smmul(A, s): s must be scalar or SCALAR, but it is vector[n]");
}

TEST(ResolveTest, EntrywiseBroadcastsScalarsOnEitherSide) {
  for (const std::optional<Type>& scalar : Operands{kScalar, kLiteral}) {
    for (const Type& any : {Vector(kN), Matrix(kM, kN), Element({3, 3}), Element({}), kScalar}) {
      ASSERT_EQ(ErrorOf("add", {scalar, any}), "resolved to " + any.ToString());
      ASSERT_EQ(ErrorOf("add", {any, scalar}), "resolved to " + any.ToString());
      ASSERT_EQ(ErrorOf("scale", {scalar, any}), "resolved to " + any.ToString());
    }
  }
  ResolvedCall call = Resolve("sub", {kScalar, Matrix(kM, kN)}).value();
  EXPECT_EQ(call.operand_maps, (std::vector<std::vector<int>>{{}, {0, 1}}));
  EXPECT_EQ(call.result_map, (std::vector<int>{0, 1}));
  EXPECT_EQ(call.dimensions, (std::vector<ResolvedDimension>{{kM, v1::PARALLEL}, {kN, v1::PARALLEL}}));
}

TEST(ResolveTest, ScalarElementsBroadcastToElementsOnly) {
  ResolvedCall call = Resolve("mul", {Element({}), Element({3, 3})}).value();
  EXPECT_EQ(call.result, Element({3, 3}));
  EXPECT_EQ(call.operand_maps, (std::vector<std::vector<int>>{{0}, {0}}));
  EXPECT_EQ(call.dimensions, (std::vector<ResolvedDimension>{{kElements, v1::PARALLEL}}));
  EXPECT_EQ(Resolve("mul", {kScalar, Element({})})->result, Element({}));
  EXPECT_EQ(ErrorOf("scale", {Element({}), Vector(kN)}),
            "scale(s, x): s must be scalar because x is vector[n], but it is SCALAR");
  EXPECT_EQ(ErrorOf("exp", {kLiteral}), "exp(x): every operand is a literal; write the value itself");
}

TEST(ResolveTest, EntrywiseShapesMustAgree) {
  EXPECT_EQ(ErrorOf("add", {Vector(kN), Vector(kM)}),
            "add(x, y): y must be vector[n] because x is vector[n], but it is vector[m]");
  EXPECT_EQ(ErrorOf("add", {Element({3}), Element({4})}),
            "add(x, y): y must be VECTOR3 because x is VECTOR3, but it is VECTOR4");
  EXPECT_EQ(Resolve("fma", {Vector(kN), kLiteral, Vector(kN)})->result, Vector(kN));
  EXPECT_EQ(Resolve("fma", {kScalar, Vector(kN), kLiteral})->result, Vector(kN));
}

TEST(ResolveTest, SuffixesRepeatTheShape) {
  Operands square = {Element({5, 5}), Element({5, 5})}, other = {Element({2, 10}), Element({10, 3})};
  for (const char* suffix : {"", "55", "5,5", "5, 5", "5", "5,5,5"}) {
    EXPECT_TRUE(Resolve("mmul", square, suffix).ok()) << suffix;
  }
  for (const char* suffix : {"33", "3,3", "3", "555", "5,3", "x"}) {
    EXPECT_FALSE(Resolve("mmul", square, suffix).ok()) << suffix;
  }
  for (const char* suffix : {"210", "2,10", "2,10,3"})
    EXPECT_TRUE(Resolve("mmul", other, suffix).ok()) << suffix;
  EXPECT_EQ(ErrorOf("mmul", square, "33"),
            "mmul(A, B): the sizes \"33\" in the name do not fit: A is MATRIX5x5; write mmul or mmul55");
  EXPECT_TRUE(Resolve("venorm", {Element({3})}, "3").ok());
  EXPECT_TRUE(Resolve("mvmul", {Element({3, 3}), Element({3})}, "33").ok());
  EXPECT_TRUE(Resolve("smmul", {Element({5, 5}), Element({})}, "55").ok());
  EXPECT_TRUE(Resolve("scale", {Element({}), Element({5, 5})}, "55").ok());
  EXPECT_EQ(ErrorOf("gemv", {kScalar, Matrix(kM, kN), Vector(kN)}, "33"),
            "gemv(a, A, x): the sizes \"33\" in the name need a VECTORn or MATRIXrxc operand; write gemv");
}

}  // namespace
}  // namespace fusion
