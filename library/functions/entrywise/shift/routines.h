// y = x + s
template <class T>
FUSION_FN T shift_map(T s, T x) {
  return fu_add(x, s);
}
