// y = max(x, 0), written so that NaN stays NaN.
template <class T>
FUSION_FN T relu_map(T x) {
  return fu_select(x < T(0), T(0), x);
}
