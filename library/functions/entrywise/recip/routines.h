// y = 1 / x
template <class T>
FUSION_FN T recip_map(T x) {
  return T(1) / x;
}
