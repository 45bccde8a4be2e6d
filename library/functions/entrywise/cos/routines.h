FUSION_FN float cos_of(float x) { return cosf(x); }
FUSION_FN double cos_of(double x) { return cos(x); }

// y = cos(x)
template <class T>
FUSION_FN T cos_map(T x) {
  return cos_of(x);
}
