// y = a * x
template <class T>
FUSION_FN T scal_map(T a, T x) {
  return fu_mul(a, x);
}
