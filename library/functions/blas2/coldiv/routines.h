// B_ij = A_ij / v_j
template <class T>
FUSION_FN T coldiv_map(T a, T v) {
  return fu_div(a, v);
}
