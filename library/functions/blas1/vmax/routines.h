// s = max_i x_i
template <class T>
FUSION_FN T vmax_term(T x) {
  return x;
}
