// C = A * B'
template <class T, int r, int k, int c>
FUSION_FN void mmult_row(int thread, const T* a, const T* b, T* result) {
  const int i = thread;
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) {
    T sum = fu_mul(a[i * k], b[j * k]);
    FUSION_UNROLL
    for (int l = 1; l < k; ++l) sum = fu_fma(a[i * k + l], b[j * k + l], sum);
    result[i * c + j] = sum;
  }
}

template <class T, int r, int k, int c>
FUSION_FN void mmult_thread(const T* a, const T* b, T* result) {
  if (r * k * c * (int)sizeof(T) > 16384) {  // 16 x 16 of f64 and more: code that compilers take long for
    FUSION_NO_UNROLL
    for (int i = 0; i < r; ++i) mmult_row<T, r, k, c>(i, a, b, result);
  } else {
    FUSION_UNROLL
    for (int i = 0; i < r; ++i) {
      FUSION_UNROLL
      for (int j = 0; j < c; ++j) {
        T sum = fu_mul(a[i * k], b[j * k]);
        FUSION_UNROLL
        for (int l = 1; l < k; ++l) sum = fu_fma(a[i * k + l], b[j * k + l], sum);
        result[i * c + j] = sum;
      }
    }
  }
}

template <class T, int r, int k, int c>
FUSION_FN void mmult_entry(int thread, const T* a, const T* b, T* result) {
  const int i = thread / c, j = thread % c;
  T sum = fu_mul(a[i * k], b[j * k]);
  FUSION_UNROLL
  for (int l = 1; l < k; ++l) sum = fu_fma(a[i * k + l], b[j * k + l], sum);
  result[thread] = sum;
}
