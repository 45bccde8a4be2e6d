// Declares the functions of hazards.c once for each compiler: reference_shift and tested_shift, and a table
// of each.
#pragma once
#include <stddef.h>

struct record {
  char tag;
  short small;
  int number;
  double value;
  float part[3];
};

union cell {
  double value;
  unsigned word[2];
  unsigned char byte[8];
};

struct bytes {
  long size;
  unsigned char* data;
};

#define HAZARDS(F)                                                                               \
  F(void, shift, (int n, double* a, const double* b))                                            \
  F(void, down, (int n, double* a, const double* b))                                             \
  F(void, three, (int n, double* a, const double* b, double* c))                                 \
  F(void, distance, (int n, int d, double* a))                                                   \
  F(void, rows, (int n, int m, double* a, const double* b))                                      \
  F(void, transpose, (int n, const double* a, double* b))                                        \
  F(void, triangle, (int n, double* a))                                                          \
  F(void, diagonal, (int n, double* a))                                                          \
  F(void, strided, (int n, int s, double* a, const double* b))                                   \
  F(void, strided_both, (int n, int s, int t, double* a, double* b))                             \
  F(void, step3, (int n, double* a))                                                             \
  F(void, partial, (int n, double* a, const double* b))                                          \
  F(void, rows_u32, (unsigned n, unsigned m, double* a, const double* b))                        \
  F(void, wrap_u32, (unsigned n, unsigned step, unsigned m, unsigned k, double* a))              \
  F(void, wrap_u64, (size_t n, size_t m, size_t p, double* a))                                   \
  F(void, wrap_mask, (size_t n, size_t m, double* a))                                            \
  F(void, wrap_counter, (unsigned first, unsigned last, double* a))                              \
  F(void, top_counter, (int n, double* a))                                                       \
  F(void, short_counter, (short n, double* a, const double* b))                                  \
  F(void, byte_counter, (int n, double* a, const double* b))                                     \
  F(void, beyond_row, (int n, int m, double(*a)[m], int k))                                      \
  F(void, beyond_column, (int n, int m, double(*a)[m], int k))                                   \
  F(void, bytes_to_floats, (int n, const unsigned char* a, float* b))                            \
  F(void, floats_to_bytes, (int n, unsigned char* a, const float* b))                            \
  F(void, records, (int n, struct record* a, const struct record* b))                            \
  F(void, record_parts, (int n, struct record* a))                                               \
  F(void, cells, (int n, union cell* a, const union cell* b))                                    \
  F(void, cell_bytes, (int n, union cell* a, const unsigned char* b))                            \
  F(void, guarded_by_count, (int n, int limit, double* a, const double* b))                      \
  F(void, guarded_by_mask, (int n, double* a, const double* b, const int* mask))                 \
  F(void, guarded_write, (int n, double* a, const double* b, const int* mask))                   \
  F(void, choice, (int n, double* a, const double* b, const int* mask))                          \
  F(void, collatz, (int n, int* a, const int* b))                                                \
  F(void, shrinking, (int* n, double* a))                                                        \
  F(void, bound_in_array, (int* a, const int* b))                                                \
  F(void, bound_of_row, (int n, const int* first, int* a))                                       \
  F(void, flag, (int n, volatile int* flag, double* a))                                          \
  F(void, wide, (int n, long double* a, const long double* b))                                   \
  F(void, unknown, (int n, double* a, void (*change)(double*)))                                  \
  F(int, early_exit, (int n, double* a, const double* b))                                        \
  F(void, copies, (int n, double* a, const double* b))                                           \
  F(void, signs, (int n, unsigned m, double* a))                                                 \
  F(void, negative_start, (int n, double* a))                                                    \
  F(void, folded, (int n, int k, double* a, const double* b))                                    \
  F(void, swapped, (int n, int steps, double* a, double* b))                                     \
  F(void, own_size, (struct bytes * a))                                                          \
  F(double, last_value, (int n, double* a, const double* b))                                     \
  F(double*, global_table, (void))                                                               \
  F(double*, static_table, (void))                                                               \
  F(void, global_smooth, (int n, const double* b))                                               \
  F(void, static_smooth, (int n, int d))                                                         \
  F(double, on_stack, (int n, double* a))                                                        \
  F(void, pointer_end, (double* a, const double* b, const double* end))                          \
  F(void, reversed_pair, (int n, double* a))                                                     \
  F(void, plane, (int n, int m, int k, double* a, const double* b))                              \
  F(void, factor, (int n, int m, double* a))                                                     \
  F(void, factor_sums, (int n, int m, double* a, const double* d))                               \
  F(void, factor_seen, (int n, int m, int p, double* a, double* b))                              \
  F(void, factor_u32, (unsigned n, unsigned m, double* a))                                       \
  F(void, solve, (int n, int m, const double* a, double* b))                                     \
  F(void, until_small, (int n, double(*a)[20], const double* b))                                 \
  F(void, scratch, (int n, int m, double* a, double* part, const double* b))                     \
  F(void, scratch_of_steps, (int n, int m, int steps, double* a, double* part, const double* b)) \
  F(void, scratch_sums, (int n, int m, int k, double* a, double* sum, const double* b))          \
  F(void, scratch_rows, (int n, int m, int k, double* a, double(*part)[k], const double* b))     \
  F(void, scratch_of_more, (int n, int m, int k, double* a, double* part, const double* b))      \
  F(void, scratch_runs, (int n, int m, double* a, double* part, const double* b))                \
  F(void, scratch_late, (int n, int m, double* a, double* part, const double* b))                \
  F(void, scratch_triangle, (int n, double* a, double* part, const double* b))                   \
  F(void, scratch_and_more, (int n, int m, double* a, double* part, const double* b))            \
  F(void, scratch_static, (int n, float* a, float* left))

#define HAZARD_MEMBER(result, name, parameters) result(*name) parameters;
struct hazards {
  HAZARDS(HAZARD_MEMBER)
};

#define HAZARD_DECLARATION(result, name, parameters) \
  result reference_##name parameters;                \
  result tested_##name parameters;
HAZARDS(HAZARD_DECLARATION)
