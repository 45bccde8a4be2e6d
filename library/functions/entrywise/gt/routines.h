// z = x > y ? 1 : 0
template <class T>
FUSION_FN T gt_map(T x, T y) {
  return fu_select(x > y, T(1), T(0));
}
