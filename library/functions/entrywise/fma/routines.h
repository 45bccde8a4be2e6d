// r = x * y + z
template <class T>
FUSION_FN T fma_map(T x, T y, T z) {
  return fu_fma(x, y, z);
}
