// y = erf(x)
template <class T>
FUSION_FN T erf_map(T x) {
  return fu_erf(x);
}
