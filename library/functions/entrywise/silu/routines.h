// y = x / (1 + exp(-x)). The exponential never overflows, so small results keep their relative accuracy.
template <class T>
FUSION_FN T silu_map(T x) {
  const T t = fu_exp(-fu_abs(x));
  return fu_div(fu_mul(x, x < T(0) ? t : T(1)), fu_add(T(1), t));
}
