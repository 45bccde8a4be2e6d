// y_i = sqrt(sum_j A_ij^2)
template <class T>
FUSION_FN fu_product<T> rownrm2_term(T a) {
  return {a, a};
}

template <class T>
FUSION_FN T rownrm2_finish(T acc, T extent) {
  return fu_sqrt(acc);
}
