// z = x + y
template <class T>
FUSION_FN T vadd_map(T x, T y) {
  return fu_add(x, y);
}
