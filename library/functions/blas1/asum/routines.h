// s = sum_i |x_i|
template <class T>
FUSION_FN T asum_term(T x) {
  return fu_abs(x);
}
