// y = x * x
template <class T>
FUSION_FN T square_map(T x) {
  return x * x;
}
