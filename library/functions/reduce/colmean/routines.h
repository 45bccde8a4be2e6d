// y_j = (sum_i A_ij) / rows
template <class T>
FUSION_FN T colmean_term(T a) {
  return a;
}

template <class T>
FUSION_FN T colmean_finish(T acc, T extent) {
  return acc / extent;
}
