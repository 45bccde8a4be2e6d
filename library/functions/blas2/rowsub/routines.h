// B_ij = A_ij - v_i
template <class T>
FUSION_FN T rowsub_map(T a, T v) {
  return fu_sub(a, v);
}
