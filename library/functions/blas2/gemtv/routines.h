// z = a * A' * x and z = a * A' * x + b * y, as BLAS has it: where a is 0 nothing of A and x, and where b is 0 nothing of y, gets into the result.
template <class T>
FUSION_FN fu_product<T> gemtv_term(T matrix_entry, T x) {
  return {matrix_entry, x};
}

template <class T>
FUSION_FN T gemtv_finish(T acc, T extent, T a) {
  return a == T(0) ? T(0) : fu_mul(a, acc);
}

template <class T>
FUSION_FN T gemtv_finish_add(T acc, T extent, T a, T b, T y) {
  const T product = gemtv_finish(acc, extent, a);
  return b == T(0) ? product : fu_fma(b, y, product);
}

template <class T>
FUSION_FN T gemtv_part_add(T acc, T extent, T a, T b, T y) {
  return a == T(0) ? T(0) : fu_mul(a, acc);
}
