// B = A'
template <class T, int r, int c>
FUSION_FN void mtrans_thread(const T* a, T* result) {
  FUSION_UNROLL
  for (int i = 0; i < r; ++i) {
    FUSION_UNROLL
    for (int j = 0; j < c; ++j) result[j * r + i] = a[i * c + j];
  }
}

template <class T, int r, int c>
FUSION_FN void mtrans_entry(int thread, const T* a, T* result) {
  result[thread] = a[thread % r * c + thread / r];
}

template <class T, int r, int c>
FUSION_FN void mtrans_row(int thread, const T* a, T* result) {
  FUSION_UNROLL
  for (int i = 0; i < r; ++i) result[thread * r + i] = a[i * c + thread];
}
