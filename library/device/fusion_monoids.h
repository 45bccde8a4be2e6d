// Monoids of reductions. Included by fusion_device.h.
#ifndef FUSION_MONOIDS_H_
#define FUSION_MONOIDS_H_

template <class T>
FUSION_FN T fu_infinity() {
#if FUSION_CUDA
  return (T)__longlong_as_double(0x7ff0000000000000LL);
#else
  return (T)__builtin_inf();
#endif
}

// A term x * y of a sum, which is rounded together with the sum (fu_fma).
template <class T>
struct fu_product {
  T x, y;
};

// Each monoid: Acc, the partial result; lift(term, index); combine; value(acc).
template <class T>
struct fu_sum {
  typedef T Acc;
  static FUSION_FN Acc identity() { return T(0); }
  static FUSION_FN Acc lift(T term, fu_index) { return term; }
  static FUSION_FN fu_product<T> lift(fu_product<T> term, fu_index) { return term; }
  static FUSION_FN Acc combine(Acc a, Acc b) { return fu_add(a, b); }
  static FUSION_FN Acc combine(Acc a, fu_product<T> term) { return fu_fma(term.x, term.y, a); }
  static FUSION_FN T value(Acc a) { return a; }
};
template <class T>
struct fu_maximum {
  typedef T Acc;
  static FUSION_FN Acc identity() { return -fu_infinity<T>(); }
  static FUSION_FN Acc lift(T term, fu_index) { return term; }
  static FUSION_FN Acc combine(Acc a, Acc b) { return a < b || b != b ? b : a; }  // NaN wins
  static FUSION_FN T value(Acc a) { return a; }
};
template <class T>
struct fu_minimum {
  typedef T Acc;
  static FUSION_FN Acc identity() { return fu_infinity<T>(); }
  static FUSION_FN Acc lift(T term, fu_index) { return term; }
  static FUSION_FN Acc combine(Acc a, Acc b) { return b < a || b != b ? b : a; }
  static FUSION_FN T value(Acc a) { return a; }
};
// The index of the largest entry, of equal ones the first; -1 of nothing. The index is returned as T: exact up to 2^24
// entries in f32 and 2^53 in f64. A NaN counts as the largest.
template <class T>
struct fu_arg_max {
  struct Acc {
    T value;
    fu_index index;
  };
  static FUSION_FN Acc identity() { return Acc{-fu_infinity<T>(), -1}; }
  static FUSION_FN Acc lift(T term, fu_index index) { return Acc{term, index}; }
  static FUSION_FN bool before(Acc a, Acc b) {  // a wins over b
    if (a.index < 0 || b.index < 0) return b.index < 0;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan;
    if (a_nan || a.value == b.value) return a.index < b.index;
    return a.value > b.value;
  }
  static FUSION_FN Acc combine(Acc a, Acc b) { return before(a, b) ? a : b; }
  static FUSION_FN T value(Acc a) { return (T)a.index; }
};

// Combines any number of partial results. A sum of k numbers of one sign is off by up to k/2 roundings where each is added to
// the sum of those before: 3e-8 k in f32, and for equal numbers about that much. So f32 sums are short ones, of which the sum is kept here
// with twice the digits: in f64 on a host, as an unevaluated sum of two floats on a GPU, where few f64 units may be (D. Knuth's
// two-sum; S. Rump, T. Ogita, S. Oishi, Accurate floating-point summation, 2008).
template <class M>
struct fu_long {
  typename M::Acc whole = M::identity();
  FUSION_FN void add(typename M::Acc part) { whole = M::combine(whole, part); }
  FUSION_FN typename M::Acc value() const { return whole; }
};
template <>
struct fu_long<fu_sum<float>> {
#if !FUSION_WIDE
  float sum = 0, error = 0;  // of which the sum is; `sum` is that in f32
  FUSION_FN void add(float part) {
    const float next = fu_add(sum, part), added = fu_sub(next, sum);
    float lost = fu_add(fu_add(fu_sub(sum, fu_sub(next, added)), fu_sub(part, added)), error);
    lost = lost == lost ? lost : 0;  // NaN where `next` is infinite
    sum = fu_add(next, lost);
    error = fu_sub(lost, fu_sub(sum, next));
  }
  FUSION_FN float value() const { return sum; }
#else
  double sum = 0;
  FUSION_FN void add(float part) { sum += part; }
  FUSION_FN float value() const { return (float)sum; }
#endif
  FUSION_FN void add(fu_product<float> term) { add(fu_mul(term.x, term.y)); }
};

#endif  // FUSION_MONOIDS_H_
