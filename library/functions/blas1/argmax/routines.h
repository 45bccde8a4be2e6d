// k = argmax_i x_i
template <class T>
FUSION_FN T argmax_term(T x) {
  return x;
}
