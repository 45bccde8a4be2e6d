// y_j = sum_i A_ij
template <class T>
FUSION_FN T colsum_term(T a) {
  return a;
}
