// z = condition != 0 ? x : y
template <class T>
FUSION_FN T where_map(T condition, T x, T y) {
  return fu_select(condition != T(0), x, y);
}
