// z = x / y
template <class T>
FUSION_FN T div_map(T x, T y) {
  return fu_div(x, y);
}
