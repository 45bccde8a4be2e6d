// s = sqrt(sum_i x_i^2)
template <class T>
FUSION_FN fu_product<T> nrm2_term(T x) {
  return {x, x};
}

template <class T>
FUSION_FN T nrm2_finish(T acc, T extent) {
  return fu_sqrt(acc);
}
