// Monoids of reductions. Included by fusion_device.h.
#ifndef FUSION_MONOIDS_H_
#define FUSION_MONOIDS_H_

template <class T>
FUSION_FN T fu_infinity() {
#if FUSION_CUDA
  return (T)__longlong_as_double(0x7ff0000000000000LL);
#else
  return std::numeric_limits<T>::infinity();
#endif
}

// Each monoid: Acc, the partial result; lift(term, index); combine; value(acc).
template <class T>
struct fu_sum {
  typedef T Acc;
  static FUSION_FN Acc identity() { return T(0); }
  static FUSION_FN Acc lift(T term, fu_index) { return term; }
  static FUSION_FN Acc combine(Acc a, Acc b) { return a + b; }
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

#endif  // FUSION_MONOIDS_H_
