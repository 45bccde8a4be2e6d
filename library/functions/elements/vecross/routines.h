// w = u x v
template <class T>
FUSION_FN void vecross_thread(const T* u, const T* v, T* result) {
  result[0] = fu_sub(fu_mul(u[1], v[2]), fu_mul(u[2], v[1]));
  result[1] = fu_sub(fu_mul(u[2], v[0]), fu_mul(u[0], v[2]));
  result[2] = fu_sub(fu_mul(u[0], v[1]), fu_mul(u[1], v[0]));
}

template <class T>
FUSION_FN void vecross_entry(int thread, const T* u, const T* v, T* result) {
  const int p = (thread + 1) % 3, q = (thread + 2) % 3;
  result[thread] = fu_sub(fu_mul(u[p], v[q]), fu_mul(u[q], v[p]));
}
