// w = A' * v
template <class T, int r, int c>
FUSION_FN void mtvmul_thread(const T* a, const T* v, T* result) {
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) {
    T sum = a[j] * v[0];
    FUSION_UNROLL
    for (int i = 1; i < r; ++i) sum += a[i * c + j] * v[i];
    result[j] = sum;
  }
}

template <class T, int r, int c>
FUSION_FN void mtvmul_entry(int thread, const T* a, const T* v, T* result) {
  T sum = a[thread] * v[0];
  FUSION_UNROLL
  for (int i = 1; i < r; ++i) sum += a[i * c + thread] * v[i];
  result[thread] = sum;
}
