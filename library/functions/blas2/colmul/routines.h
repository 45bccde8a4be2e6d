// B_ij = A_ij * v_j
template <class T>
FUSION_FN T colmul_map(T a, T v) {
  return fu_mul(a, v);
}
