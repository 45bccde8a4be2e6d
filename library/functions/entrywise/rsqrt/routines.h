// y = 1 / sqrt(x)
template <class T>
FUSION_FN T rsqrt_map(T x) {
  return fu_rsqrt(x);
}
