// z = a * x + y
template <class T>
FUSION_FN T axpy_map(T a, T x, T y) {
  return a * x + y;
}
