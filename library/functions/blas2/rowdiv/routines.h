// B_ij = A_ij / v_i
template <class T>
FUSION_FN T rowdiv_map(T a, T v) {
  return fu_div_by(a, v);
}
