// C = A * B
template <class T, int r, int k, int c>
FUSION_FN void mmul_row(int thread, const T* a, const T* b, T* result) {
  const int i = thread;
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) {
    T sum = a[i * k] * b[j];
    FUSION_UNROLL
    for (int l = 1; l < k; ++l) sum += a[i * k + l] * b[l * c + j];
    result[i * c + j] = sum;
  }
}

template <class T, int r, int k, int c>
FUSION_FN void mmul_thread(const T* a, const T* b, T* result) {
  if (r * k * c * (int)sizeof(T) > 16384) {  // 16 x 16 of f64 and more: code that compilers take long for
    FUSION_NO_UNROLL
    for (int i = 0; i < r; ++i) mmul_row<T, r, k, c>(i, a, b, result);
  } else {
    FUSION_UNROLL
    for (int i = 0; i < r; ++i) {
      FUSION_UNROLL
      for (int j = 0; j < c; ++j) {
        T sum = a[i * k] * b[j];
        FUSION_UNROLL
        for (int l = 1; l < k; ++l) sum += a[i * k + l] * b[l * c + j];
        result[i * c + j] = sum;
      }
    }
  }
}

template <class T, int r, int k, int c>
FUSION_FN void mmul_entry(int thread, const T* a, const T* b, T* result) {
  const int i = thread / c, j = thread % c;
  T sum = a[i * k] * b[j];
  FUSION_UNROLL
  for (int l = 1; l < k; ++l) sum += a[i * k + l] * b[l * c + j];
  result[thread] = sum;
}

// 4 x 4 entries of the result; rows of 16 bytes' multiples are read and written by 16 bytes.
template <class T, int r, int k, int c>
FUSION_FN void mmul_tile(int thread, const T* a, const T* b, T* result) {
  constexpr int kVector = 16 / (int)sizeof(T), kTiles = (c + 3) / 4;
  constexpr int V = k % kVector == 0 && c % kVector == 0 ? kVector : 1;
  const int i0 = thread / kTiles * 4, j0 = thread % kTiles * 4;
  T sum[4][4];
  FUSION_UNROLL
  for (int i = 0; i < 4; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < 4; ++j) sum[i][j] = T(0);
  }
  FUSION_UNROLL
  for (int l = 0; l < k; l += V) {
    T x[4][V] = {}, y[V][4 / V][V] = {};
    FUSION_UNROLL
    for (int i = 0; i < 4; ++i)
      if (r % 4 == 0 || i0 + i < r) fu_load_shared<V>(x[i], a + (i0 + i) * k + l);
    FUSION_UNROLL
    for (int m = 0; m < V; ++m) {
      FUSION_UNROLL
      for (int j = 0; j < 4; j += V)
        if (c % 4 == 0 || j0 + j < c) fu_load_shared<V>(y[m][j / V], b + (l + m) * c + j0 + j);
    }
    FUSION_UNROLL
    for (int m = 0; m < V; ++m) {
      FUSION_UNROLL
      for (int i = 0; i < 4; ++i) {
        FUSION_UNROLL
        for (int j = 0; j < 4; ++j)
          if ((r % 4 == 0 || i0 + i < r) && (c % 4 == 0 || j0 + j < c)) sum[i][j] += x[i][m] * y[m][j / V][j % V];
      }
    }
  }
  FUSION_UNROLL
  for (int i = 0; i < 4; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < 4; j += V) {
      T part[V];
      FUSION_UNROLL
      for (int v = 0; v < V; ++v) part[v] = sum[i][j + v];
      if ((r % 4 == 0 || i0 + i < r) && (c % 4 == 0 || j0 + j < c)) fu_keep<V>(result + (i0 + i) * c + j0 + j, part);
    }
  }
}
