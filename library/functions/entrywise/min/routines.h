// z = min(x, y)
template <class T>
FUSION_FN T min_map(T x, T y) {
  return fu_min(x, y);
}
