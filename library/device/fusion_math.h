// Mathematics for the routines of elementary functions, for float and double. Included by fusion_device.h,
// which includes <cmath> on the host. Accuracy is that of the CUDA or C library: at most 2 ulp for f32 and
// f64, except where said; results for zeros, infinities and NaN are those of C (ISO/IEC 9899, annex F).
#ifndef FUSION_MATH_H_
#define FUSION_MATH_H_

FUSION_FN float fu_sqrt(float x) { return sqrtf(x); }
FUSION_FN double fu_sqrt(double x) { return sqrt(x); }

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

#endif  // FUSION_MATH_H_
