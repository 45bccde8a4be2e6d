// y = -x
template <class T>
FUSION_FN T neg_map(T x) {
  return -x;
}
