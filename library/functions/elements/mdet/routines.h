// s = det(A), of A equilibrated: no product of entries leaves the range of T unless the determinant does.

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
    determinant = fu_mul(determinant, m[p * n + p]);
    const T inverse = m[p * n + p] == T(0) ? T(0) : T(1) / m[p * n + p];
    FUSION_UNROLL
    for (int i = p + 1; i < n; ++i) {
      const T factor = -fu_mul(m[i * n + p], inverse);
      FUSION_UNROLL
      for (int j = p + 1; j < n; ++j) m[i * n + j] = fu_fma(factor, m[p * n + j], m[i * n + j]);
    }
  }
  return determinant;
}

template <class T, int n>
FUSION_FN T mdet_product(const T* a) {
  if constexpr (n == 2) {
    return fu_cross(a[0], a[3], a[1], a[2]);
  } else if constexpr (n == 3) {
    T determinant = fu_mul(a[0], fu_cross(a[4], a[8], a[5], a[7]));
    determinant = fu_fma(-a[1], fu_cross(a[3], a[8], a[5], a[6]), determinant);
    return fu_fma(a[2], fu_cross(a[3], a[7], a[4], a[6]), determinant);
  } else if constexpr (n == 4) {
    // Laplace expansion along the first two rows: products of complementary 2 by 2 minors.
    T determinant = fu_mul(fu_cross(a[0], a[5], a[1], a[4]), fu_cross(a[10], a[15], a[11], a[14]));
    determinant = fu_fma(-fu_cross(a[0], a[6], a[2], a[4]), fu_cross(a[9], a[15], a[11], a[13]), determinant);
    determinant = fu_fma(fu_cross(a[0], a[7], a[3], a[4]), fu_cross(a[9], a[14], a[10], a[13]), determinant);
    determinant = fu_fma(fu_cross(a[1], a[6], a[2], a[5]), fu_cross(a[8], a[15], a[11], a[12]), determinant);
    determinant = fu_fma(-fu_cross(a[1], a[7], a[3], a[5]), fu_cross(a[8], a[14], a[10], a[12]), determinant);
    return fu_fma(fu_cross(a[2], a[7], a[3], a[6]), fu_cross(a[8], a[13], a[9], a[12]), determinant);
  } else {
    return mdet_eliminate<T, n>(a);
  }
}

template <class T, int n>
FUSION_FN void mdet_thread(const T* a, T* result) {
  if constexpr (n == 1) {
    result[0] = a[0];
  } else {
    const fu_equilibrated<T, n> m(a);
    result[0] = m.determinant(mdet_product<typename fu_wide<T>::Type, n>(m.entries));
  }
}
