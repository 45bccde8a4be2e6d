// Mathematics for the routines of elementary functions, for float and double, and products by tensor cores. Included by
// fusion_device.h, which includes <cmath> on the host. Accuracy is that of the CUDA or C library: at most 2 ulp for f32 and
// f64, except where said; results for zeros, infinities and NaN are those of C (ISO/IEC 9899, annex F).
#ifndef FUSION_MATH_H_
#define FUSION_MATH_H_

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
  return x * first * (1.0f / (y * first * second) * second);
}
FUSION_FN double fu_div_by(double x, double y) {
  const long long scale = 1023 - (__double_as_longlong(y) >> 52 & 2047), half = scale >> 1;
  const double first = __longlong_as_double((half + 1023) << 52), second = __longlong_as_double((scale - half + 1023) << 52);
  return x * first * (1.0 / (y * first * second) * second);
}
#else
FUSION_FN float fu_div_by(float x, float y) { return x / y; }
FUSION_FN double fu_div_by(double x, double y) { return x / y; }
#endif

// 1 / sqrt(x)
#if FUSION_CUDA
FUSION_FN float fu_rsqrt(float x) { return rsqrtf(x); }
FUSION_FN double fu_rsqrt(double x) { return rsqrt(x); }
#else
FUSION_FN float fu_rsqrt(float x) { return 1.0f / sqrtf(x); }
FUSION_FN double fu_rsqrt(double x) { return 1.0 / sqrt(x); }
#endif

FUSION_FN float fu_exp(float x) { return expf(x); }
FUSION_FN double fu_exp(double x) { return exp(x); }

FUSION_FN float fu_log(float x) { return logf(x); }
FUSION_FN double fu_log(double x) { return log(x); }

FUSION_FN float fu_tanh(float x) { return tanhf(x); }
FUSION_FN double fu_tanh(double x) { return tanh(x); }

FUSION_FN float fu_erf(float x) { return erff(x); }
FUSION_FN double fu_erf(double x) { return erf(x); }

FUSION_FN float fu_abs(float x) { return fabsf(x); }
FUSION_FN double fu_abs(double x) { return fabs(x); }

// As fmin and fmax of C: of a number and a NaN the number. (The reductions MAX and MIN are different: there
// NaN wins.)
FUSION_FN float fu_min(float x, float y) { return fminf(x, y); }
FUSION_FN double fu_min(double x, double y) { return fmin(x, y); }
FUSION_FN float fu_max(float x, float y) { return fmaxf(x, y); }
FUSION_FN double fu_max(double x, double y) { return fmax(x, y); }

// x * y + z, rounded once where the hardware does that, else twice.
#if FUSION_CUDA
FUSION_FN float fu_fma(float x, float y, float z) { return fmaf(x, y, z); }
FUSION_FN double fu_fma(double x, double y, double z) { return fma(x, y, z); }
#elif defined(__FMA__)
FUSION_FN float fu_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
FUSION_FN double fu_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
#else
FUSION_FN float fu_fma(float x, float y, float z) { return x * y + z; }
FUSION_FN double fu_fma(double x, double y, double z) { return x * y + z; }
#endif

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
