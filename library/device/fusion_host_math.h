// Exponentials, what is made of them, and quotients by one number, for hosts: without branches, tables or calls, so that compilers
// compute as many entries at once as a processor has lanes, and an entry has the same bits whether it was one of many or alone. At
// most 2 ulp; zeros, infinities and NaN as in C (annex F). deploy/dev/fit_host_math.py finds the coefficients.
#ifndef FUSION_HOST_MATH_H_
#define FUSION_HOST_MATH_H_
#if !FUSION_CUDA

template <class T>
struct fu_host;
template <>
struct fu_host<float> {
  typedef unsigned Bits;
  static constexpr int kDigits = 23;
  static constexpr Bits kOne = 0x3f800000, kRootHalf = 0x3f3504f3;  // bits of 1 and of sqrt(1/2)
  static constexpr float kTwoToDigits = 8388608.0f, kLeastNormal = 1.17549435e-38f, kInfinity = __builtin_huge_valf();
  static constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: the sum with a small number ends in that, rounded
  static constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr float kExpLeast = -104.0f, kExpMost = 89.0f;  // beyond these it is 0 and infinite
};
template <>
struct fu_host<double> {
  typedef unsigned long long Bits;
  static constexpr int kDigits = 52;
  static constexpr Bits kOne = 0x3ff0000000000000, kRootHalf = 0x3fe6a09e667f3bcd;
  static constexpr double kTwoToDigits = 4503599627370496.0, kLeastNormal = 2.2250738585072014e-308, kInfinity = __builtin_huge_val();
  static constexpr double kMagic = 6755399441055744.0;
  static constexpr double kLog2E = 1.4426950408889634, kLn2High = 0x1.62e42feep-1, kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kExpLeast = -746.0, kExpMost = 710.0;
};

FUSION_FN unsigned fu_bits(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
FUSION_FN unsigned long long fu_bits(double x) {
  unsigned long long bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
FUSION_FN float fu_of_bits(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
FUSION_FN double fu_of_bits(unsigned long long bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
// Returns `yes` or `no`, without a branch: of ?: compilers make paths of their own, and then do not compute many entries at once.
template <class T>
FUSION_FN T fu_select(bool which, T yes, T no) {
  const typename fu_host<T>::Bits mask = -(typename fu_host<T>::Bits)which;
  return fu_of_bits((fu_bits(yes) & mask) | (fu_bits(no) & ~mask));
}
// As fmin and fmax of C: of a number and a NaN the number. (The reductions MAX and MIN are different: there
// NaN wins.)
template <class T>
FUSION_FN T fu_min(T x, T y) {
  return fu_select((x <= y) | (y != y), x, y);
}
template <class T>
FUSION_FN T fu_max(T x, T y) {
  return fu_select((x >= y) | (y != y), x, y);
}
FUSION_FN float fu_with_sign(float x, float sign) { return __builtin_copysignf(x, sign); }
FUSION_FN double fu_with_sign(double x, double sign) { return __builtin_copysign(x, sign); }

// c[0] + c[1] x + c[2] x^2 ...
template <class T>
FUSION_FN T fu_polynomial(T, T c) {
  return c;
}
template <class T, class... C>
FUSION_FN T fu_polynomial(T x, T c, C... more) {
  return fu_fma(fu_polynomial(x, more...), x, c);
}
// (exp(r) - 1 - r) / r^2 for |r| <= log(2)
FUSION_FN float fu_exp_rest(float r) {
  return fu_polynomial(r, 0.5f, 0.166666746f, 0.0416665263f, 0.00833252445f, 0.00138937205f, 0.000201103307f, 2.44394923e-05f);
}
FUSION_FN double fu_exp_rest(double r) {
  return fu_polynomial(r, 0.5, 0.16666666666666652, 0.04166666666666727, 0.008333333333337883, 0.001388888888880385,
                       0.0001984126983584446, 2.480158735488357e-05, 2.7557322308233782e-06, 2.7557302899232493e-07,
                       2.505120265891981e-08, 2.087906001715029e-09, 1.6191662194750582e-10, 1.1378155003769079e-11);
}
// (2 atanh(s) / s - 2) / z for z = s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
FUSION_FN float fu_log_rest(float z) {
  return fu_polynomial(z, 0.666667819f, 0.399770796f, 0.298851997f);
}
FUSION_FN double fu_log_rest(double z) {
  return fu_polynomial(z, 0.666666666666674, 0.39999999999377966, 0.2857142875130475, 0.2222219758723991, 0.1818361899108024,
                       0.15312569851460783, 0.1481154014876517);
}
// (tanh(x) / x - 1) / z for z = x^2, |x| <= 0.625
FUSION_FN float fu_tanh_rest(float z) {
  return fu_polynomial(z, -0.333332837f, 0.133314937f, -0.0537436008f, 0.0206508134f, -0.00571720302f);
}
FUSION_FN double fu_tanh_rest(double z) {
  return fu_polynomial(z, -0.33333333333332876, 0.13333333333264916, -0.0539682539324823, 0.021869487601962608,
                       -0.008863221319215102, 0.0035919915702283846, -0.001454970473390292, 0.0005863524750515917,
                       -0.00022863322238845995, 7.72191572968608e-05, -1.6107534963182544e-05);
}
// erf(x) / x - 1 for z = x^2, |x| <= 1.0625
FUSION_FN float fu_erf_rest(float z) {
  return fu_polynomial(z, 0.128379166f, -0.37612617f, 0.11283458f, -0.0268480144f, 0.00517656002f, -0.000790133607f,
                       7.47951344e-05f);
}
FUSION_FN double fu_erf_rest(double z) {
  return fu_polynomial(z, 0.1283791670955126, -0.37612638903183754, 0.11283791670955104, -0.026866170645126294,
                       0.005223977625383172, -0.0008548327019241184, 0.00012055332787097945, -1.4925644239096571e-05,
                       1.6461980073589206e-06, -1.636376217706127e-07, 1.4784413972181934e-08, -1.2117840809263644e-09,
                       8.550032334679388e-11, -3.991669737364961e-12);
}
// erf(2.5 + u), -1.4375 <= u <= 1.42
FUSION_FN float fu_large_erf(float u) {
  return fu_polynomial(u, 0.999593019f, 0.00217823242f, -0.00544566242f, 0.00835106056f, -0.00862282794f, 0.00611207169f,
                       -0.00279684481f, 0.000555116043f, 0.000257658481f, -0.000266144139f, 8.19289053e-05f, 1.59409847e-05f,
                       -1.60359104e-05f, 7.81431254e-07f, 9.37540051e-07f);
}
// -log(1 - erf(2 + u)), the more exact the less u is: it begins at -0.9375
FUSION_FN double fu_erf_tail(double u) {
  return fu_polynomial(u, 5.364941264616637, 4.418160805994415, 0.9237508418237981, 0.016465118136968847,
                       -0.0035707563458636437, 0.0007323993848774328, -0.0001353093374407157, 2.070643527064189e-05,
                       -1.952183819736436e-06, -2.0364677795667515e-07, 1.731867699652312e-07, -5.779224856893016e-08,
                       1.3968252031989798e-08, -2.5444819575064818e-09, 2.655109054231167e-10, 4.6947802565577e-11,
                       -3.5800346770794904e-11, 8.958561276096179e-12, -8.637287667953503e-13);
}

// exp(x) = 2^k exp(r) 2^k with r = x - 2 k log(2). The last product may be below the normal numbers, where it is rounded.
template <class T>
FUSION_FN T fu_host_exp(T x) {
  typedef fu_host<T> H;
  const T shifted = fu_fma(x, T(0.5) * H::kLog2E, H::kMagic), k = fu_sub(shifted, H::kMagic);
  const T r = fu_fma(k, T(-2) * H::kLn2Low, fu_fma(k, T(-2) * H::kLn2High, x));
  const T power = fu_add(T(1), fu_fma(fu_mul(r, r), fu_exp_rest(r), r));
  const T scale = fu_of_bits((fu_bits(shifted) << H::kDigits) + H::kOne);  // the bits of kMagic itself are shifted out
  const T result = fu_mul(fu_mul(power, scale), scale);
  return fu_select(x < H::kExpLeast, T(0), fu_select(x > H::kExpMost, H::kInfinity, result));
}

// log(x) = k log(2) + log(1 + f) with 1 + f between sqrt(1/2) and sqrt(2), where log(1 + f) = 2 atanh(s), s = f / (2 + f).
template <class T>
FUSION_FN T fu_host_log(T x) {
  typedef fu_host<T> H;
  const bool tiny = x < H::kLeastNormal;
  const typename H::Bits bits = fu_bits(fu_select(tiny, fu_mul(x, H::kTwoToDigits), x)) + (H::kOne - H::kRootHalf);
  const typename H::Bits digits = ((typename H::Bits)1 << H::kDigits) - 1;
  const T bias = T((H::kOne >> H::kDigits)) + H::kTwoToDigits;
  const T exponent = fu_sub(fu_of_bits((bits >> H::kDigits) | fu_bits(H::kTwoToDigits)), bias);
  const T k = fu_select(tiny, fu_sub(exponent, T(H::kDigits)), exponent);
  const T f = fu_sub(fu_of_bits((bits & digits) + H::kRootHalf), T(1)), s = f / fu_add(T(2), f), z = fu_mul(s, s);
  const T half = fu_mul(fu_mul(T(0.5), f), f);
  const T low = fu_fma(s, fu_fma(z, fu_log_rest(z), half), fu_mul(k, H::kLn2Low));
  const T log = fu_fma(k, H::kLn2High, fu_sub(f, fu_sub(half, low)));
  const T other = fu_select(x == T(0), -H::kInfinity, T(__builtin_nan("")));
  return fu_select(x > T(0), fu_select(x < H::kInfinity, log, x), other);
}

template <class T>
FUSION_FN T fu_host_tanh(T x) {
  const T a = fu_with_sign(x, T(1)), z = fu_mul(x, x);
  const T small = fu_fma(fu_mul(x, z), fu_tanh_rest(z), x);
  const T large = fu_sub(T(1), T(2) / fu_add(fu_host_exp(fu_add(a, a)), T(1)));
  return fu_with_sign(fu_select(a < T(0.625), small, large), x);  // that of a zero, too
}

// erf(a) for a >= 1.0625: in f32 a polynomial does, in f64 it would be too long.
FUSION_FN float fu_erf_from_middle(float a) {
  return fu_select(a > 3.92f, 1.0f, fu_large_erf(fu_sub(a, 2.5f)));
}
FUSION_FN double fu_erf_from_middle(double a) {
  return fu_select(a > 6.0, 1.0, fu_sub(1.0, fu_host_exp(-fu_erf_tail(fu_sub(a, 2.0)))));
}
template <class T>
FUSION_FN T fu_host_erf(T x) {
  const T a = fu_with_sign(x, T(1));
  const T small = fu_fma(x, fu_erf_rest(fu_mul(x, x)), x);
  return fu_with_sign(fu_select(a < T(1.0625), small, fu_erf_from_middle(a)), x);
}

// As on a GPU (fusion_math.h).
template <class T>
FUSION_FN T fu_host_div_by(T x, T y) {
  typedef fu_exponents<T> Exponents;
  const int scale = Exponents::kOne - Exponents::of(y) / Exponents::kUnit, half = scale >> 1;
  const T first = Exponents::power((half + Exponents::kOne) * Exponents::kUnit);
  const T second = Exponents::power((scale - half + Exponents::kOne) * Exponents::kUnit);
  return fu_mul(fu_mul(x, first), fu_mul(T(1) / fu_mul(fu_mul(y, first), second), second));
}

FUSION_FN float fu_div_by(float x, float y) { return fu_host_div_by(x, y); }
FUSION_FN double fu_div_by(double x, double y) { return fu_host_div_by(x, y); }
FUSION_FN float fu_exp(float x) { return fu_host_exp(x); }
FUSION_FN double fu_exp(double x) { return fu_host_exp(x); }
FUSION_FN float fu_log(float x) { return fu_host_log(x); }
FUSION_FN double fu_log(double x) { return fu_host_log(x); }
FUSION_FN float fu_tanh(float x) { return fu_host_tanh(x); }
FUSION_FN double fu_tanh(double x) { return fu_host_tanh(x); }
FUSION_FN float fu_erf(float x) { return fu_host_erf(x); }
FUSION_FN double fu_erf(double x) { return fu_host_erf(x); }

#endif  // !FUSION_CUDA
#endif  // FUSION_HOST_MATH_H_
