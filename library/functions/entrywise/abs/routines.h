// y = |x|
template <class T>
FUSION_FN T abs_map(T x) {
  return fu_abs(x);
}
