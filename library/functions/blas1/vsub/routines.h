// z = x - y
template <class T>
FUSION_FN T vsub_map(T x, T y) {
  return fu_sub(x, y);
}
