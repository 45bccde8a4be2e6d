// y = exp(x)
template <class T>
FUSION_FN T exp_map(T x) {
  return fu_exp(x);
}
