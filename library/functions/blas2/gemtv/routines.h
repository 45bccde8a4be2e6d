// z = a * A' * x and z = a * A' * x + b * y
template <class T>
FUSION_FN T gemtv_term(T matrix_entry, T x) {
  return matrix_entry * x;
}

template <class T>
FUSION_FN T gemtv_finish(T acc, T extent, T a) {
  return a * acc;
}

template <class T>
FUSION_FN T gemtv_finish_add(T acc, T extent, T a, T b, T y) {
  return a * acc + b * y;
}

template <class T>
FUSION_FN T gemtv_part_add(T acc, T extent, T a, T b, T y) {
  return a * acc;
}
