/* The functions of sums.c, which is compiled twice: the names of the copy that nobody partitions begin with
 * plain_. */
#pragma once
#include <stdint.h>

/* X(type of the sum, name) */
#define SUMS(X)                  \
  X(int64_t, added)              \
  X(int32_t, subtracted)         \
  X(uint8_t, bytes)              \
  X(int16_t, shorts)             \
  X(int64_t, counted)            \
  X(int64_t, either)             \
  X(int64_t, rows)               \
  X(int64_t, triangle)           \
  X(int32_t, greatest)           \
  X(int32_t, least)              \
  X(uint32_t, unsigned_greatest) \
  X(uint32_t, unsigned_least)    \
  X(uint32_t, all_bits)          \
  X(uint32_t, any_bits)          \
  X(uint64_t, parity)            \
  X(int64_t, two_sums)           \
  X(int64_t, sum_and_store)      \
  X(int64_t, store_of_next)      \
  X(int64_t, through_index)      \
  X(int64_t, of_no_array)        \
  X(int64_t, overlapping)        \
  X(int64_t, product)            \
  X(int64_t, value_used)         \
  X(int64_t, value_before)       \
  X(int64_t, reset)              \
  X(int64_t, doubled)            \
  X(int64_t, reversed)           \
  X(int64_t, within)             \
  X(int64_t, few)

#define DECLARE_SUM(type, name)           \
  type name(int32_t* numbers, int64_t n); \
  type plain_##name(int32_t* numbers, int64_t n);
SUMS(DECLARE_SUM)
