// z = a * x + b * y
template <class T>
FUSION_FN T axpby_map(T a, T x, T b, T y) {
  return a * x + b * y;
}
