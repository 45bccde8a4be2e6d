// B = s * A
template <class T, int r, int c>
FUSION_FN void smmul_thread(const T* a, T s, T* result) {
  FUSION_UNROLL
  for (int e = 0; e < r * c; ++e) result[e] = fu_mul(s, a[e]);
}

template <class T, int r, int c>
FUSION_FN void smmul_entry(int thread, const T* a, T s, T* result) {
  result[thread] = fu_mul(s, a[thread]);
}

template <class T, int r, int c>
FUSION_FN void smmul_row(int thread, const T* a, T s, T* result) {
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) result[thread * c + j] = fu_mul(s, a[thread * c + j]);
}
