/* Calls each function of sums.c with numbers of several sizes, and its plain copy with the same: prints what differs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/integration/partition/programs/sums.h"

enum { kMost = 20011 };

static int32_t numbers[kMost], plain_numbers[kMost];
static int calls, different;

static void Fill(uint64_t seed) {
  for (int i = 0; i < kMost; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    numbers[i] = (int32_t)(seed >> 33) - (1 << 30);
  }
  memcpy(plain_numbers, numbers, sizeof numbers);
}

static void Compare(const char* name, int64_t n, int64_t result, int64_t plain_result) {
  calls++;
  if (result == plain_result && memcmp(numbers, plain_numbers, sizeof numbers) == 0) return;
  different++;
  printf("%s(%" PRId64 "): %" PRId64 ", not %" PRId64 "\n", name, n, result, plain_result);
}

int main(void) {
  static const int64_t sizes[] = {-3, 0, 1, 2, 3, 10, 65, 1000, 4097, kMost};
  for (unsigned at = 0; at < sizeof sizes / sizeof *sizes; at++) {
    const int64_t n = sizes[at];
#define COMPARE(type, name) \
  Fill(at);                 \
  Compare(#name, n, (int64_t)name(numbers, n), (int64_t)plain_##name(plain_numbers, n));
    SUMS(COMPARE)
  }
  printf("CALLS %d, %d differ\n", calls, different);
  return different != 0;
}
