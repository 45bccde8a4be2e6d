// s = sqrt(sum_i v_i^2)
template <class T, int n>
FUSION_FN void venorm_thread(const T* v, T* result) {
  T sum = v[0] * v[0];
  FUSION_UNROLL
  for (int i = 1; i < n; ++i) sum += v[i] * v[i];
  result[0] = fu_sqrt(sum);
}
