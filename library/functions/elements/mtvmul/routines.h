// w = A' * v
template <class T, int r, int c>
FUSION_FN void mtvmul_thread(const T* a, const T* v, T* result) {
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) {
    T sum = fu_mul(a[j], v[0]);
    FUSION_UNROLL
    for (int i = 1; i < r; ++i) sum = fu_fma(a[i * c + j], v[i], sum);
    result[j] = sum;
  }
}

template <class T, int r, int c>
FUSION_FN void mtvmul_entry(int thread, const T* a, const T* v, T* result) {
  T sum = fu_mul(a[thread], v[0]);
  FUSION_UNROLL
  for (int i = 1; i < r; ++i) sum = fu_fma(a[i * c + thread], v[i], sum);
  result[thread] = sum;
}
