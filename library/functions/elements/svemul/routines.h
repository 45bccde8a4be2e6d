// w = s * v
template <class T, int n>
FUSION_FN void svemul_thread(const T* v, T s, T* result) {
  FUSION_UNROLL
  for (int e = 0; e < n; ++e) result[e] = fu_mul(s, v[e]);
}

template <class T, int n>
FUSION_FN void svemul_entry(int thread, const T* v, T s, T* result) {
  result[thread] = fu_mul(s, v[thread]);
}
