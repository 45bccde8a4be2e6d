// w = u x v
template <class T>
FUSION_FN void vecross_thread(const T* u, const T* v, T* result) {
  result[0] = u[1] * v[2] - u[2] * v[1];
  result[1] = u[2] * v[0] - u[0] * v[2];
  result[2] = u[0] * v[1] - u[1] * v[0];
}

template <class T>
FUSION_FN void vecross_entry(int thread, const T* u, const T* v, T* result) {
  const int p = (thread + 1) % 3, q = (thread + 2) % 3;
  result[thread] = u[p] * v[q] - u[q] * v[p];
}
