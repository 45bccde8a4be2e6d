// z = a * x + y; y where a is 0, as in BLAS, whatever x is.
template <class T>
FUSION_FN T axpy_map(T a, T x, T y) {
  return fu_select(a == T(0), y, fu_fma(a, x, y));
}
