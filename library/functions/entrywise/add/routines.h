// z = x + y
template <class T>
FUSION_FN T add_map(T x, T y) {
  return fu_add(x, y);
}
