// Calls each hazard with many arguments, compiled by the plain and by the tested compiler, and compares all
// bytes.
//
//   hazards_driver        names of all groups
//   hazards_driver NAME   one group: a line for each call that differs, and how many calls there were
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/integration/partition/programs/hazards.h"

enum { COUNT = 40000, PAGE = 4096, PAGES = 4, MAPPED = PAGE * PAGES };

// The memory of one side. m is the middle of the buffer, cliff the end of mapped memory, fence the start of a
// page that may not be read, locked the start of one that may only be read.
struct world {
  double *buffer, *m;
  char *cliff, *fence, *locked;
  double result;
};

#define HAZARD_REFERENCE(result, name, parameters) reference_##name,
#define HAZARD_TESTED(result, name, parameters) tested_##name,
static const struct hazards reference = {HAZARDS(HAZARD_REFERENCE)};
static const struct hazards tested = {HAZARDS(HAZARD_TESTED)};

static struct world expected, got;
static double* start;
static const char* now = "";
static long first_value, second_value, calls, different;

static void crashed(int number) {
  char line[300];
  int length = snprintf(line, sizeof line, "CRASHED signal %d at %ld, %ld: %s\n", number, first_value,
                        second_value, now);
  if (write(1, line, (size_t)length) < 0) _exit(3);
  _exit(2);
}

static char* map(size_t bytes) {
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) exit(4);
  return memory;
}

static struct world make_world(void) {
  struct world w = {.buffer = (double*)map(COUNT * sizeof(double))};
  w.m = w.buffer + COUNT / 2;
  w.cliff = map(MAPPED + PAGE) + MAPPED;
  if (munmap(w.cliff, PAGE) != 0) exit(4);
  w.fence = map(MAPPED + PAGE) + MAPPED;
  if (mprotect(w.fence, PAGE, PROT_NONE) != 0) exit(4);
  w.locked = map(MAPPED + PAGE) + MAPPED;
  memcpy(w.locked, start, PAGE);
  if (mprotect(w.locked, PAGE, PROT_READ) != 0) exit(4);
  return w;
}

static void reset(struct world* w) {
  memcpy(w->buffer, start, COUNT * sizeof(double));
  memcpy(w->cliff - MAPPED, start, MAPPED);
  memcpy(w->fence - MAPPED, start, MAPPED);
  memcpy(w->locked - MAPPED, start, MAPPED);
  w->result = 0;
}

static void begin(const char* text, long x, long y) {
  now = text;
  first_value = x;
  second_value = y;
  reset(&expected);
  reset(&got);
}

static void end(void) {
  ++calls;
  if (memcmp(expected.buffer, got.buffer, COUNT * sizeof(double)) == 0 &&
      memcmp(&expected.result, &got.result, sizeof(double)) == 0 &&
      memcmp(expected.cliff - MAPPED, got.cliff - MAPPED, MAPPED) == 0 &&
      memcmp(expected.fence - MAPPED, got.fence - MAPPED, MAPPED) == 0 &&
      memcmp(expected.locked - MAPPED, got.locked - MAPPED, MAPPED) == 0)
    return;
  if (different++ < 5) printf("DIFFERS at %ld, %ld: %s\n", first_value, second_value, now);
}

// Makes the call with h and w of the plain compiler, then of the tested one; x and y are printed where it
// differs.
#define TRY(x, y, call)                     \
  do {                                      \
    begin(#call, x, y);                     \
    {                                       \
      const struct hazards* h = &reference; \
      struct world* w = &expected;          \
      call;                                 \
    }                                       \
    {                                       \
      const struct hazards* h = &tested;    \
      struct world* w = &got;               \
      call;                                 \
    }                                       \
    end();                                  \
  } while (0)

// Returns a pointer to `bytes` behind m.
static void* at(double* m, long bytes) { return (char*)m + bytes; }

static void overlaps(void) {
  for (int d = -80; d <= 80; d += d > -12 && d < 12 ? 1 : 7) {
    TRY(d, 0, h->shift(1000, w->m, w->m + d));
    TRY(d, 0, h->down(1000, w->m, w->m + d));
    TRY(d, 0, h->partial(1000, w->m, w->m + d));
    TRY(d, 0, h->shift(60, w->m, w->m + d));
    TRY(d, 0, h->rows(40, 40, w->m, w->m + d * 20));
    TRY(d, 0, h->rows(20, 30, w->m, w->m + d));
    TRY(d, 0, h->rows_u32(20, 30, w->m, w->m + d));
    TRY(d, 0, h->short_counter(50, w->m, w->m + d));
    TRY(d, 0, h->copies(30, w->m, w->m + d));
    TRY(d, 0, h->plane(7, 5, 6, w->m, w->m + d));
    TRY(d, 0, h->swapped(50, 5, w->m, w->m + d));
    TRY(d, 0, h->pointer_end(w->m, w->m + d, w->m + d + 70));
    TRY(d, 0, w->result = h->last_value(60, w->m, w->m + d));
    TRY(d, 0, w->result = h->early_exit(60, w->m, w->m + d));
  }
}

static void three_arrays(void) {
  for (int d = -60; d <= 60; d += 4)
    for (int e = -70; e <= 70; e += 5) TRY(d, e, h->three(30, w->m, w->m + d, w->m + e));
}

static void distances(void) {
  for (int n = -3; n <= 40; n += 3)
    for (int d = -45; d <= 45; d += d > -5 && d < 5 ? 1 : 4) {
      TRY(n, d, h->distance(n, d, w->m));
      TRY(n, d, h->static_smooth(n, d));
    }
}

static void sizes(void) {
  for (int n = -3; n <= 40; ++n) {
    TRY(n, 0, h->shift(n, w->m, w->m + 500));
    TRY(n, 0, h->down(n, w->m, w->m + 500));
    TRY(n, 0, h->step3(n, w->m));
    TRY(n, 0, h->triangle(n, w->m));
    TRY(n, 0, h->diagonal(n, w->m));
    TRY(n, 0, h->reversed_pair(n, w->m));
    TRY(n, 0, h->rows(n, 7, w->m, w->m + 5000));
    TRY(n, 0, h->rows(17, n, w->m, w->m + 5000));
    TRY(n, 0, h->rows(n, n, w->m, w->m));
    TRY(n, 0, h->plane(n, 5, n, w->m, w->m + 9000));
    TRY(n, 0, h->plane(5, n, 3, w->m, w->m + 9000));
    TRY(n, 0, h->negative_start(n, w->m));
    TRY(n, 0, h->short_counter((short)n, w->m, w->m + 500));
    TRY(n, 0, h->copies(n, w->m, w->m + 2));
    TRY(n, 0, h->swapped(n, 4, w->m, w->m + 500));
    TRY(n, 0, h->signs(n, 5, w->m));
    TRY(n, 0, h->signs(n, UINT_MAX, w->m));
    TRY(n, 0, w->result = h->on_stack(n, w->m));
    TRY(n, 0, w->result = h->last_value(n, w->m, w->m + 500));
    TRY(n, 0, w->result = h->early_exit(n, w->m, w->m + 500));
    if (n < 0) continue;
    TRY(n, 0, h->rows_u32((unsigned)n, 9, w->m, w->m + 3));
    TRY(n, 0, h->rows_u32((unsigned)n, 9, w->m, w->m + 5000));
    TRY(n, 0, h->byte_counter(n, w->m, w->m + 700));
    TRY(n, 0, h->top_counter(n, w->m));
  }
}

static void strides(void) {
  for (int s = -20; s <= 20; ++s) {
    TRY(s, 0, h->strided(60, s, w->m, w->m + 5000));
    TRY(s, 0, h->strided(60, s, w->m, w->m + 7));
    for (int t = -4; t <= 4; ++t) {
      TRY(s, t, h->strided_both(40, s, t, w->m, w->m + 5000));
      TRY(s, t, h->strided_both(40, s, t, w->m, w->m + 30));
      TRY(s, t, h->strided_both(40, s, t, w->m, w->m));
    }
  }
}

static void same_pointer(void) {
  for (int n = 0; n <= 40; ++n) {
    TRY(n, 0, h->transpose(n, w->m, w->m));
    TRY(n, 0, h->transpose(n, w->m, w->m + 1));
    TRY(n, 0, h->transpose(n, w->m, w->m + n * n));
    TRY(n, 0, h->transpose(n, w->m, w->m + n * n / 2));
    TRY(n, 0, h->shift(n, w->m, w->m));
    TRY(n, 0, h->down(n, w->m, w->m));
    TRY(n, 0, h->three(n, w->m, w->m, w->m));
    TRY(n, 0, h->plane(n / 3, 4, 5, w->m, w->m));
    TRY(n, 0, h->swapped(n, 3, w->m, w->m));
    TRY(n, 0, h->copies(n, w->m, w->m));
    TRY(n, 0, h->records(n, at(w->m, 0), at(w->m, 0)));
    TRY(n, 0, h->cells(n, at(w->m, 0), at(w->m, 0)));
    // A pointer into the middle beside its array.
    TRY(n, 0, h->shift(n, w->m, w->m + n / 2));
    TRY(n, 0, h->shift(n, w->m + n / 2, w->m));
    TRY(n, 0, h->partial(n, w->m + n / 2, w->m));
  }
}

static void long_rows(void) {
  for (int k = 0; k <= 70; k += 3) {
    TRY(k, 0, h->beyond_row(50, 30, (void*)w->m, k));
    TRY(k, 0, h->beyond_column(50, 30, (void*)w->m, k));
    TRY(k, 0, h->beyond_row(50, 1, (void*)w->m, k));
    TRY(k, 0, h->beyond_column(5, 1, (void*)w->m, k));
  }
}

static void bytes(void) {
  for (int d = -3000; d <= 3000; d += d > -20 && d < 20 ? 1 : 37) {
    TRY(d, 0, h->bytes_to_floats(700, at(w->m, d), at(w->m, 0)));
    TRY(d, 0, h->floats_to_bytes(700, at(w->m, d), at(w->m, 0)));
    TRY(d, 0, h->cell_bytes(200, at(w->m, 0), at(w->m, d)));
  }
}

static void members(void) {
  for (int d = -30; d <= 30; ++d) {
    TRY(d, 0, h->records(25, at(w->m, 0), at(w->m, d * (long)sizeof(struct record))));
    TRY(d, 0, h->cells(25, at(w->m, 0), at(w->m, d * (long)sizeof(union cell))));
    TRY(d, 0, h->record_parts(d, at(w->m, 0)));
  }
}

static void wraps_32(void) {
  for (unsigned n = 0; n <= 40; n += 4) {
    for (int d = -3; d <= 3; ++d) {
      TRY(n, d, h->wrap_u32(n, 2, 0x80000000u + (unsigned)(d < 0 ? 0 : d), 1000, w->m));
      TRY(n, d, h->wrap_u32(n, 1, (unsigned)d, 1000, w->m));
      TRY(n, d, h->wrap_u32(n, 1, (unsigned)(d * 5), 1000, w->m));
      TRY(n, d, h->wrap_u32(n, 4, 0x40000000u + (unsigned)d, 1000, w->m));
      TRY(n, d, h->wrap_u32(n, 4, 0xc0000000u + (unsigned)d, 1000, w->m));
    }
    TRY(n, 0, h->wrap_counter(0u - n, n, w->m + 100));
    TRY(n, 0, h->wrap_counter(0u - 20u, n, w->m));
  }
}

static void wraps_64(void) {
  for (size_t n = 0; n <= 40; n += 4)
    for (int d = 0; d <= 3; ++d) {
      size_t big = (size_t)1 << 63;
      TRY((long)n, d, h->wrap_u64(n, big + 5, big - 5 + (size_t)d, w->m));
      TRY((long)n, d, h->wrap_u64(n, 3 * (big >> 1), (big >> 1) + (size_t)d, w->m));
      TRY((long)n, d, h->wrap_mask(n, big + (size_t)d, w->m));
      TRY((long)n, d, h->wrap_mask(n, ((size_t)1 << 61) + (size_t)d, w->m));
      TRY((long)n, d, h->wrap_mask(n, (size_t)0 - 1 - (size_t)d, w->m));
    }
}

// Returns a mask of n numbers: some are 1 before `limit`, all are 0 from there on.
static int* mask(struct world* w, int n, int limit) {
  int* numbers = (int*)(w->m + 3000);
  for (int i = 0; i < n; ++i) numbers[i] = i < limit && i % 5 != 2;
  return numbers;
}

static double* before(char* edge, int elements) { return (double*)edge - elements; }

// Makes the call for many n and limit: elements from `limit` on lie behind the edge, and only a guard keeps
// the loop off them.
#define EACH_LIMIT(call)                           \
  for (int n = 0; n <= 900; n += n < 40 ? 3 : 143) \
    for (int limit = 0; limit <= n; limit += 1 + n / 7) TRY(n, limit, call)

static void cliff_by_count(void) {
  EACH_LIMIT(h->guarded_by_count(n, limit, w->m, before(w->cliff, limit)));
  EACH_LIMIT(h->guarded_by_count(n, limit, w->m, before(w->fence, limit)));
}

static void cliff_by_mask(void) {
  EACH_LIMIT(h->guarded_by_mask(n, w->m, before(w->cliff, limit), mask(w, n, limit)));
  EACH_LIMIT(h->guarded_by_mask(n, w->m, before(w->fence, limit), mask(w, n, limit)));
}

static void cliff_choice(void) {
  EACH_LIMIT(h->choice(n, w->m, before(w->cliff, limit), mask(w, n, limit)));
  EACH_LIMIT(h->choice(n, w->m, before(w->fence, limit), mask(w, n, limit)));
}

static void cliff_write(void) {
  EACH_LIMIT(h->guarded_write(n, before(w->cliff, limit), w->m, mask(w, n, limit)));
  EACH_LIMIT(h->guarded_write(n, before(w->fence, limit), w->m, mask(w, n, limit)));
}

static void locked_write(void) {
  EACH_LIMIT(h->guarded_write(n, before(w->locked, limit), w->m, mask(w, n, limit)));
}

static void locked_read(void) {
  EACH_LIMIT(
      h->guarded_by_mask(n, w->m, before(w->locked, n < 500 ? 0 : limit), mask(w, n, n < 500 ? n : limit)));
}

static void cliff_edges(void) {
  for (int n = 0; n <= 300; n += 12) {
    TRY(n, 0, h->shift(n, w->m, before(w->cliff, n)));
    TRY(n, 0, h->shift(n, before(w->cliff, n), w->m));
    TRY(n, 0, h->shift(n, before(w->locked, n), w->m));
    TRY(n, 0, h->shift(n, w->m, (double*)w->locked));
    TRY(n, 0, h->early_exit(2000, before(w->cliff, 0) - 800, before(w->cliff, 0) - 800));
  }
}

static void add_half(double* x) { *x += 0.5; }

static void refused(void) {
  for (int n = -3; n <= 40; ++n) {
    TRY(n, 0, h->flag(n, (int*)(w->m + 500), w->m));
    TRY(n, 0, h->flag(n, (int*)(w->m + 5), w->m));
    TRY(n, 0, h->unknown(n, w->m, add_half));
    TRY(n, 0, h->collatz(n, (int*)w->m, (int*)w->m + 500));
    TRY(n, 0, h->collatz(n, (int*)w->m, (int*)w->m + 3));
    for (int k = 1; k < 45; k += 6) TRY(n, k, h->folded(n, k, w->m, w->m + 500));
  }
}

static long double* wide_numbers(struct world* w, int n) {
  long double* numbers = (long double*)(w->m + 2000);
  memset(numbers, 0, 16 * (size_t)(n < 0 ? 0 : n) + 16);
  for (int i = 0; i < n; ++i) numbers[i] = (long double)i / 7;
  return numbers;
}

static void wide(void) {
  for (int n = -3; n <= 40; ++n) {
    TRY(n, 0, h->wide(n, (long double*)w->m, wide_numbers(w, n)));
    TRY(n, 0, h->wide(n - 1, wide_numbers(w, n) + 1, wide_numbers(w, n)));
  }
}

static void set_numbers(int* a, int n, int value) {
  for (int i = 0; i < n; ++i) a[i] = value + i % 3;
}

static void moving_bounds(void) {
  for (int n = 0; n <= 40; ++n) {
    TRY(n, 0, (set_numbers((int*)w->m, 200, n), h->shrinking((int*)w->m, w->m + 200)));
    for (int d = -5; d <= 45; d += 2)
      TRY(n, d, (set_numbers((int*)w->m, 200, n), h->bound_in_array((int*)w->m, (int*)w->m + d + 6)));
    for (int d = 0; d <= 50; d += 5)
      TRY(n, d, (set_numbers((int*)w->m, 400, n % 7), h->bound_of_row(n, (int*)w->m, (int*)w->m + d)));
  }
}

static void own_size(struct world* w, const struct hazards* h, int size, int place) {
  struct bytes* a = at(w->m, 0);
  a->size = size;
  a->data = (unsigned char*)a + place;
  h->own_size(a);
  a->data = NULL;
}

static void sizes_of_their_own(void) {
  for (int size = 0; size < 300; size += 7)
    for (int place = 16; place <= 24; ++place) TRY(size, place, own_size(w, h, size, place));
  for (int size = 0; size < 9; ++size) TRY(size, 0, own_size(w, h, size, 0));
  for (int size = 0; size < 300; size += 7) TRY(size, -300, own_size(w, h, size, -300));
}

// part lies before, in and behind the others.
static void scratch_overlaps(void) {
  for (int d = -420; d <= 420; d += d > -12 && d < 12 ? 1 : 20) {
    TRY(d, 0, h->scratch(20, 20, w->m, w->m + d, w->m + 3000));
    TRY(d, 0, h->scratch(20, 20, w->m + 3000, w->m + d, w->m));
    TRY(d, 0, h->scratch(20, 20, w->m, w->m + 3000, w->m + d));
    TRY(d, 0, h->scratch_sums(20, 20, 20, w->m, w->m + d, w->m + 3000));
    TRY(d, 0, h->scratch_sums(20, 20, 15, w->m + 3000, w->m + d, w->m));
    TRY(d, 0, h->scratch_rows(7, 6, 8, w->m, (double(*)[8])(w->m + d), w->m + 3000));
    TRY(d, 0, h->scratch_runs(20, 20, w->m, w->m + d, w->m + 3000));
  }
}

static void scratch_sizes(void) {
  for (int n = -1; n <= 10; ++n)
    for (int m = -2; m <= 9; ++m) {
      TRY(n, m, h->scratch(n, m, w->m, w->m + 1000, w->m + 2000));
      TRY(n, m, h->scratch(n, m, w->m, (double*)w->cliff - (m < 0 ? 0 : m), w->m + 2000));
      TRY(n, m, h->scratch_runs(n, m, w->m, w->m + 1000, w->m + 2000));
      TRY(n, m, h->scratch_late(n, m, w->m, w->m + 1000, w->m + 2000));
      TRY(n, m, h->scratch_triangle(n, w->m, w->m + 1000, w->m + 2000));
      TRY(n, m, h->scratch_and_more(n, m, w->m, w->m + 1000, w->m + 2000));
      TRY(n, m, h->scratch_static(n, (float*)w->m, (float*)(w->m + 1000)));
      for (int k = -2; k <= 9; ++k) {
        TRY(n * 100 + m, k, h->scratch_of_steps(n, m, k, w->m, w->m + 1000, w->m + 2000));
        TRY(n * 100 + m, k, h->scratch_sums(n, m, k, w->m, w->m + 1000, w->m + 2000));
        TRY(n * 100 + m, k, h->scratch_of_more(n, m, k, w->m, w->m + 1000, w->m + 2000));
        if (k > 0) TRY(n * 100 + m, k, h->scratch_rows(n, m, k, w->m, (double(*)[k])(w->m + 1000), w->m + 2000));
      }
    }
}

static void rows_that_end_early(void) {
  for (int n = -1; n <= 40; ++n)
    for (int d = 0; d < 60; d += 11) TRY(n, d, h->until_small(n, (double(*)[20])w->m, w->m + 2000 + d));
}

static void with_tables(const struct hazards* h, struct world* w, int n, int d) {
  memcpy(h->global_table(), w->m, 8000);
  memcpy(h->static_table(), w->m + 1000, 8000);
  h->global_smooth(n, d < 0 ? w->m : h->global_table() + d);
  h->static_smooth(n, d);
  h->shift(n, h->global_table() + 200, h->static_table() + d + 100);
  h->shift(n, h->global_table() + 300, h->global_table() + 300 + d);
  memcpy(w->m + 4000, h->global_table(), 8000);
  memcpy(w->m + 6000, h->static_table(), 8000);
}

static void tables(void) {
  for (int n = -3; n <= 40; n += 2)
    for (int d = -20; d <= 60; d += 3) TRY(n, d, with_tables(h, w, n, d));
}

static void with_stack(const struct hazards* h, struct world* w, int n, int d) {
  double local[300];
  struct record records[50];
  memcpy(local, w->m, sizeof local);
  memcpy(records, w->m + 1000, sizeof records);
  h->shift(n, local + 100, local + 100 + d);
  h->rows(n / 7, 5, local, w->m);
  h->rows(5, n / 7, w->m + 50, local + 9);
  h->records(n, records, records + (d < 0 ? 0 : d % 8));
  memcpy(w->m + 4000, local, sizeof local);
  memcpy(w->m + 5000, records, sizeof records);
}

static void stacks(void) {
  for (int n = -3; n <= 40; ++n)
    for (int d = -50; d <= 50; d += 3) TRY(n, d, with_stack(h, w, n, d));
}

// Rows that reach into each other, arrays that overlap, no rows and few.
static void orders(void) {
  for (int n = -3; n <= 12; ++n)
    for (int m = -3; m <= 14; ++m) {
      TRY(n, m, h->factor(n, m, w->m));
      TRY(n, m, h->factor_sums(n, m, w->m, w->m + 500));
      TRY(n, m, h->factor_sums(n, m, w->m, w->m + m * 3));
      for (int p = 0; p < 9; p += 2) TRY(n, m, h->factor_seen(n, m, p, w->m, w->m + 500));
      if (n >= 0) TRY(n, m, h->factor_u32((unsigned)n, (unsigned)m, w->m));
      TRY(n, m, h->solve(n, m, w->m + 500, w->m));
      TRY(n, m, h->solve(n, m, w->m, w->m));
    }
  for (int d = -160; d <= 160; d += 3) TRY(d, 0, h->solve(12, 12, w->m + d, w->m));
}

static const struct {
  const char* name;
  void (*run)(void);
} groups[] = {{"overlaps", overlaps},
              {"three_arrays", three_arrays},
              {"distances", distances},
              {"sizes", sizes},
              {"strides", strides},
              {"same_pointer", same_pointer},
              {"long_rows", long_rows},
              {"bytes", bytes},
              {"members", members},
              {"wraps_32", wraps_32},
              {"wraps_64", wraps_64},
              {"cliff_by_count", cliff_by_count},
              {"cliff_by_mask", cliff_by_mask},
              {"cliff_choice", cliff_choice},
              {"cliff_write", cliff_write},
              {"locked_write", locked_write},
              {"locked_read", locked_read},
              {"cliff_edges", cliff_edges},
              {"refused", refused},
              {"wide", wide},
              {"moving_bounds", moving_bounds},
              {"sizes_of_their_own", sizes_of_their_own},
              {"rows_that_end_early", rows_that_end_early},
              {"scratch_overlaps", scratch_overlaps},
              {"scratch_sizes", scratch_sizes},
              {"tables", tables},
              {"stacks", stacks},
              {"orders", orders}};

static void prepare(void) {
  start = (double*)map(COUNT * sizeof(double));
  for (int i = 0; i < COUNT; ++i) start[i] = rand() / (double)RAND_MAX;
  expected = make_world();
  got = make_world();
  int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) signal(numbers[i], crashed);
  setvbuf(stdout, NULL, _IOLBF, 0);
  alarm(120);
}

int main(int count, char** words) {
  if (count < 2) {
    for (size_t i = 0; i < sizeof groups / sizeof *groups; ++i) puts(groups[i].name);
    return 0;
  }
  prepare();
  for (size_t i = 0; i < sizeof groups / sizeof *groups; ++i)
    if (strcmp(groups[i].name, words[1]) == 0) groups[i].run();
  printf("CALLS %ld, %ld differ\n", calls, different);
  return different != 0;
}
