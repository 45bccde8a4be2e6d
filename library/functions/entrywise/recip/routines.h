// y = 1 / x
template <class T>
FUSION_FN T recip_map(T x) {
  return fu_div(T(1), x);
}
