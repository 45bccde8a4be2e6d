#include "tests/reference/reference_kernels.h"

#include <cmath>
#include <limits>

namespace fusion::testing {
namespace {

using M = ReferenceMatrix;
using Operands = std::vector<M>;
using Scalar = long double;
constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();
constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();

bool IsScalar(const M& a) { return a.rows() == 1 && a.cols() == 1; }
bool IsVector(const M& a) { return a.cols() == 1; }
bool SameShape(const M& a, const M& b) { return a.rows() == b.rows() && a.cols() == b.cols(); }
M Absolute(const M& a) { return a.cwiseAbs(); }
ReferenceResult Exact(const M& value) { return {value, Absolute(value)}; }
ReferenceResult ExactScalar(Scalar value) { return Exact(M::Constant(1, 1, value)); }

// ---- Entry by entry ----

// Operands of one shape, or scalars. `magnitude` gets absolute values; by default the rounding error is
// relative to the value itself.
template <class F, class G>
ReferenceKernel Entrywise(int operands, F value, G magnitude) {
  auto shape_of = [](const Operands& o) -> const M& {
    for (const M& m : o) {
      if (!IsScalar(m)) return m;
    }
    return o[0];
  };
  ReferenceKernel kernel{.minimum_operands = operands, .maximum_operands = operands};
  kernel.fits = [shape_of](const Operands& o) {
    for (const M& m : o) {
      if (!IsScalar(m) && !SameShape(m, shape_of(o))) return false;
    }
    return true;
  };
  kernel.compute = [=](const Operands& o) {
    const M& shape = shape_of(o);
    ReferenceResult result{M(shape.rows(), shape.cols()), M(shape.rows(), shape.cols())};
    for (Eigen::Index e = 0; e < shape.size(); ++e) {
      std::vector<Scalar> x, absolute;
      for (const M& m : o) x.push_back(IsScalar(m) ? m(0, 0) : m.data()[e]);
      for (Scalar entry : x) absolute.push_back(std::abs(entry));
      result.value.data()[e] = value(x);
      result.magnitude.data()[e] = magnitude(absolute, result.value.data()[e]);
    }
    return result;
  };
  return kernel;
}

using Entries = const std::vector<Scalar>&;
template <class F>
ReferenceKernel Entrywise(int operands, F value) {
  return Entrywise(operands, value, [](Entries, Scalar result) { return std::abs(result); });
}
ReferenceKernel Sum2(Scalar sign) {
  return Entrywise(
      2, [sign](Entries x) { return x[0] + sign * x[1]; }, [](Entries a, Scalar) { return a[0] + a[1]; });
}
Scalar Smaller(Scalar x, Scalar y) { return std::isnan(x) ? y : std::isnan(y) ? x : y < x ? y : x; }

// ---- Reductions ----

// Largest (sign 1) or smallest (sign -1) of `count` entries; NaN wins.
template <class F>
Scalar Extreme(Eigen::Index count, Scalar sign, F entry) {
  Scalar best = -sign * kInfinity;
  for (Eigen::Index i = 0; i < count; ++i) {
    if (std::isnan(entry(i))) return kNan;
    if (sign * entry(i) > sign * best) best = entry(i);
  }
  return best;
}

ReferenceKernel VectorReduction(int operands, std::function<ReferenceResult(const Operands&)> compute) {
  return {.rank = 0,
          .minimum_operands = operands,
          .maximum_operands = operands,
          .compute = std::move(compute),
          .fits = [](const Operands& o) {
            for (const M& m : o) {
              if (!IsVector(m) || m.rows() != o[0].rows()) return false;
            }
            return true;
          }};
}

// One number for each row of A, or (columns) of A'.
template <class F>
ReferenceKernel LineReduction(bool columns, F of_line) {
  return {.rank = 1,
          .compute =
              [=](const Operands& o) {
                M a = columns ? M(o[0].transpose()) : o[0];
                ReferenceResult result{M(a.rows(), 1), M(a.rows(), 1)};
                for (Eigen::Index i = 0; i < a.rows(); ++i) {
                  M line = a.row(i);
                  result.value(i, 0) = of_line(line);
                  result.magnitude(i, 0) = of_line(Absolute(line));
                }
                return result;
              },
          .fits = [](const Operands&) { return true; }};
}

// ---- Matrices and vectors ----

// a * op(A) * x, or a * op(A) * x + b * y
ReferenceKernel MatrixVector(bool transposed, bool square) {
  auto matrix = [=](const Operands& o) { return transposed ? M(o[1].transpose()) : o[1]; };
  return {.rank = 1,
          .minimum_operands = 3,
          .maximum_operands = 5,
          .compute =
              [=](const Operands& o) {
                // As BLAS has it: nothing of A and x where a is 0, and nothing of y where b is 0.
                M a = matrix(o);
                ReferenceResult r{M::Zero(a.rows(), 1), M::Zero(a.rows(), 1)};
                if (o[0](0, 0) != 0)
                  r = {o[0](0, 0) * (a * o[2]), std::abs(o[0](0, 0)) * (Absolute(a) * Absolute(o[2]))};
                if (o.size() == 5 && o[3](0, 0) != 0) {
                  r.value += o[3](0, 0) * o[4];
                  r.magnitude += std::abs(o[3](0, 0)) * Absolute(o[4]);
                }
                return r;
              },
          .fits =
              [=](const Operands& o) {
                M a = matrix(o);
                bool fits = o.size() != 4 && IsScalar(o[0]) && IsVector(o[2]) && a.cols() == o[2].rows();
                if (fits && o.size() == 5) fits = IsScalar(o[3]) && IsVector(o[4]) && o[4].rows() == a.rows();
                return fits && (!square || a.rows() == a.cols());
              }};
}

// A combined with a vector along its rows (v[i] with row i) or columns.
template <class F>
ReferenceKernel LineMap(bool columns, F combine, bool sum) {
  return {.rank = 2,
          .minimum_operands = 2,
          .maximum_operands = 2,
          .compute =
              [=](const Operands& o) {
                ReferenceResult r{o[0], o[0]};
                for (Eigen::Index i = 0; i < o[0].rows(); ++i) {
                  for (Eigen::Index j = 0; j < o[0].cols(); ++j) {
                    Scalar a = o[0](i, j), v = o[1](columns ? j : i, 0);
                    r.value(i, j) = combine(a, v);
                    r.magnitude(i, j) = sum ? std::abs(a) + std::abs(v) : std::abs(combine(a, v));
                  }
                }
                return r;
              },
          .fits =
              [=](const Operands& o) {
                return IsVector(o[1]) && o[1].rows() == (columns ? o[0].cols() : o[0].rows());
              }};
}

// A function of one matrix or of two, given by an expression over values; `magnitude` over absolute values.
template <class F, class G, class H>
ReferenceKernel Dense(int rank, int operands, F value, G magnitude, H fits) {
  return {.rank = rank,
          .minimum_operands = operands,
          .maximum_operands = operands,
          .compute =
              [=](const Operands& o) {
                Operands absolute;
                for (const M& m : o) absolute.push_back(Absolute(m));
                return ReferenceResult{value(o), magnitude(absolute)};
              },
          .fits = fits};
}
template <class F, class H>
ReferenceKernel Dense(int rank, int operands, F value,
                      H fits) {  // no subtraction: the formula is its own magnitude
  return Dense(rank, operands, value, value, fits);
}

bool Square(const Operands& o) { return o[0].rows() == o[0].cols(); }
bool Same(const Operands& o) { return SameShape(o[0], o[1]); }
bool SameVectors(const Operands& o) { return Same(o) && IsVector(o[0]); }
bool WithScalar(const Operands& o) { return IsScalar(o[1]); }
M One(Scalar value) { return M::Constant(1, 1, value); }

M Cross(const Operands& o, Scalar sign) {
  M w(3, 1);
  for (int i = 0; i < 3; ++i) {
    int p = (i + 1) % 3, q = (i + 2) % 3;
    w(i, 0) = o[0](p, 0) * o[1](q, 0) - sign * o[0](q, 0) * o[1](p, 0);
  }
  return w;
}

// The determinant by Laplace expansion along the first row with every term positive: the permanent of |A|.
Scalar Permanent(const M& a) {
  if (a.rows() == 1) return a(0, 0);
  Scalar sum = 0;
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    M rest(a.rows() - 1, a.cols() - 1);
    rest << a.block(1, 0, a.rows() - 1, j), a.block(1, j + 1, a.rows() - 1, a.cols() - j - 1);
    sum += a(0, j) * Permanent(rest);
  }
  return sum;
}

// ---- The table ----

void AddEntrywise(std::map<std::string, ReferenceKernel>* table) {
  auto unary = [&](const std::string& name, Scalar (*f)(Scalar)) {
    (*table)[name] = Entrywise(1, [f](Entries x) { return f(x[0]); });
  };
  (*table)["add"] = Sum2(1);
  (*table)["sub"] = Sum2(-1);
  (*table)["mul"] = Entrywise(2, [](Entries x) { return x[0] * x[1]; });
  (*table)["div"] = Entrywise(2, [](Entries x) { return x[0] / x[1]; });
  (*table)["min"] = Entrywise(2, [](Entries x) { return Smaller(x[0], x[1]); });
  (*table)["max"] = Entrywise(2, [](Entries x) { return -Smaller(-x[0], -x[1]); });
  (*table)["scale"] = Entrywise(2, [](Entries x) { return x[0] * x[1]; });
  (*table)["shift"] = Sum2(1);
  (*table)["fma"] = Entrywise(
      3, [](Entries x) { return x[0] * x[1] + x[2]; }, [](Entries a, Scalar) { return a[0] * a[1] + a[2]; });
  unary("neg", [](Scalar x) { return -x; });
  unary("abs", [](Scalar x) { return std::abs(x); });
  unary("sqrt", [](Scalar x) { return std::sqrt(x); });
  unary("rsqrt", [](Scalar x) { return 1 / std::sqrt(x); });
  unary("square", [](Scalar x) { return x * x; });
  unary("recip", [](Scalar x) { return 1 / x; });
  unary("exp", [](Scalar x) { return std::exp(x); });
  unary("log", [](Scalar x) { return std::log(x); });
  unary("tanh", [](Scalar x) { return std::tanh(x); });
  unary("erf", [](Scalar x) { return std::erf(x); });
  unary("sigmoid", [](Scalar x) { return 1 / (1 + std::exp(-x)); });
  unary("sin", [](Scalar x) { return std::sin(x); });
  unary("cos", [](Scalar x) { return std::cos(x); });
  unary("silu", [](Scalar x) { return x / (1 + std::exp(-x)); });
  // The sum of 1 and a number near -1 is rounded as 1 is.
  (*table)["gelu"] = Entrywise(
      1, [](Entries x) { return x[0] / 2 * (1 + std::erf(x[0] / std::sqrt(Scalar{2}))); },
      [](Entries a, Scalar) { return a[0]; });
  (*table)["pow"] = Entrywise(2, [](Entries x) { return std::pow(x[0], x[1]); });
  (*table)["lt"] = Entrywise(2, [](Entries x) -> Scalar { return x[0] < x[1]; });
  (*table)["le"] = Entrywise(2, [](Entries x) -> Scalar { return x[0] <= x[1]; });
  (*table)["gt"] = Entrywise(2, [](Entries x) -> Scalar { return x[0] > x[1]; });
  (*table)["ge"] = Entrywise(2, [](Entries x) -> Scalar { return x[0] >= x[1]; });
  (*table)["eq"] = Entrywise(2, [](Entries x) -> Scalar { return x[0] == x[1]; });
  (*table)["clamp"] = Entrywise(3, [](Entries x) { return x[0] < x[1] ? x[1] : x[0] > x[2] ? x[2] : x[0]; });
  (*table)["where"] = Entrywise(3, [](Entries x) { return x[0] != 0 ? x[1] : x[2]; });
  unary("relu", [](Scalar x) { return std::isnan(x) ? x : x > 0 ? x : Scalar{0}; });
}

void AddVectors(std::map<std::string, ReferenceKernel>* table) {
  (*table)["scal"] = (*table)["scale"];
  (*table)["vadd"] = (*table)["add"];
  (*table)["vsub"] = (*table)["sub"];
  (*table)["vmul"] = (*table)["mul"];
  (*table)["vdiv"] = (*table)["div"];
  // Nothing of a vector whose factor is 0, as in BLAS.
  const auto scaled = [](Scalar factor, Scalar x) { return factor == 0 ? Scalar{0} : factor * x; };
  (*table)["axpy"] = Entrywise(
      3, [=](Entries x) { return scaled(x[0], x[1]) + x[2]; },
      [=](Entries a, Scalar) { return scaled(a[0], a[1]) + a[2]; });
  (*table)["axpby"] = Entrywise(
      4, [=](Entries x) { return scaled(x[0], x[1]) + scaled(x[2], x[3]); },
      [=](Entries a, Scalar) { return scaled(a[0], a[1]) + scaled(a[2], a[3]); });
  (*table)["dot"] = VectorReduction(2, [](const Operands& o) {
    return ReferenceResult{One(o[0].cwiseProduct(o[1]).sum()),
                           One(Absolute(o[0]).cwiseProduct(Absolute(o[1])).sum())};
  });
  (*table)["nrm2"] = VectorReduction(1, [](const Operands& o) { return ExactScalar(o[0].norm()); });
  (*table)["asum"] = VectorReduction(1, [](const Operands& o) { return ExactScalar(Absolute(o[0]).sum()); });
  (*table)["sum"] = VectorReduction(1, [](const Operands& o) {
    return ReferenceResult{One(o[0].sum()), One(Absolute(o[0]).sum())};
  });
  for (Scalar sign : {1, -1}) {
    (*table)[sign > 0 ? "vmax" : "vmin"] = VectorReduction(1, [sign](const Operands& o) {
      return ExactScalar(Extreme(o[0].rows(), sign, [&](Eigen::Index i) { return o[0](i, 0); }));
    });
  }
  (*table)["argmax"] = VectorReduction(1, [](const Operands& o) {
    Eigen::Index best = -1;
    for (Eigen::Index i = 0; i < o[0].rows(); ++i) {
      if (std::isnan(o[0](i, 0))) return ExactScalar(i);
      if (best < 0 || o[0](i, 0) > o[0](best, 0)) best = i;
    }
    return ExactScalar(best);
  });
}

void AddMatrices(std::map<std::string, ReferenceKernel>* table) {
  (*table)["gemv"] = MatrixVector(/*transposed=*/false, /*square=*/false);
  (*table)["gemtv"] = MatrixVector(/*transposed=*/true, /*square=*/false);
  (*table)["symv"] = MatrixVector(/*transposed=*/false, /*square=*/true);
  (*table)["ger"] = Dense(
      2, 3, [](const Operands& o) -> M { return o[0] + o[1] * o[2].transpose(); },
      [](const Operands& o) {
        return o[0].rows() == o[1].rows() && o[0].cols() == o[2].rows() && IsVector(o[1]);
      });
  for (bool columns : {false, true}) {
    std::string side = columns ? "col" : "row";
    (*table)[side + "add"] = LineMap(
        columns, [](Scalar a, Scalar v) { return a + v; }, /*sum=*/true);
    (*table)[side + "sub"] = LineMap(
        columns, [](Scalar a, Scalar v) { return a - v; }, /*sum=*/true);
    (*table)[side + "mul"] = LineMap(
        columns, [](Scalar a, Scalar v) { return a * v; }, /*sum=*/false);
    (*table)[side + "div"] = LineMap(
        columns, [](Scalar a, Scalar v) { return a / v; }, /*sum=*/false);
    (*table)[side + "sum"] = LineReduction(columns, [](const M& line) { return line.sum(); });
    (*table)[side + "nrm2"] = LineReduction(columns, [](const M& line) { return line.norm(); });
    (*table)[side + "mean"] =
        LineReduction(columns, [](const M& line) { return line.sum() / static_cast<Scalar>(line.cols()); });
    for (Scalar sign : {1, -1}) {
      (*table)[side + (sign > 0 ? "max" : "min")] = LineReduction(columns, [sign](const M& line) {
        return Extreme(line.cols(), sign, [&](Eigen::Index j) { return line(0, j); });
      });
    }
  }
}

void AddElements(std::map<std::string, ReferenceKernel>* table) {
  (*table)["mmul"] = Dense(
      2, 2, [](const Operands& o) -> M { return o[0] * o[1]; },
      [](const Operands& o) { return o[0].cols() == o[1].rows(); });
  (*table)["mtmul"] = Dense(
      2, 2, [](const Operands& o) -> M { return o[0].transpose() * o[1]; },
      [](const Operands& o) { return o[0].rows() == o[1].rows(); });
  (*table)["mmult"] = Dense(
      2, 2, [](const Operands& o) -> M { return o[0] * o[1].transpose(); },
      [](const Operands& o) { return o[0].cols() == o[1].cols(); });
  auto sum = [](const Operands& o) -> M { return o[0] + o[1]; };
  auto difference = [](const Operands& o) -> M { return o[0] - o[1]; };
  (*table)["madd"] = Dense(2, 2, sum, Same);
  (*table)["msub"] = Dense(2, 2, difference, sum, Same);
  (*table)["veadd"] = Dense(1, 2, sum, SameVectors);
  (*table)["vesub"] = Dense(1, 2, difference, sum, SameVectors);
  auto scaled = [](const Operands& o) -> M { return o[1](0, 0) * o[0]; };
  (*table)["smmul"] = Dense(2, 2, scaled, WithScalar);
  (*table)["svemul"] = Dense(1, 2, scaled, WithScalar);
  (*table)["mtrans"] = Dense(
      2, 1, [](const Operands& o) -> M { return o[0].transpose(); }, [](const Operands&) { return true; });
  (*table)["mtrace"] = Dense(
      0, 1, [](const Operands& o) { return One(o[0].trace()); }, Square);
  (*table)["mdet"] = Dense(
      0, 1, [](const Operands& o) { return One(o[0].determinant()); },
      [](const Operands& o) { return One(Permanent(o[0])); }, Square);
  (*table)["maddi"] = Dense(
      2, 2, [](const Operands& o) -> M { return o[0] + o[1](0, 0) * M::Identity(o[0].rows(), o[0].cols()); },
      [](const Operands& o) { return Square(o) && WithScalar(o); });
  (*table)["mvmul"] = Dense(
      1, 2, [](const Operands& o) -> M { return o[0] * o[1]; },
      [](const Operands& o) { return o[0].cols() == o[1].rows() && IsVector(o[1]); });
  (*table)["mtvmul"] = Dense(
      1, 2, [](const Operands& o) -> M { return o[0].transpose() * o[1]; },
      [](const Operands& o) { return o[0].rows() == o[1].rows() && IsVector(o[1]); });
  (*table)["vedot"] = Dense(
      0, 2, [](const Operands& o) { return One(o[0].cwiseProduct(o[1]).sum()); }, SameVectors);
  (*table)["venorm"] = Dense(
      0, 1, [](const Operands& o) { return One(o[0].norm()); },
      [](const Operands& o) { return IsVector(o[0]); });
  (*table)["vecross"] = Dense(
      1, 2, [](const Operands& o) { return Cross(o, 1); }, [](const Operands& o) { return Cross(o, -1); },
      [](const Operands& o) { return SameVectors(o) && o[0].rows() == 3; });
  (*table)["veouter"] = Dense(
      2, 2, [](const Operands& o) -> M { return o[0] * o[1].transpose(); },
      [](const Operands& o) { return IsVector(o[0]) && IsVector(o[1]); });
  // An error in A grows by |A^-1| on either side (first order: d(A^-1) = -A^-1 dA A^-1).
  ReferenceKernel inverse{.rank = 2};
  inverse.compute = [](const Operands& o) {
    M value = o[0].fullPivLu().inverse();
    return ReferenceResult{value, Absolute(value) * Absolute(o[0]) * Absolute(value)};
  };
  inverse.fits = Square;
  (*table)["minv"] = inverse;
}

}  // namespace

const std::map<std::string, ReferenceKernel>& ReferenceKernels() {
  static const auto* kernels = [] {
    auto* table = new std::map<std::string, ReferenceKernel>;
    AddEntrywise(table);
    AddVectors(table);
    AddMatrices(table);
    AddElements(table);
    return table;
  }();
  return *kernels;
}

}  // namespace fusion::testing
