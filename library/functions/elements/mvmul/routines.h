// w = A * v
template <class T, int r, int c>
FUSION_FN void mvmul_thread(const T* a, const T* v, T* result) {
  FUSION_UNROLL
  for (int i = 0; i < r; ++i) {
    T sum = fu_mul(a[i * c], v[0]);
    FUSION_UNROLL
    for (int j = 1; j < c; ++j) sum = fu_fma(a[i * c + j], v[j], sum);
    result[i] = sum;
  }
}

template <class T, int r, int c>
FUSION_FN void mvmul_entry(int thread, const T* a, const T* v, T* result) {
  T sum = fu_mul(a[thread * c], v[0]);
  FUSION_UNROLL
  for (int j = 1; j < c; ++j) sum = fu_fma(a[thread * c + j], v[j], sum);
  result[thread] = sum;
}
