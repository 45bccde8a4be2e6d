// y = log(x)
template <class T>
FUSION_FN T log_map(T x) {
  return fu_log(x);
}
