// s = sum_i A_ii
template <class T, int n>
FUSION_FN void mtrace_thread(const T* a, T* result) {
  T sum = a[0];
  FUSION_UNROLL
  for (int i = 1; i < n; ++i) sum = fu_add(sum, a[i * n + i]);
  result[0] = sum;
}
