// The functions that hosts compute without branches, against those of the C library in extended precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "library/device/fusion_device.h"

namespace {

template <class T>
struct HostFunction {
  std::string name;
  T (*function)(T);
  long double (*exact)(long double);
  double low, high;  // where it is neither 0 nor infinite nor 1
};

template <class T>
std::vector<HostFunction<T>> HostFunctions() {
  const double exponents = sizeof(T) == 4 ? 90 : 711;
  return {
      {"exp", [](T x) { return fu_exp(x); }, [](long double x) { return std::exp(x); }, -1.07 * exponents,
       exponents},
      {"log", [](T x) { return fu_log(x); }, [](long double x) { return std::log(x); }, 0, 3},
      {"tanh", [](T x) { return fu_tanh(x); }, [](long double x) { return std::tanh(x); }, -3, 3},
      {"erf", [](T x) { return fu_erf(x); }, [](long double x) { return std::erf(x); }, -4, 4},
  };
}

// In units of the last place of `exact`; infinite where only one of them is NaN or infinite, or signs of
// zeros differ.
template <class T>
double ErrorOf(T value, long double exact) {
  typedef std::numeric_limits<T> Limits;
  const T rounded = static_cast<T>(exact);
  if (std::isnan(value) && std::isnan(rounded)) return 0;
  if (value == rounded) return std::signbit(value) == std::signbit(rounded) ? 0 : Limits::infinity();
  if (!std::isfinite(value) || !std::isfinite(rounded)) return Limits::infinity();
  int exponent = 0;
  std::frexp(exact, &exponent);
  return static_cast<double>(std::abs(value - exact) /
                             std::ldexp(1.0L, std::max(exponent, Limits::min_exponent) - Limits::digits));
}

template <class T>
class HostMathTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(HostMathTest, Types);

TYPED_TEST(HostMathTest, ErrsByAtMostTwoUnitsInTheLastPlace) {
  std::mt19937_64 random(1);
  for (const HostFunction<TypeParam>& tried : HostFunctions<TypeParam>()) {
    const auto check = [&](TypeParam x) {
      ASSERT_LE(ErrorOf(tried.function(x), tried.exact(x)), 2) << tried.name << " of " << x;
    };
    std::uniform_real_distribution<TypeParam> between(tried.low, tried.high);
    for (int i = 0; i < 300000; ++i) check(between(random));
    // Numbers of all sizes, subnormal ones and NaN among them.
    for (int i = 0; i < 300000; ++i) {
      const unsigned long long bits = random();
      TypeParam x;
      std::memcpy(&x, &bits, sizeof x);
      check(x);
    }
  }
}

TYPED_TEST(HostMathTest, ZerosInfinitiesAndNaNAreThoseOfC) {
  typedef std::numeric_limits<TypeParam> Limits;
  for (const HostFunction<TypeParam>& tried : HostFunctions<TypeParam>())
    for (const TypeParam size : {TypeParam(0), Limits::denorm_min(), Limits::min(), TypeParam(1),
                                 Limits::max(), Limits::infinity(), Limits::quiet_NaN()})
      for (const TypeParam x : {size, -size})
        EXPECT_LE(ErrorOf(tried.function(x), tried.exact(x)), 2) << tried.name << " of " << x;
}

TYPED_TEST(HostMathTest, QuotientsByOneNumberErrByAtMostTwoUnitsInTheLastPlace) {
  typedef std::numeric_limits<TypeParam> Limits;
  std::mt19937_64 random(3);
  const auto any = [&] {
    const unsigned long long bits = random();
    TypeParam x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  };
  const auto check = [](TypeParam x, TypeParam y) {
    ASSERT_LE(ErrorOf(fu_div_by(x, y), static_cast<long double>(x) / y), 2) << x << " / " << y;
  };
  for (int i = 0; i < 300000; ++i) check(any(), any());
  for (const TypeParam x : {TypeParam(0), Limits::denorm_min(), TypeParam(-1), Limits::max(),
                            Limits::infinity(), Limits::quiet_NaN()})
    for (const TypeParam y : {TypeParam(0), TypeParam(-0.0), -Limits::denorm_min(), TypeParam(3),
                              Limits::max(), -Limits::infinity(), Limits::quiet_NaN()})
      check(x, y);
}

// Compiled as kernels are: many entries at once, which this test is about, need these options.
#pragma GCC push_options
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno")
template <class T>
__attribute__((noinline)) void ComputeAll(const T* x, T* y, int count) {
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) y[i] = fu_erf(fu_tanh(fu_log(fu_exp(x[i]))));
}
#pragma GCC pop_options

// Kernels compute many entries at once, and the last ones one by one.
TYPED_TEST(HostMathTest, AnEntryIsTheSameAloneAndAmongMany) {
  constexpr int kCount = 1000;
  std::mt19937_64 random(2);
  std::uniform_real_distribution<TypeParam> between(-5, 5);
  std::vector<TypeParam> x(kCount), many(kCount);
  for (TypeParam& entry : x) entry = between(random);
  ComputeAll(x.data(), many.data(), kCount);
  for (int i = 0; i < kCount; ++i) {
    TypeParam alone = 0;
    ComputeAll(&x[i], &alone, 1);
    EXPECT_EQ(many[i], alone) << i;
  }
}

}  // namespace
