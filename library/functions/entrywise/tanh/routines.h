// y = tanh(x)
template <class T>
FUSION_FN T tanh_map(T x) {
  return fu_tanh(x);
}
