// B_ij = C_ji / det(A), where C_ij is the cofactor of A_ij and det(A) = sum_l A_li * C_li for any column i.

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
    value = a[p[0] + q[0]] * a[p[1] + q[1]] - a[p[0] + q[1]] * a[p[1] + q[0]];
  } else {
    value = a[p[0] + q[0]] * (a[p[1] + q[1]] * a[p[2] + q[2]] - a[p[1] + q[2]] * a[p[2] + q[1]]) -
            a[p[0] + q[1]] * (a[p[1] + q[0]] * a[p[2] + q[2]] - a[p[1] + q[2]] * a[p[2] + q[0]]) +
            a[p[0] + q[2]] * (a[p[1] + q[0]] * a[p[2] + q[1]] - a[p[1] + q[1]] * a[p[2] + q[0]]);
  }
  return (row + column) % 2 == 0 ? value : -value;
}

template <class T, int n>
FUSION_FN void minv_thread(const T* a, T* result) {
  FUSION_UNROLL
  for (int i = 0; i < n; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < n; ++j) result[i * n + j] = minv_cofactor<T, n>(a, j, i);
  }
  T determinant = a[0] * result[0];
  FUSION_UNROLL
  for (int j = 1; j < n; ++j) determinant += a[j * n] * result[j];
  const T inverse = fu_div(T(1), determinant);
  FUSION_UNROLL
  for (int e = 0; e < n * n; ++e) result[e] *= inverse;
}

template <class T, int n>
FUSION_FN void minv_entry(int thread, const T* a, T* result) {
  const int i = thread / n, j = thread % n;
  T determinant = T(0), own = T(0);
  FUSION_UNROLL
  for (int l = 0; l < n; ++l) {
    const T cofactor = minv_cofactor<T, n>(a, l, i);
    determinant += a[l * n + i] * cofactor;
    own = l == j ? cofactor : own;
  }
  result[thread] = fu_div(own, determinant);
}

template <class T, int n>
FUSION_FN void minv_row(int thread, const T* a, T* result) {
  const int i = thread;
  T cofactors[n];
  T determinant = T(0);
  FUSION_UNROLL
  for (int j = 0; j < n; ++j) {
    cofactors[j] = minv_cofactor<T, n>(a, j, i);
    determinant += a[j * n + i] * cofactors[j];
  }
  const T inverse = fu_div(T(1), determinant);
  FUSION_UNROLL
  for (int j = 0; j < n; ++j) result[i * n + j] = cofactors[j] * inverse;
}
