// z = x * y
template <class T>
FUSION_FN T mul_map(T x, T y) {
  return fu_mul(x, y);
}
