// y = x / 2 * (1 + erf(x / sqrt(2)))
template <class T>
FUSION_FN T gelu_map(T x) {
  return fu_mul(fu_mul(T(0.5), x), fu_add(T(1), fu_erf(fu_mul(x, T(0.70710678118654752440)))));
}
