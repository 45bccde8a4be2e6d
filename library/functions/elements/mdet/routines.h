// s = det(A)

// Gaussian elimination. The largest entry of the column comes to the pivot row by conditional swaps of whole
// rows, so that every index is a constant and the matrix stays in registers.
template <class T, int n>
FUSION_FN T mdet_eliminate(const T* a) {
  T m[n * n];
  FUSION_UNROLL
  for (int e = 0; e < n * n; ++e) m[e] = a[e];
  T determinant = T(1);
  FUSION_UNROLL
  for (int p = 0; p < n; ++p) {
    FUSION_UNROLL
    for (int i = p + 1; i < n; ++i) {
      const bool swap = fu_abs(m[i * n + p]) > fu_abs(m[p * n + p]);
      FUSION_UNROLL
      for (int j = p; j < n; ++j) {
        const T upper = m[p * n + j], lower = m[i * n + j];
        m[p * n + j] = swap ? lower : upper;
        m[i * n + j] = swap ? upper : lower;
      }
      if (swap) determinant = -determinant;
    }
    determinant *= m[p * n + p];
    const T inverse = m[p * n + p] == T(0) ? T(0) : T(1) / m[p * n + p];
    FUSION_UNROLL
    for (int i = p + 1; i < n; ++i) {
      const T factor = m[i * n + p] * inverse;
      FUSION_UNROLL
      for (int j = p + 1; j < n; ++j) m[i * n + j] -= factor * m[p * n + j];
    }
  }
  return determinant;
}

template <class T, int n>
FUSION_FN void mdet_thread(const T* a, T* result) {
  if constexpr (n == 1) {
    result[0] = a[0];
  } else if constexpr (n == 2) {
    result[0] = a[0] * a[3] - a[1] * a[2];
  } else if constexpr (n == 3) {
    result[0] = a[0] * (a[4] * a[8] - a[5] * a[7]) - a[1] * (a[3] * a[8] - a[5] * a[6]) +
                a[2] * (a[3] * a[7] - a[4] * a[6]);
  } else if constexpr (n == 4) {
    // Laplace expansion along the first two rows: products of complementary 2 by 2 minors.
    result[0] = (a[0] * a[5] - a[1] * a[4]) * (a[10] * a[15] - a[11] * a[14]) -
                (a[0] * a[6] - a[2] * a[4]) * (a[9] * a[15] - a[11] * a[13]) +
                (a[0] * a[7] - a[3] * a[4]) * (a[9] * a[14] - a[10] * a[13]) +
                (a[1] * a[6] - a[2] * a[5]) * (a[8] * a[15] - a[11] * a[12]) -
                (a[1] * a[7] - a[3] * a[5]) * (a[8] * a[14] - a[10] * a[12]) +
                (a[2] * a[7] - a[3] * a[6]) * (a[8] * a[13] - a[9] * a[12]);
  } else {
    result[0] = mdet_eliminate<T, n>(a);
  }
}
