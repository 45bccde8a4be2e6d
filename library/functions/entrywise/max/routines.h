// z = max(x, y)
template <class T>
FUSION_FN T max_map(T x, T y) {
  return fu_max(x, y);
}
