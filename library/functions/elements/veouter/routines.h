// A = u * v'
template <class T, int r, int c>
FUSION_FN void veouter_thread(const T* u, const T* v, T* result) {
  FUSION_UNROLL
  for (int i = 0; i < r; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < c; ++j) result[i * c + j] = fu_mul(u[i], v[j]);
  }
}

template <class T, int r, int c>
FUSION_FN void veouter_entry(int thread, const T* u, const T* v, T* result) {
  result[thread] = fu_mul(u[thread / c], v[thread % c]);
}

template <class T, int r, int c>
FUSION_FN void veouter_row(int thread, const T* u, const T* v, T* result) {
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) result[thread * c + j] = fu_mul(u[thread], v[j]);
}
