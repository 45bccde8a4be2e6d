// C = A' * B
template <class T, int k, int r, int c>
FUSION_FN void mtmul_row(int thread, const T* a, const T* b, T* result) {
  const int i = thread;
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) {
    T sum = fu_mul(a[i], b[j]);
    FUSION_UNROLL
    for (int l = 1; l < k; ++l) sum = fu_fma(a[l * r + i], b[l * c + j], sum);
    result[i * c + j] = sum;
  }
}

template <class T, int k, int r, int c>
FUSION_FN void mtmul_thread(const T* a, const T* b, T* result) {
  if (r * k * c * (int)sizeof(T) > 16384) {  // 16 x 16 of f64 and more: code that compilers take long for
    FUSION_NO_UNROLL
    for (int i = 0; i < r; ++i) mtmul_row<T, k, r, c>(i, a, b, result);
  } else {
    FUSION_UNROLL
    for (int i = 0; i < r; ++i) {
      FUSION_UNROLL
      for (int j = 0; j < c; ++j) {
        T sum = fu_mul(a[i], b[j]);
        FUSION_UNROLL
        for (int l = 1; l < k; ++l) sum = fu_fma(a[l * r + i], b[l * c + j], sum);
        result[i * c + j] = sum;
      }
    }
  }
}

template <class T, int k, int r, int c>
FUSION_FN void mtmul_entry(int thread, const T* a, const T* b, T* result) {
  const int i = thread / c, j = thread % c;
  T sum = fu_mul(a[i], b[j]);
  FUSION_UNROLL
  for (int l = 1; l < k; ++l) sum = fu_fma(a[l * r + i], b[l * c + j], sum);
  result[thread] = sum;
}
