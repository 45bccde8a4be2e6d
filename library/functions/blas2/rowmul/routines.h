// B_ij = A_ij * v_i
template <class T>
FUSION_FN T rowmul_map(T a, T v) {
  return fu_mul(a, v);
}
