// B_ij = C_ji / det(A), where C_ij is the cofactor of A_ij and det(A) = sum_l A_li * C_li for any column i: of A equilibrated, whose
// scales B gets back. So no product of entries leaves the range of T, and 1 / det(A) does so of matrices alone that are nearly singular.

// The cofactor of A[row, column].
template <class T, int n>
FUSION_FN T minv_cofactor(const T* a, int row, int column) {
  // Rows and columns that remain; constants when row and column are.
  int p[n - 1], q[n - 1];
  FUSION_UNROLL
  for (int l = 0; l < n - 1; ++l) {
    p[l] = n * (l + (l >= row));
    q[l] = l + (l >= column);
  }
  T value;
  if constexpr (n == 2) {
    value = a[p[0] + q[0]];
  } else if constexpr (n == 3) {
    value = fu_cross(a[p[0] + q[0]], a[p[1] + q[1]], a[p[0] + q[1]], a[p[1] + q[0]]);
  } else {
    value = fu_mul(a[p[0] + q[0]], fu_cross(a[p[1] + q[1]], a[p[2] + q[2]], a[p[1] + q[2]], a[p[2] + q[1]]));
    value = fu_fma(-a[p[0] + q[1]], fu_cross(a[p[1] + q[0]], a[p[2] + q[2]], a[p[1] + q[2]], a[p[2] + q[0]]), value);
    value = fu_fma(a[p[0] + q[2]], fu_cross(a[p[1] + q[0]], a[p[2] + q[1]], a[p[1] + q[1]], a[p[2] + q[0]]), value);
  }
  return (row + column) % 2 == 0 ? value : -value;
}

// The determinant of a scaled matrix from its column `column` and the cofactors of that.
template <class T, int n>
FUSION_FN T minv_determinant(const T* a, const T (&cofactors)[n], int column) {
  if constexpr (n == 2) {  // a * d - b * c within 2 ulp
    return fu_cross(a[column], cofactors[0], a[n + column], -cofactors[1]);
  } else {
    T determinant = fu_mul(a[column], cofactors[0]);
    FUSION_UNROLL
    for (int l = 1; l < n; ++l) determinant = fu_fma(a[l * n + column], cofactors[l], determinant);
    return determinant;
  }
}

template <class T, int n>
FUSION_FN void minv_row(int thread, const T* a, T* result) {
  typedef typename fu_wide<T>::Type Wide;
  const fu_equilibrated<T, n> m(a);
  const int i = thread;
  Wide cofactors[n];
  FUSION_UNROLL
  for (int j = 0; j < n; ++j) cofactors[j] = minv_cofactor<Wide, n>(m.entries, j, i);
  const Wide inverse = fu_div(Wide(1), minv_determinant<Wide, n>(m.entries, cofactors, i));
  FUSION_UNROLL
  for (int j = 0; j < n; ++j) result[i * n + j] = (T)fu_mul(fu_mul(cofactors[j], inverse), m.by(j, i));
}

template <class T, int n>
FUSION_FN void minv_thread(const T* a, T* result) {
  typedef typename fu_wide<T>::Type Wide;
  const fu_equilibrated<T, n> m(a);
  Wide cofactors[n][n];
  FUSION_UNROLL
  for (int i = 0; i < n; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < n; ++j) cofactors[i][j] = minv_cofactor<Wide, n>(m.entries, j, i);
  }
  const Wide inverse = fu_div(Wide(1), minv_determinant<Wide, n>(m.entries, cofactors[0], 0));
  FUSION_UNROLL
  for (int i = 0; i < n; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < n; ++j) result[i * n + j] = (T)fu_mul(fu_mul(cofactors[i][j], inverse), m.by(j, i));
  }
}

template <class T, int n>
FUSION_FN void minv_entry(int thread, const T* a, T* result) {
  typedef typename fu_wide<T>::Type Wide;
  const fu_equilibrated<T, n> m(a);
  const int i = thread / n, j = thread % n;
  Wide cofactors[n], own = Wide(0), by = Wide(1);
  FUSION_UNROLL
  for (int l = 0; l < n; ++l) {
    cofactors[l] = minv_cofactor<Wide, n>(m.entries, l, i);
    own = l == j ? cofactors[l] : own;
  }
  FUSION_UNROLL
  for (int e = 0; e < n * n; ++e) by = e == thread ? m.by(e % n, e / n) : by;
  result[thread] = (T)fu_mul(fu_div(own, minv_determinant<Wide, n>(m.entries, cofactors, i)), by);
}
