FUSION_FN float sin_of(float x) { return sinf(x); }
FUSION_FN double sin_of(double x) { return sin(x); }

// y = sin(x)
template <class T>
FUSION_FN T sin_map(T x) {
  return sin_of(x);
}
