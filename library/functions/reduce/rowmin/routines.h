// y_i = min_j A_ij
template <class T>
FUSION_FN T rowmin_term(T a) {
  return a;
}
