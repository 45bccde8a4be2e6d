/* Integers that loops sum up over their iterations. The comment before each loop is the whole remark on it. */
#include "tests/integration/partition/programs/sums.h"

#ifdef PLAIN
#define SUM(name) plain_##name
#else
#define SUM(name) name
#endif

int64_t SUM(added)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // loop partitioned: a (read), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) sum += a[i];
  return sum;
}

int32_t SUM(subtracted)(int32_t* a, int64_t n) {
  int32_t sum = (int32_t)n + 7;
  // loop partitioned: a (read), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) sum -= a[i] >> 20;
  return sum;
}

uint8_t SUM(bytes)(int32_t* a, int64_t n) {
  uint8_t sum = 3;
  // loop partitioned: a (read), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) sum += (uint8_t)a[i];
  return sum;
}

int16_t SUM(shorts)(int32_t* a, int64_t n) {
  int16_t sum = 0;
  // loop partitioned: a (read), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) sum += (int16_t)a[i];
  return sum;
}

int64_t SUM(counted)(int32_t* a, int64_t n) {
  int64_t count = 0;
  // loop partitioned: a (read), count (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++)
    if (a[i] > 1000) count++;
  return count;
}

int64_t SUM(either)(int32_t* a, int64_t n) {
  int64_t sum = a[0];
  // loop partitioned: a (read), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) {
    if (a[i] > 0) {
      sum += a[i] * (int64_t)5;
      if (a[i] % 3 == 0) sum -= i;
    } else {
      sum -= 2;
    }
  }
  return sum;
}

int64_t SUM(rows)(int32_t* a, int64_t n) {
  int64_t sum = 11;
  // loop partitioned: a (read), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n / 9; i++) {
    sum += i;
    for (int64_t j = 0; j < 9; j++) sum += a[i * 9 + j];
  }
  return sum;
}

int64_t SUM(triangle)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // loop partitioned: a (read), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i += 3)
    for (int64_t j = i; j < n; j++) sum += a[j] ^ i;
  return sum;
}

int32_t SUM(greatest)(int32_t* a, int64_t n) {
  int32_t greatest = -5;
  // loop partitioned: a (read), greatest (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++)
    if (a[i] > greatest) greatest = a[i];
  return greatest;
}

int32_t SUM(least)(int32_t* a, int64_t n) {
  int32_t least = 1 << 30;
  // loop partitioned: a (read), least (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) least = a[i] < least ? a[i] : least;
  return least;
}

uint32_t SUM(unsigned_greatest)(int32_t* a, int64_t n) {
  uint32_t greatest = 0;
  // loop partitioned: a (read), greatest (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) greatest = (uint32_t)a[i] > greatest ? (uint32_t)a[i] : greatest;
  return greatest;
}

uint32_t SUM(unsigned_least)(int32_t* a, int64_t n) {
  uint32_t least = UINT32_MAX;
  // loop partitioned: a (read), least (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) least = (uint32_t)a[i] < least ? (uint32_t)a[i] : least;
  return least;
}

uint32_t SUM(all_bits)(int32_t* a, int64_t n) {
  uint32_t all = 0xffff0fff;
  // loop partitioned: a (read), all (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) all &= (uint32_t)a[i] | 0xf00;
  return all;
}

uint32_t SUM(any_bits)(int32_t* a, int64_t n) {
  uint32_t any = 1;
  // loop partitioned: a (read), any (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) any |= (uint32_t)a[i] & 0xf0;
  return any;
}

uint64_t SUM(parity)(int32_t* a, int64_t n) {
  uint64_t parity = 0;
  // loop partitioned: a (read), parity (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) parity ^= (uint64_t)a[i] * 0x9e3779b97f4a7c15u;
  return parity;
}

int64_t SUM(two_sums)(int32_t* a, int64_t n) {
  int64_t sum = 0, squares = 2;
  // loop partitioned: a (read), squares (of all iterations), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) {
    sum += a[i];
    squares += (int64_t)(a[i] % 1000) * (a[i] % 1000);
  }
  return sum - 3 * squares;
}

int64_t SUM(sum_and_store)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // loop partitioned: a (read, written), sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) {
    a[i] = a[i] / 2 + 1;
    sum += a[i];
  }
  return sum;
}

int64_t SUM(store_of_next)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // not partitioned: iterations may share elements of a: one writes (line +1) what another reads (line +1)
  for (int64_t i = 0; i + 1 < n; i++) {
    a[i] = a[i + 1] / 2;
    sum += a[i];
  }
  return sum;
}

int64_t SUM(through_index)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // loop partitioned: a (read anywhere), sum (of all iterations); on the host alone, as it reads anywhere in a
  for (int64_t i = 0; i < n; i++) sum += a[(uint32_t)a[i] % (uint32_t)n];
  return sum;
}

int64_t SUM(of_no_array)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // loop partitioned: sum (of all iterations); on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n; i++) sum += (i * 2654435761) >> (i & 15);
  return sum + a[0];
}

static __attribute__((noinline)) int32_t* At(int32_t* a, int64_t place) { return a + place; }

int64_t SUM(overlapping)(int32_t* a, int64_t n) {
  int32_t *b = At(a, n / 2), *c = At(a, n / 3);
  int64_t sum = 0;
  // loop partitioned: call (read), call2 (written), sum (of all iterations); checked before each run: call apart from call2; on the host alone, as it sums up over its iterations
  for (int64_t i = 0; i < n / 2; i++) {
    c[i] = b[i] - 1;
    sum += c[i];
  }
  return sum;
}

int64_t SUM(product)(int32_t* a, int64_t n) {
  uint64_t product = 1;
  // not partitioned: product is carried from iteration to iteration
  for (int64_t i = 0; i < n; i++) product *= (uint64_t)a[i] | 1;
  return (int64_t)product;
}

int64_t SUM(value_used)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // not partitioned: sum is carried from iteration to iteration
  for (int64_t i = 0; i < n; i++) {
    sum += a[i];
    a[i] = (int32_t)sum;
  }
  return sum;
}

int64_t SUM(value_before)(int32_t* a, int64_t n) {
  int64_t sum = 0, before = 0;
  // not partitioned: sum is carried from iteration to iteration
  for (int64_t i = 0; i < n; i++) {
    before = sum;
    sum += a[i];
  }
  return sum - 2 * before;
}

int64_t SUM(reset)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // not partitioned: sum is carried from iteration to iteration
  for (int64_t i = 0; i < n; i++) {
    if (a[i] % 64 == 0) sum = 0;
    sum += a[i];
  }
  return sum;
}

int64_t SUM(doubled)(int32_t* a, int64_t n) {
  uint64_t sum = 1;
  // not partitioned: sum is carried from iteration to iteration
  for (int64_t i = 0; i < n; i++) sum += sum + (uint64_t)a[i];
  return (int64_t)sum;
}

int64_t SUM(reversed)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // not partitioned: sum is carried from iteration to iteration
  for (int64_t i = 0; i < n; i++) sum = a[i] - sum;
  return sum;
}

int64_t SUM(within)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // not partitioned: it sums up over its iterations, around a partitioned loop
  for (int64_t i = 0; i < n / 16; i++) {
    // loop partitioned: a (read, written)
    for (int64_t j = 0; j < 16; j++) a[i * 16 + j] += 1;
    sum += a[i * 16];
  }
  return sum;
}

int64_t SUM(few)(int32_t* a, int64_t n) {
  int64_t sum = 0;
  // not partitioned: it sums up over its iterations, and they are few
  for (int64_t i = 0; i < 16; i++) sum += a[i];
  return sum + n;
}
