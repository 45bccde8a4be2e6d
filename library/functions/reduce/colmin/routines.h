// y_j = min_i A_ij
template <class T>
FUSION_FN T colmin_term(T a) {
  return a;
}
