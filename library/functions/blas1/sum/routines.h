// s = sum_i x_i
template <class T>
FUSION_FN T sum_term(T x) {
  return x;
}
