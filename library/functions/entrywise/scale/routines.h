// y = s * x
template <class T>
FUSION_FN T scale_map(T s, T x) {
  return fu_mul(s, x);
}
