// z = a * x + b * y; nothing of x where a is 0, nothing of y where b is.
template <class T>
FUSION_FN T axpby_map(T a, T x, T b, T y) {
  const T first = fu_select(a == T(0), T(0), fu_mul(a, x));
  return fu_select(b == T(0), first, fu_fma(b, y, first));
}
