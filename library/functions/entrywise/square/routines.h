// y = x * x
template <class T>
FUSION_FN T square_map(T x) {
  return fu_mul(x, x);
}
