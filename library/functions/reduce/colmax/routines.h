// y_j = max_i A_ij
template <class T>
FUSION_FN T colmax_term(T a) {
  return a;
}
