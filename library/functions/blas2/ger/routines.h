// B_ij = A_ij + u_i * v_j
template <class T>
FUSION_FN T ger_map(T a, T u, T v) {
  return fu_add(a, fu_mul(u, v));
}
