// Elements exchanged among the lanes of a warp. Included by fusion_device.h after fusion_memory.h and fusion_collectives.h.
//
// Elements of UNITS times 16 bytes, UNITS a power of two. A warp accesses those of its 32 lanes in order, 512 bytes at a time,
// and UNITS neighbouring lanes exchange what each of them got. All lanes take part, also those beyond the last element.
#ifndef FUSION_EXCHANGE_H_
#define FUSION_EXCHANGE_H_

// The element that a lane holds then, as the number of another lane of its warp.
template <int UNITS>
FUSION_FN int fu_exchanged_element(int lane) {
#if FUSION_CUDA
  return lane / 32 * 32 + lane % UNITS * (32 / UNITS) + lane % 32 / UNITS;
#else
  return lane;
#endif
}

#if FUSION_CUDA
// Of lanes whose numbers differ in bit MASK alone, the lower one's units with that bit go for the upper one's without it.
template <int UNITS, int V, int MASK, class T>
FUSION_FN void fu_exchange_pairs(T (&values)[UNITS * V], int lane) {
  const bool upper = (lane & MASK) != 0;
  FUSION_UNROLL
  for (int i = 0; i < UNITS; ++i) {
    if (i & MASK) continue;
    FUSION_UNROLL
    for (int v = 0; v < V; ++v) {
      T &low = values[i * V + v], &high = values[(i | MASK) * V + v];
      const T other = fu_shuffle_xor(upper ? low : high, MASK);
      low = upper ? other : low;
      high = upper ? high : other;
    }
  }
}
// Of UNITS neighbouring lanes, number i gets as its unit k (V entries) what was unit i of number k.
template <int UNITS, int V, class T>
FUSION_FN void fu_exchange_units(T (&values)[UNITS * V], int lane) {
  if (UNITS > 1) fu_exchange_pairs<UNITS, V, 1>(values, lane);
  if (UNITS > 2) fu_exchange_pairs<UNITS, V, 2>(values, lane);
  if (UNITS > 4) fu_exchange_pairs<UNITS, V, 4>(values, lane);
}
#endif

// The element of lane `lane`, of those from `first` on of `count` in all, zeros beyond. `aligned`: base is aligned to 16 bytes.
template <int UNITS, class T, int ENTRIES>
FUSION_FN void fu_load_exchanged(T (&out)[ENTRIES], const T* FUSION_RESTRICT base, fu_index first, fu_index count, int lane,
                                 bool aligned) {
  constexpr int V = ENTRIES / UNITS;
#if FUSION_CUDA
  const fu_index warp = first + lane / 32 * 32;
  if (aligned && warp + 32 <= count) {
    FUSION_UNROLL
    for (int i = 0; i < UNITS; ++i)
      fu_load<V>(*(T(*)[V])(out + i * V), base, (warp * UNITS + i * 32 + lane % 32) * V, count * ENTRIES, true, true);
    fu_exchange_units<UNITS, V>(out, lane);
    return;
  }
#endif
  const fu_index element = first + fu_exchanged_element<UNITS>(lane);
  FUSION_UNROLL
  for (int i = 0; i < UNITS; ++i) fu_load<V>(*(T(*)[V])(out + i * V), base, element * ENTRIES + i * V, count * ENTRIES, aligned);
}
template <int UNITS, class T, int ENTRIES>
FUSION_FN void fu_store_exchanged(T* base, const T (&in)[ENTRIES], fu_index first, fu_index count, int lane, bool aligned) {
  constexpr int V = ENTRIES / UNITS;
#if FUSION_CUDA
  const fu_index warp = first + lane / 32 * 32;
  if (aligned && warp + 32 <= count) {
    T units[ENTRIES];
    FUSION_UNROLL
    for (int k = 0; k < ENTRIES; ++k) units[k] = in[k];
    fu_exchange_units<UNITS, V>(units, lane);
    FUSION_UNROLL
    for (int i = 0; i < UNITS; ++i)
      fu_store<V>(base, *(const T(*)[V])(units + i * V), (warp * UNITS + i * 32 + lane % 32) * V, count * ENTRIES, true, true);
    return;
  }
#endif
  const fu_index element = first + fu_exchanged_element<UNITS>(lane);
  FUSION_UNROLL
  for (int i = 0; i < UNITS; ++i)
    fu_store<V>(base, *(const T(*)[V])(in + i * V), element * ENTRIES + i * V, count * ENTRIES, aligned);
}

#endif  // FUSION_EXCHANGE_H_
