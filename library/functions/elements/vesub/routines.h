// w = u - v
template <class T, int n>
FUSION_FN void vesub_thread(const T* u, const T* v, T* result) {
  FUSION_UNROLL
  for (int e = 0; e < n; ++e) result[e] = fu_sub(u[e], v[e]);
}

template <class T, int n>
FUSION_FN void vesub_entry(int thread, const T* u, const T* v, T* result) {
  result[thread] = fu_sub(u[thread], v[thread]);
}
