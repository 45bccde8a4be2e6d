// s = sum_i x_i * y_i
template <class T>
FUSION_FN fu_product<T> dot_term(T x, T y) {
  return {x, y};
}
