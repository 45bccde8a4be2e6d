// y_i = sum_j A_ij
template <class T>
FUSION_FN T rowsum_term(T a) {
  return a;
}
