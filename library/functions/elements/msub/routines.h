// C = A - B
template <class T>
FUSION_FN T msub_map(T a, T b) {
  return fu_sub(a, b);
}

template <class T, int r, int c>
FUSION_FN void msub_thread(const T* a, const T* b, T* result) {
  FUSION_UNROLL
  for (int e = 0; e < r * c; ++e) result[e] = fu_sub(a[e], b[e]);
}

template <class T, int r, int c>
FUSION_FN void msub_entry(int thread, const T* a, const T* b, T* result) {
  result[thread] = fu_sub(a[thread], b[thread]);
}

template <class T, int r, int c>
FUSION_FN void msub_row(int thread, const T* a, const T* b, T* result) {
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) result[thread * c + j] = fu_sub(a[thread * c + j], b[thread * c + j]);
}
