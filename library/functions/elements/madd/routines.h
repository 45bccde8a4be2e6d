// C = A + B
template <class T>
FUSION_FN T madd_map(T a, T b) {
  return fu_add(a, b);
}

template <class T, int r, int c>
FUSION_FN void madd_thread(const T* a, const T* b, T* result) {
  FUSION_UNROLL
  for (int e = 0; e < r * c; ++e) result[e] = fu_add(a[e], b[e]);
}

template <class T, int r, int c>
FUSION_FN void madd_entry(int thread, const T* a, const T* b, T* result) {
  result[thread] = fu_add(a[thread], b[thread]);
}

template <class T, int r, int c>
FUSION_FN void madd_row(int thread, const T* a, const T* b, T* result) {
  FUSION_UNROLL
  for (int j = 0; j < c; ++j) result[thread * c + j] = fu_add(a[thread * c + j], b[thread * c + j]);
}
