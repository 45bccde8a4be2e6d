// B_ij = A_ij + v_j
template <class T>
FUSION_FN T coladd_map(T a, T v) {
  return fu_add(a, v);
}
