// s = sum_i u_i * v_i
template <class T, int n>
FUSION_FN void vedot_thread(const T* u, const T* v, T* result) {
  T sum = fu_mul(u[0], v[0]);
  FUSION_UNROLL
  for (int i = 1; i < n; ++i) sum = fu_fma(u[i], v[i], sum);
  result[0] = sum;
}
