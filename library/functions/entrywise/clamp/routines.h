// y = x < low ? low : x > high ? high : x
template <class T>
FUSION_FN T clamp_map(T x, T low, T high) {
  return fu_select(x < low, low, fu_select(x > high, high, x));
}
