// Mathematics for the routines of elementary functions, for float and double, and products by tensor cores. Included by
// fusion_device.h, which includes <cmath> on the host. Accuracy is that of the CUDA library, or of the C library and fusion_host_math.h:
// at most 2 ulp for f32 and f64, except where said; results for zeros, infinities and NaN are those of C (ISO/IEC 9899, annex F).
#ifndef FUSION_MATH_H_
#define FUSION_MATH_H_

// Sums, differences and products that are rounded to T, each by itself: no compiler makes one multiply-add of two of them. The
// intrinsic functions of CUDA say so (CUDA C++ Programming Guide, intrinsic functions); on hosts GCC obeys the pragma of
// fusion_device.h, while clang forgets its own where it is told -ffp-contract=fast, so a product goes through its bits there.
#if FUSION_CUDA
FUSION_FN float fu_add(float x, float y) { return __fadd_rn(x, y); }
FUSION_FN double fu_add(double x, double y) { return __dadd_rn(x, y); }
FUSION_FN float fu_sub(float x, float y) { return __fsub_rn(x, y); }
FUSION_FN double fu_sub(double x, double y) { return __dsub_rn(x, y); }
FUSION_FN float fu_mul(float x, float y) { return __fmul_rn(x, y); }
FUSION_FN double fu_mul(double x, double y) { return __dmul_rn(x, y); }
#else
FUSION_FN float fu_add(float x, float y) { return x + y; }
FUSION_FN double fu_add(double x, double y) { return x + y; }
FUSION_FN float fu_sub(float x, float y) { return x - y; }
FUSION_FN double fu_sub(double x, double y) { return x - y; }
#if defined(__clang__)
__attribute__((weak)) long long fu_no_bits = 0;  // 0, which compilers do not know
template <class T, class B>
FUSION_FN T fu_rounded(T x, B bits) {
  std::memcpy(&bits, &x, sizeof x);
  bits |= (B)fu_no_bits;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
FUSION_FN float fu_mul(float x, float y) { return fu_rounded(x * y, 0); }
FUSION_FN double fu_mul(double x, double y) { return fu_rounded(x * y, 0LL); }
#else
FUSION_FN float fu_mul(float x, float y) { return x * y; }
FUSION_FN double fu_mul(double x, double y) { return x * y; }
#endif
#endif

// f32 on a GPU: not rounded correctly, but within 2 ulp (PTX ISA: div.full, sqrt.approx). The instructions are named, so
// that the options of the compiler that translates an exported kernel change nothing.
#if FUSION_CUDA
FUSION_FN float fu_div(float x, float y) {
  float quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(x), "f"(y));
  return quotient;
}
FUSION_FN float fu_sqrt(float x) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
#else
FUSION_FN float fu_div(float x, float y) { return x / y; }
FUSION_FN float fu_sqrt(float x) { return sqrtf(x); }
#endif
FUSION_FN double fu_div(double x, double y) { return x / y; }
FUSION_FN double fu_sqrt(double x) { return sqrt(x); }

// x / y within 2 ulp, where many x have one y: what y alone decides the compiler computes once, and two products are left
// for each x. y is scaled to [1, 2) before its reciprocal is taken, in two steps that neither overflow nor underflow.
#if FUSION_CUDA
FUSION_FN float fu_div_by(float x, float y) {
  const int scale = 127 - (int)(__float_as_uint(y) >> 23 & 255), half = scale >> 1;
  const float first = __int_as_float((half + 127) << 23), second = __int_as_float((scale - half + 127) << 23);
  return fu_mul(fu_mul(x, first), fu_mul(1.0f / fu_mul(fu_mul(y, first), second), second));
}
FUSION_FN double fu_div_by(double x, double y) {
  const long long scale = 1023 - (__double_as_longlong(y) >> 52 & 2047), half = scale >> 1;
  const double first = __longlong_as_double((half + 1023) << 52), second = __longlong_as_double((scale - half + 1023) << 52);
  return fu_mul(fu_mul(x, first), fu_mul(1.0 / fu_mul(fu_mul(y, first), second), second));
}
#endif

// 1 / sqrt(x)
#if FUSION_CUDA
FUSION_FN float fu_rsqrt(float x) { return rsqrtf(x); }
FUSION_FN double fu_rsqrt(double x) { return rsqrt(x); }
#else
FUSION_FN float fu_rsqrt(float x) { return 1.0f / sqrtf(x); }
FUSION_FN double fu_rsqrt(double x) { return 1.0 / sqrt(x); }
#endif

// Hosts have their own (fusion_host_math.h).
#if FUSION_CUDA
FUSION_FN float fu_exp(float x) { return expf(x); }
FUSION_FN double fu_exp(double x) { return exp(x); }
FUSION_FN float fu_log(float x) { return logf(x); }
FUSION_FN double fu_log(double x) { return log(x); }
FUSION_FN float fu_tanh(float x) { return tanhf(x); }
FUSION_FN double fu_tanh(double x) { return tanh(x); }
FUSION_FN float fu_erf(float x) { return erff(x); }
FUSION_FN double fu_erf(double x) { return erf(x); }
FUSION_FN float fu_min(float x, float y) { return fminf(x, y); }
FUSION_FN double fu_min(double x, double y) { return fmin(x, y); }
FUSION_FN float fu_max(float x, float y) { return fmaxf(x, y); }
FUSION_FN double fu_max(double x, double y) { return fmax(x, y); }
template <class T>
FUSION_FN T fu_select(bool which, T yes, T no) {
  return which ? yes : no;
}
#endif

FUSION_FN float fu_abs(float x) { return fabsf(x); }
FUSION_FN double fu_abs(double x) { return fabs(x); }

// x * y + z, rounded once where the hardware does that, else twice: for fma, and for what a routine itself adds up.
#if FUSION_CUDA
FUSION_FN float fu_fma(float x, float y, float z) { return __fmaf_rn(x, y, z); }
FUSION_FN double fu_fma(double x, double y, double z) { return __fma_rn(x, y, z); }
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
FUSION_FN float fu_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
FUSION_FN double fu_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
#else
FUSION_FN float fu_fma(float x, float y, float z) { return fu_add(fu_mul(x, y), z); }
FUSION_FN double fu_fma(double x, double y, double z) { return fu_add(fu_mul(x, y), z); }
#endif

// a * d - b * c within 2 ulp where fu_fma rounds once, however much cancels, and 0 where both products are the same number
// (W. Kahan; Jeannerod, Louvet, Muller, Further analysis of Kahan's algorithm, 2013). NaN of infinite products.
template <class T>
FUSION_FN T fu_cross(T a, T d, T b, T c) {
  const T product = fu_mul(b, c), error = fu_fma(-b, c, product);
  return fu_add(fu_fma(a, d, -product), error);
}

// The exponent of a number of T as it stands in its bits, or in the upper half of those: kUnit is an exponent of 1, and kOne * kUnit that
// of the number 1. 0 of 0 and of numbers below the normal ones.
template <class T>
struct fu_exponents;
template <>
struct fu_exponents<float> {
  static constexpr int kUnit = 1 << 23, kOne = 127;
  static FUSION_FN int of(float x) {
    int bits;
    memcpy(&bits, &x, sizeof x);
    return bits & 255 * kUnit;
  }
  static FUSION_FN float power(int exponent) {
    float x;
    memcpy(&x, &exponent, sizeof x);
    return x;
  }
};
template <>
struct fu_exponents<double> {
  static constexpr int kUnit = 1 << 20, kOne = 1023;
  static FUSION_FN int of(double x) {
    long long bits;
    memcpy(&bits, &x, sizeof x);
    return (int)(bits >> 32) & 2047 * kUnit;
  }
  static FUSION_FN double power(int exponent) {
    const long long bits = (long long)exponent << 32;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
  }
};
// x * 2^e by three products of which none leaves the range of T before the result does.
template <class T>
FUSION_FN T fu_scale(T x, int e) {
  typedef fu_exponents<T> Exponents;
  constexpr int kMost = 3 * (Exponents::kOne - 3);
  e = e < -kMost ? -kMost : e > kMost ? kMost : e;
  const int third = e / 3;
  const T power = Exponents::power((Exponents::kOne + third) * Exponents::kUnit);
  return fu_mul(fu_mul(fu_mul(x, Exponents::power((Exponents::kOne + e - 2 * third) * Exponents::kUnit)), power), power);
}
// What products of entries of T are computed in, if not all of them are in the range of T: those of eight floats are in that of f64.
template <class T>
struct fu_wide {
  typedef T Type;
};
#if FUSION_WIDE
template <>
struct fu_wide<float> {
  typedef double Type;
};
#endif
// An n x n matrix of which products of n entries, one of each row and column, neither overflow nor, unless it is nearly singular, underflow:
// a[i][j] * by(i, j). Where f64 is wide enough for that, it is a in f64. Else by(i, j) are powers of two, so that the largest
// entries of each row and each column are in [2, 4), or less where there are numbers below the normal ones. Exponents are compared before
// anything is scaled: what is small in its row may be large in its column.
template <class T, int n>
struct fu_equilibrated {
  typedef typename fu_wide<T>::Type Type;
  static constexpr bool kScaled = sizeof(Type) == sizeof(T);
  typedef fu_exponents<T> Exponents;
  Type entries[n * n];
  int row[n], column[n];  // by(i, j) = 2^-(row[i] + column[j] - kOne - 1), in units
  FUSION_FN explicit fu_equilibrated(const T* a) {
    if constexpr (kScaled) find(a);
    FUSION_UNROLL
    for (int i = 0; i < n; ++i) {
      FUSION_UNROLL
      for (int j = 0; j < n; ++j) entries[i * n + j] = fu_mul((Type)a[i * n + j], by(i, j));
    }
  }
  FUSION_FN Type by(int i, int j) const {
    if constexpr (kScaled)
      return Exponents::power((2 * Exponents::kOne + 1) * Exponents::kUnit - row[i] - column[j]);
    else
      return Type(1);
  }
  // The determinant of the matrix, of which that of `entries` is given.
  FUSION_FN T determinant(Type of_entries) const {
    if constexpr (!kScaled) return (T)of_entries;
    int exponent = -n * (Exponents::kOne + 1);
    FUSION_UNROLL
    for (int i = 0; i < n; ++i) exponent += row[i] / Exponents::kUnit + column[i] / Exponents::kUnit;
    return fu_scale((T)of_entries, exponent);
  }

 private:
  FUSION_FN void find(const T* a) {
    int exponents[n * n], least = 0;
    FUSION_UNROLL
    for (int e = 0; e < n * n; ++e) exponents[e] = Exponents::of(a[e]);
    FUSION_UNROLL
    for (int i = 0; i < n; ++i) {
      row[i] = Exponents::kUnit;
      FUSION_UNROLL
      for (int j = 0; j < n; ++j) row[i] = larger(row[i], exponents[i * n + j]);
      least = i == 0 || row[i] < least ? row[i] : least;
    }
    FUSION_UNROLL
    for (int j = 0; j < n; ++j) {
      column[j] = Exponents::kUnit - least;  // or a factor would be no number
      FUSION_UNROLL
      for (int i = 0; i < n; ++i) column[j] = larger(column[j], exponents[i * n + j] - row[i]);
    }
  }
  static FUSION_FN int larger(int a, int b) { return a < b ? b : a; }
};

// Whether fu_tensor_8x8x4 is there for T: f64 from sm_80 on.
template <class T>
FUSION_FN constexpr bool fu_has_tensor() {
#if FUSION_CUDA && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return sizeof(T) == 8;
#else
  return false;
#endif
}
// By all lanes of a warp: the 8 x 8 matrix `sum` += x * y with x of 8 x 4, y of 4 x 8. Lane 4 i + j holds x[i][j], y[j][i] and
// sum[i][2 j], sum[i][2 j + 1].
FUSION_FN void fu_tensor_8x8x4(double (&sum)[2], double x, double y) {
#if FUSION_CUDA && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(sum[0]), "+d"(sum[1])
               : "d"(x), "d"(y));
#else
  (void)sum, (void)x, (void)y;
#endif
}
FUSION_FN void fu_tensor_8x8x4(float (&)[2], float, float) {}

#endif  // FUSION_MATH_H_
