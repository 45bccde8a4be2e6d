// Calls of these functions are easy to get wrong for a compiler that splits loops: see hazards_driver.c for
// the arguments.
#include "tests/integration/partition/programs/hazards.h"

#include <limits.h>
#include <string.h>

#ifdef REFERENCE
#define NAME(x) reference_##x
#else
#define NAME(x) tested_##x
#endif

void NAME(shift)(int n, double* a, const double* b) {
  for (int i = 0; i < n; ++i) a[i] = b[i] + 1;
}

void NAME(down)(int n, double* a, const double* b) {
  for (int i = n - 1; i >= 0; --i) a[i] = b[i] * 2;
}

// Writes two arrays: each pair of the three may overlap.
void NAME(three)(int n, double* a, const double* b, double* c) {
  for (int i = 0; i < n; ++i) {
    a[i] = b[i] * 0.5;
    c[2 * i + 1] = b[i + 1] - 1;
  }
}

// Parallel for d = 0 and for |d| >= n.
void NAME(distance)(int n, int d, double* a) {
  for (int i = 0; i < n; ++i) a[i] = a[i + d] * 0.5 + 1;
}

void NAME(rows)(int n, int m, double* a, const double* b) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) a[i * m + j] = b[j * n + i];
}

void NAME(transpose)(int n, const double* a, double* b) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) b[j * n + i] = a[i * n + j] + 0.25;
}

// Each iteration reads its row right of the diagonal and writes its column below it.
void NAME(triangle)(int n, double* a) {
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) a[j * (long)n + i] = a[i * (long)n + j];
}

void NAME(diagonal)(int n, double* a) {
  for (int i = 0; i < n; ++i) a[i * n + i] = a[i * n + i] * 0.5 + a[i];
}

void NAME(strided)(int n, int s, double* a, const double* b) {
  for (int i = 0; i < n; ++i) a[i * (long)s] = b[i] + 3;
}

void NAME(strided_both)(int n, int s, int t, double* a, double* b) {
  for (int i = 0; i < n; ++i) {
    a[i * s] = b[i * t] * 0.5;
    b[i * t] = i;
  }
}

// Iterations of step 3 touch three elements each: together there is no gap.
void NAME(step3)(int n, double* a) {
  for (int i = 0; i < n; i += 3) {
    a[i] = i;
    a[i + 1] += a[i + 2];
  }
}

void NAME(partial)(int n, double* a, const double* b) {
  for (int i = 0; i < n; ++i)
    if (b[i] > 0.5) a[i] = b[i];
}

void NAME(rows_u32)(unsigned n, unsigned m, double* a, const double* b) {
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < m; ++j) a[i * m + j] = b[i * m + j] * 3;
}

// The product wraps around in 32 bits. For m = 2^31 and step 2 all rows are the same.
void NAME(wrap_u32)(unsigned n, unsigned step, unsigned m, unsigned k, double* a) {
  for (unsigned i = 0; i < n; i += step)
    for (unsigned j = 0; j < 5; ++j) a[k + i * m + j] = a[k + i * m + j] * 0.5 + i + 1;
}

// The sum is small again although both products wrap around in 64 bits.
void NAME(wrap_u64)(size_t n, size_t m, size_t p, double* a) {
  for (size_t i = 0; i < n; ++i) a[i * m + i * p] = a[i * m + i * p] * 0.5 + (double)i;
}

void NAME(wrap_mask)(size_t n, size_t m, double* a) {
  for (size_t i = 0; i < n; ++i) a[(i * m) & 63] = a[i * m % 61] * 0.5 + (double)i;
}

// The counter itself wraps around.
void NAME(wrap_counter)(unsigned first, unsigned last, double* a) {
  for (unsigned i = first; i != last; ++i) a[i + 44u] = a[i + 44u] * 0.5 + 1;
}

// The counter ends at the largest int.
void NAME(top_counter)(int n, double* a) {
  int first = INT_MAX - n;
  for (int i = first; i < INT_MAX; ++i) a[i - first] = a[i - first] * 0.5 + 1;
}

void NAME(short_counter)(short n, double* a, const double* b) {
  for (short i = 0; i < n; ++i) a[i] = b[n - 1 - i] + 1;
}

void NAME(byte_counter)(int n, double* a, const double* b) {
  for (unsigned char i = 250; i != (unsigned char)(250 + n); ++i) a[i] = b[i] + 1;
}

// k is larger than m: rows run into each other.
void NAME(beyond_row)(int n, int m, double (*a)[m], int k) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < k; ++j) a[i][j] = a[i][j + 1] * 0.5 + i;
}

void NAME(beyond_column)(int n, int m, double (*a)[m], int k) {
  for (int j = 0; j < k; ++j)
    for (int i = 0; i < n; ++i) a[i][j] = a[i][j] * 2 + 1;
}

void NAME(bytes_to_floats)(int n, const unsigned char* a, float* b) {
  for (int i = 0; i < n; ++i) b[i] = a[i];
}

void NAME(floats_to_bytes)(int n, unsigned char* a, const float* b) {
  for (int i = 0; i < n; ++i) a[i] = b[i] > 0.5f ? 63 : 60;
}

void NAME(records)(int n, struct record* a, const struct record* b) {
  for (int i = 0; i < n; ++i) {
    a[i].small = (short)(b[i].tag + 1);
    a[i].value = b[i].part[i % 3] * 0.5 + b[i].number;
  }
}

// Members of one array: each iteration reads the next record's members that nobody writes.
void NAME(record_parts)(int n, struct record* a) {
  for (int i = 0; i < n; ++i) {
    a[i].part[0] = a[i + 1].part[1] + (float)a[i + 1].number;
    a[i].tag = (char)(a[i].small & 63);
  }
}

void NAME(cells)(int n, union cell* a, const union cell* b) {
  for (int i = 0; i < n; ++i) {
    a[i].word[0] = b[i].word[1];
    a[i].byte[4] = b[i].byte[3];
  }
}

void NAME(cell_bytes)(int n, union cell* a, const unsigned char* b) {
  for (int i = 0; i < n; ++i) a[i].word[0] = b[i] + 256u * b[i + 9];
}

// Elements of b from `limit` on need not exist.
void NAME(guarded_by_count)(int n, int limit, double* a, const double* b) {
  for (int i = 0; i < n; ++i)
    if (i < limit) a[i] = b[i] + 1;
}

void NAME(guarded_by_mask)(int n, double* a, const double* b, const int* mask) {
  for (int i = 0; i < n; ++i) {
    double x = 1;
    if (mask[i]) x += b[i];
    a[i] = x;
  }
}

// Elements of a whose mask is 0 may be read-only, or not exist.
void NAME(guarded_write)(int n, double* a, const double* b, const int* mask) {
  for (int i = 0; i < n; ++i)
    if (mask[i]) a[i] = b[i] * 0.5;
}

void NAME(choice)(int n, double* a, const double* b, const int* mask) {
  for (int i = 0; i < n; ++i) a[i] = mask[i] ? b[i] : 0.75;
}

void NAME(collatz)(int n, int* a, const int* b) {
  for (int i = 0; i < n; ++i) {
    unsigned x = (unsigned)b[i] % 1000 + 1;
    int steps = 0;
    while (x != 1 && steps < 500) {
      x = x % 2 ? 3 * x + 1 : x / 2;
      ++steps;
    }
    a[i] = steps;
  }
}

void NAME(shrinking)(int* n, double* a) {
  for (int i = 0; i < *n; ++i) {
    a[i] = a[i] * 0.5 + 1;
    if (i % 3 == 0) --*n;
  }
}

// The bound is an element that the loop writes, where a and b overlap.
void NAME(bound_in_array)(int* a, const int* b) {
  for (int i = 0; i < *b; ++i) a[i] = a[i] / 2 + 1;
}

// Inner bounds are loaded from an array that the loop writes.
void NAME(bound_of_row)(int n, const int* first, int* a) {
  for (int i = 0; i < n; ++i)
    for (int j = first[i]; j < first[i + 1]; ++j) a[j] = a[j] / 2 + i;
}

void NAME(flag)(int n, volatile int* flag, double* a) {
  for (int i = 0; i < n; ++i) {
    *flag = i;
    a[i] = *flag + 1;
  }
}

void NAME(wide)(int n, long double* a, const long double* b) {
  for (int i = 0; i < n; ++i) a[i] = b[i] * 0.1L + 1;
}

void NAME(unknown)(int n, double* a, void (*change)(double*)) {
  for (int i = 0; i < n; ++i) {
    a[i] = a[i] * 0.5;
    change(&a[i]);
  }
}

int NAME(early_exit)(int n, double* a, const double* b) {
  for (int i = 0; i < n; ++i) {
    if (b[i] > 0.95) return i;
    a[i] = b[i] * 0.5;
  }
  return -1;
}

void NAME(copies)(int n, double* a, const double* b) {
  for (int i = 0; i < n; ++i) {
    double four[4];
    memcpy(four, b + 4 * i, sizeof four);
    four[1] += four[3];
    memcpy(a + 4 * i, four, sizeof four);
  }
}

// A negative n is a large number where it is compared without a sign.
void NAME(signs)(int n, unsigned m, double* a) {
  for (int i = 0; i < 40; ++i)
    if ((unsigned)i < (unsigned)n) a[i] = i;
  for (int i = 0; i < n; ++i) a[100 + i] = (unsigned)(i - 2) < m ? 1 : 2;
  for (long i = n; i < 0; ++i) a[50 + i] = 7;
}

void NAME(negative_start)(int n, double* a) {
  for (int i = -n; i < n; ++i) a[i] = a[i] * 0.5 + i;
}

// Parallel for k >= n only.
void NAME(folded)(int n, int k, double* a, const double* b) {
  for (int i = 0; i < n; ++i) a[i % k] = a[i % k] * 0.5 + b[i];
}

// Buffers change their parts in each step of the outer loop.
void NAME(swapped)(int n, int steps, double* a, double* b) {
  for (int t = 0; t < steps; ++t) {
    for (int i = 1; i < n - 1; ++i) b[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1];
    double* other = a;
    a = b;
    b = other;
  }
}

// The bytes that are written may be those of the size.
void NAME(own_size)(struct bytes* a) {
  for (long i = 0; i < a->size; ++i) a->data[i] = a->data[i] / 2;
}

double NAME(last_value)(int n, double* a, const double* b) {
  double last = -1;
  int i;
  for (i = 0; i < n; ++i) {
    last = b[i] * 0.5;
    a[i] = last + 1;
  }
  return last + i;
}

double NAME(global)[1000];
static double hidden[1000];

double* NAME(global_table)(void) { return NAME(global); }

double* NAME(static_table)(void) { return hidden; }

// b may be the global array.
void NAME(global_smooth)(int n, const double* b) {
  for (int i = 0; i < n; ++i) NAME(global)[i + 50] = b[i + 51] * 0.5 + 1;
}

void NAME(static_smooth)(int n, int d) {
  for (int i = 0; i < n; ++i) hidden[i + 100] = hidden[i + 100 + d] * 0.5 + 1;
}

double NAME(on_stack)(int n, double* a) {
  double local[64];
  double sum = 0;
  for (int i = 0; i < 64; ++i) local[i] = i;
  for (int i = 0; i < n; ++i) local[i] = a[i] * 0.5 + local[63 - i];
  for (int i = 0; i < n; ++i) a[i] = local[i];
  for (int i = 0; i < 64; ++i) sum += local[i];
  return sum;
}

void NAME(pointer_end)(double* a, const double* b, const double* end) {
  while (b != end) *a++ = *b++ * 0.5;
}

// The first half reads what the second writes.
void NAME(reversed_pair)(int n, double* a) {
  for (int i = 0; i < n; ++i) a[i] = a[n - 1 - i] * 0.5 + 1;
}

void NAME(plane)(int n, int m, int k, double* a, const double* b) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j)
      for (int l = 0; l < k; ++l) a[(i * m + j) * k + l] = b[(i * k + l) * m + j] * 0.5;
}

// A row ends early, after one element at least.
void NAME(until_small)(int n, double (*a)[20], const double* b) {
  for (int i = 0; i < n; ++i) {
    int j = 0;
    do {
      a[i][j] = b[i + j] * 0.5;
      ++j;
    } while ((j < 20) & (b[i + j] > 0.2));
  }
}

// part is written anew by each i.
void NAME(scratch)(int n, int m, double* a, double* part, const double* b) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < m; ++j) part[j] = b[i * m + j] * 0.5;
    for (int j = 0; j < m; ++j) a[i * m + j] = part[m - 1 - j] + i;
  }
}

// No k, and part is what it was.
void NAME(scratch_of_steps)(int n, int m, int steps, double* a, double* part, const double* b) {
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < steps; ++k) {
      for (int j = 0; j < m; ++j) part[j] = b[j] * k + i;
      for (int j = 0; j < m; ++j) a[i * m + j] = part[j] + part[m - 1 - j];
    }
}

void NAME(scratch_sums)(int n, int m, int k, double* a, double* sum, const double* b) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < m; ++j) {
      sum[j] = 0;
      for (int l = 0; l < k; ++l) sum[j] += a[i * m + l] * b[l * m + j];
    }
    for (int j = 0; j < m; ++j) a[i * m + j] = sum[j];
  }
}

void NAME(scratch_rows)(int n, int m, int k, double* a, double (*part)[k], const double* b) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < m; ++j)
      for (int l = 0; l < k; ++l) part[j][l] = b[j + l + i] * 0.5;
    for (int j = 0; j < m; ++j)
      for (int l = 0; l < k; ++l) a[(i * m + j) * k + l] = part[m - 1 - j][k - 1 - l];
  }
}

// Read from where another i may have written it.
void NAME(scratch_of_more)(int n, int m, int k, double* a, double* part, const double* b) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < m; ++j) part[j] = b[i + j] * 0.5;
    for (int j = 0; j < k; ++j) a[i * k + j] = part[j] + i;
  }
}

void NAME(scratch_runs)(int n, int m, double* a, double* part, const double* b) {
  for (int i = 0; i < n; ++i) {
    part[0] = b[i];
    for (int j = 0; j < m; ++j) part[j + 1] = part[j] * 0.5 + b[j];
    a[i] = part[m < 0 ? 0 : m];
  }
}

// The first element that is read is of the iteration before.
void NAME(scratch_late)(int n, int m, double* a, double* part, const double* b) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) {
      a[i * m + j] = part[j] + i;
      part[j] = b[i + j] * 0.5;
    }
}

// Later iterations write fewer elements.
void NAME(scratch_triangle)(int n, double* a, double* part, const double* b) {
  for (int i = n - 1; i >= 0; --i) {
    for (int j = 0; j <= i; ++j) part[j] = b[i + j] * 0.5;
    for (int j = 0; j <= i; ++j) a[i * n + j] = part[i - j] + i;
  }
}

// Some iterations write one more.
void NAME(scratch_and_more)(int n, int m, double* a, double* part, const double* b) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < m; ++j) part[j] = b[i + j] * 0.5;
    if (b[i] > 0.5) part[m] = i;
    for (int j = 0; j < m; ++j) a[i * m + j] = part[m - 1 - j] + i;
  }
}

static float table[64];

void NAME(scratch_static)(int n, float* a, float* left) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < 64; ++j) table[j] = a[i] * j;
    for (int j = 0; j < 64; ++j) a[i] += table[63 - j];
  }
  for (int j = 0; j < 64; ++j) left[j] = table[j];
}
// The outermost loops of these are not parallel, but another order of them has loops that are, where rows are
// apart.
void NAME(factor)(int n, int m, double* a) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      for (int k = 0; k < j; ++k) a[i * m + j] -= 0.25 * a[i * m + k] * a[k * m + j];
      a[i * m + j] /= 2 + a[j * m + j] * a[j * m + j];
    }
    for (int j = i; j < n; ++j)
      for (int k = 0; k < i; ++k) a[i * m + j] -= 0.25 * a[i * m + k] * a[k * m + j];
  }
}

void NAME(factor_sums)(int n, int m, double* a, const double* d) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      double w = a[i * m + j];
      for (int k = 0; k < j; ++k) w -= 0.25 * a[i * m + k] * a[j * m + k];
      a[i * m + j] = w / (2 + d[j] * d[j]);
    }
  }
}

// Where j is p, b gets what the element was before the sum.
void NAME(factor_seen)(int n, int m, int p, double* a, double* b) {
  for (int i = 0; i < n; ++i) {
    for (int j = p; j < i; ++j) {
      double w = a[i * m + j];
      for (int k = 0; k < j; ++k) w -= 0.25 * a[i * m + k] * a[j * m + k];
      b[i * m + j] = a[i * m + p];
      a[i * m + j] = w / 2;
    }
  }
}

void NAME(factor_u32)(unsigned n, unsigned m, double* a) {
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < i; ++j) {
      for (unsigned k = 0; k < j; ++k) a[(int)(i * m + j)] -= 0.25 * a[(int)(i * m + k)] * a[(int)(j * m + k)];
      a[(int)(i * m + j)] /= 2 + a[(int)(j * m + j)] * a[(int)(j * m + j)];
    }
}

void NAME(solve)(int n, int m, const double* a, double* b) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) {
      for (int k = 0; k < i; ++k) b[i * m + j] -= 0.25 * a[i * n + k] * b[k * m + j];
      b[i * m + j] /= 2 + a[i * n + i] * a[i * n + i];
    }
}
