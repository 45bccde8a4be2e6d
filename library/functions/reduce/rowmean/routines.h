// y_i = (sum_j A_ij) / columns
template <class T>
FUSION_FN T rowmean_term(T a) {
  return a;
}

template <class T>
FUSION_FN T rowmean_finish(T acc, T extent) {
  return acc / extent;
}
