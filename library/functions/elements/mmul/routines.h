// C = A * B
template <class T, int r, int k, int c>
FUSION_FN void mmul_row(int thread, const T* a, const T* b, T* result) {
  const int i = thread;
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) {
    T sum = fu_mul(a[i * k], b[j]);
    FUSION_UNROLL
    for (int l = 1; l < k; ++l) sum = fu_fma(a[i * k + l], b[l * c + j], sum);
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
        T sum = fu_mul(a[i * k], b[j]);
        FUSION_UNROLL
        for (int l = 1; l < k; ++l) sum = fu_fma(a[i * k + l], b[l * c + j], sum);
        result[i * c + j] = sum;
      }
    }
  }
}

template <class T, int r, int k, int c>
FUSION_FN void mmul_entry(int thread, const T* a, const T* b, T* result) {
  const int i = thread / c, j = thread % c;
  T sum = fu_mul(a[i * k], b[j]);
  FUSION_UNROLL
  for (int l = 1; l < k; ++l) sum = fu_fma(a[i * k + l], b[l * c + j], sum);
  result[thread] = sum;
}

// 4 consecutive entries of a row; rows of 16 bytes' multiples are read and written by 16 bytes.
template <class T, int r, int k, int c>
FUSION_FN void mmul_quad(int thread, const T* a, const T* b, T* result) {
  constexpr int kVector = 16 / (int)sizeof(T), kQuads = (c + 3) / 4;
  constexpr int V = k % kVector == 0 && c % kVector == 0 ? kVector : 1;
  const int i = thread / kQuads, j0 = thread % kQuads * 4;
  T sum[4 / V][V] = {};
  FUSION_UNROLL
  for (int l = 0; l < k; l += V) {
    T x[V], y[V][4 / V][V] = {};
    fu_take<V>(x, a, i * k + l);
    FUSION_UNROLL
    for (int m = 0; m < V; ++m) {
      FUSION_UNROLL
      for (int j = 0; j < 4; j += V)
        if (c % 4 == 0 || j0 + j < c) fu_take<V>(y[m][j / V], b, (l + m) * c + j0 + j);
    }
    FUSION_UNROLL
    for (int m = 0; m < V; ++m) {
      FUSION_UNROLL
      for (int j = 0; j < 4; ++j) sum[j / V][j % V] = fu_fma(x[m], y[m][j / V][j % V], sum[j / V][j % V]);
    }
  }
  FUSION_UNROLL
  for (int j = 0; j < 4; j += V)
    if (c % 4 == 0 || j0 + j < c) fu_keep<V>(result, sum[j / V], i * c + j0 + j);
}

// 4 x 4 entries of the result: of tiles in p rows and q columns, thread (p, q) has every p-th row, and of a row every q-th
// unit of up to 16 bytes, so that neighbouring threads read and write units side by side.
template <class T, int r, int k, int c>
FUSION_FN void mmul_tile(int thread, const T* a, const T* b, T* result) {
  constexpr int kVector = 16 / (int)sizeof(T), kRows = (r + 3) / 4, kColumns = (c + 3) / 4;
  constexpr int V = k % kVector == 0 && c % kVector == 0 ? kVector : 1;
  const int i0 = thread / kColumns, j0 = thread % kColumns * V;  // then i0 + i * kRows, j0 + j * kColumns * V
  T sum[4][4 / V][V];
  FUSION_UNROLL
  for (int i = 0; i < 4; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < 4; ++j) sum[i][j / V][j % V] = T(0);
  }
  FUSION_UNROLL
  for (int l = 0; l < k; l += V) {
    T x[4][V] = {}, y[V][4 / V][V] = {};
    FUSION_UNROLL
    for (int i = 0; i < 4; ++i)
      if (r % 4 == 0 || i0 + i * kRows < r) fu_take<V>(x[i], a, (i0 + i * kRows) * k + l);
    FUSION_UNROLL
    for (int m = 0; m < V; ++m) {
      FUSION_UNROLL
      for (int j = 0; j < 4 / V; ++j)
        if (c % 4 == 0 || j0 + j * kColumns * V < c) fu_take<V>(y[m][j], b, (l + m) * c + j0 + j * kColumns * V);
    }
    FUSION_UNROLL
    for (int m = 0; m < V; ++m) {
      FUSION_UNROLL
      for (int i = 0; i < 4; ++i) {
        FUSION_UNROLL
        for (int j = 0; j < 4; ++j) sum[i][j / V][j % V] = fu_fma(x[i][m], y[m][j / V][j % V], sum[i][j / V][j % V]);
      }
    }
  }
  FUSION_UNROLL
  for (int i = 0; i < 4; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < 4 / V; ++j)
      if ((r % 4 == 0 || i0 + i * kRows < r) && (c % 4 == 0 || j0 + j * kColumns * V < c))
        fu_keep<V>(result, sum[i][j], (i0 + i * kRows) * c + j0 + j * kColumns * V);
  }
}

// 8 rows by the tensor cores of a warp, where they do this data type. Without, each lane has the same two entries of every
// 8 x 8 of the result.
template <class T, int r, int k, int c>
FUSION_FN void mmul_warp(int thread, const T* a, const T* b, T* result) {
  constexpr int kSteps = (k + 3) / 4, kTiles = (c + 7) / 8;
  const int lane = thread % 32, part = lane % 4, row = thread / 32 * 8 + lane / 4;
  T sum[kTiles][2] = {};
  if (fu_has_tensor<T>()) {
    T x[kSteps], y[kSteps][kTiles];
    FUSION_UNROLL
    for (int l = 0; l < kSteps; ++l) {
      const int inner = l * 4 + part;
      x[l] = (r % 8 == 0 || row < r) && (k % 4 == 0 || inner < k) ? a[row * k + inner] : T(0);
      FUSION_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        const int column = t * 8 + lane / 4;
        y[l][t] = (k % 4 == 0 || inner < k) && (c % 8 == 0 || column < c) ? b[inner * c + column] : T(0);
      }
    }
    FUSION_UNROLL
    for (int l = 0; l < kSteps; ++l) {
      FUSION_UNROLL
      for (int t = 0; t < kTiles; ++t) fu_tensor_8x8x4(sum[t], x[l], y[l][t]);
    }
  } else if (r % 8 == 0 || row < r) {
    FUSION_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      FUSION_UNROLL
      for (int h = 0; h < 2; ++h) {
        const int column = t * 8 + part * 2 + h;
        if (c % 8 == 0 || column < c)
          for (int l = 0; l < k; ++l) sum[t][h] = fu_fma(a[row * k + l], b[l * c + column], sum[t][h]);
      }
    }
  }
  constexpr int V = c % 2 == 0 ? 2 : 1;
  FUSION_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    FUSION_UNROLL
    for (int h = 0; h < 2; h += V) {
      const int column = t * 8 + part * 2 + h;
      T entries[V];
      FUSION_UNROLL
      for (int v = 0; v < V; ++v) entries[v] = sum[t][h + v];
      if ((r % 8 == 0 || row < r) && (c % 8 == 0 || column < c)) fu_keep<V>(result, entries, row * c + column);
    }
  }
}
