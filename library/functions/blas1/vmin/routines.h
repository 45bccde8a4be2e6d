// s = min_i x_i
template <class T>
FUSION_FN T vmin_term(T x) {
  return x;
}
