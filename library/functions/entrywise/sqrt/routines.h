// y = sqrt(x)
template <class T>
FUSION_FN T sqrt_map(T x) {
  return fu_sqrt(x);
}
