// y_i = max_j A_ij
template <class T>
FUSION_FN T rowmax_term(T a) {
  return a;
}
