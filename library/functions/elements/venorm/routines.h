// s = sqrt(sum_i v_i^2)
template <class T, int n>
FUSION_FN void venorm_thread(const T* v, T* result) {
  T sum = fu_mul(v[0], v[0]);
  FUSION_UNROLL
  for (int i = 1; i < n; ++i) sum = fu_fma(v[i], v[i], sum);
  result[0] = fu_sqrt(sum);
}
