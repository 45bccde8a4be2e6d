// y_j = sqrt(sum_i A_ij^2)
template <class T>
FUSION_FN fu_product<T> colnrm2_term(T a) {
  return {a, a};
}

template <class T>
FUSION_FN T colnrm2_finish(T acc, T extent) {
  return fu_sqrt(acc);
}
