// B = A + s * I
template <class T, int n>
FUSION_FN void maddi_thread(const T* a, T s, T* result) {
  FUSION_UNROLL
  for (int i = 0; i < n; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < n; ++j) result[i * n + j] = i == j ? fu_add(a[i * n + j], s) : a[i * n + j];
  }
}

template <class T, int n>
FUSION_FN void maddi_entry(int thread, const T* a, T s, T* result) {
  result[thread] = thread / n == thread % n ? fu_add(a[thread], s) : a[thread];
}

template <class T, int n>
FUSION_FN void maddi_row(int thread, const T* a, T s, T* result) {
  FUSION_UNROLL
  for (int j = 0; j < n; ++j)
    result[thread * n + j] = thread == j ? fu_add(a[thread * n + j], s) : a[thread * n + j];
}
