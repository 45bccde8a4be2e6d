/* A loop divided between two threads, as in figure 5.2 of the AtuneRT work: where to divide it is tuned while the program runs.
 *
 *   tuning_partition [--seconds S] [--size N]
 *
 * Iteration i costs about i, so half of the iterations is far from half of the work. The server is found as fusion_tuner_create
 * does: $FUSION_SERVER, else the configuration of fusion-client, else one in this process ($FUSION_DATA_DIR). */
#define _POSIX_C_SOURCE 200112L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/tuner/fusion_tuner.h"

/* Of the loop, by which it is divided. */
enum { LEAST_STEPS = 64, MOST_STEPS = 2 * LEAST_STEPS };

static double *result;

static void loop(int64_t begin, int64_t end) {
  int64_t i, k;
  for (i = begin; i < end; ++i) {
    double sum = 0;
    for (k = 1; k <= i; ++k) sum += 1.0 / (double)(k * (k + 1));
    result[i] = sum;
  }
}

struct part {
  int64_t begin, end;
};

static void *run_part(void *argument) {
  const struct part *part = argument;
  loop(part->begin, part->end);
  return NULL;
}

/* The loop from 0 to n, from `split` on in this thread. */
static void divided_loop(int64_t split, int64_t n) {
  struct part first;
  pthread_t thread;
  first.begin = 0;
  first.end = split;
  if (pthread_create(&thread, NULL, run_part, &first) != 0) {
    loop(0, n);
    return;
  }
  loop(split, n);
  pthread_join(thread, NULL);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The shortest of some runs. */
static double time_of(int64_t split, int64_t n) {
  double best = 1e300;
  int run;
  for (run = 0; run < 7; ++run) {
    const double start = now();
    divided_loop(split, n);
    if (now() - start < best) best = now() - start;
  }
  return best;
}

static int usage(void) {
  fprintf(stderr, "usage: tuning_partition [--seconds S] [--size N]\n");
  return 2;
}

int main(int argc, char **argv) {
  double seconds = 5, end;
  int64_t n = 3000, split, step, i, used = 0;
  long runs = 0, uses[MOST_STEPS] = {0};
  int argument;
  for (argument = 1; argument < argc; argument += 2) {
    if (argument + 1 == argc) return usage();
    if (strcmp(argv[argument], "--seconds") == 0)
      seconds = atof(argv[argument + 1]);
    else if (strcmp(argv[argument], "--size") == 0)
      n = atol(argv[argument + 1]);
    else
      return usage();
  }
  if (n < LEAST_STEPS || n > 100000 || !(seconds > 0)) return usage();
  step = n / LEAST_STEPS;
  result = malloc((size_t)n * sizeof(*result));
  if (result == NULL) return 1;

  for (end = now() + seconds; now() < end; ++runs) {
    split = fusion_get_partition_parameter("triangle", 0, n, step);
    if (fusion_start_measurements("triangle") != FUSION_TUNER_OK) {
      fprintf(stderr, "error: %s\n", fusion_tuner_message());
      return 1;
    }
    divided_loop(split, n);
    fusion_stop_measurements("triangle");
    ++uses[split / step];
  }
  /* The last split may have been one that was tried. Most runs had the best one that was known. */
  for (i = 0; i < MOST_STEPS; ++i)
    if (uses[i] > uses[used]) used = i;
  split = used * step;
  for (i = 0; i < n; ++i)
    if (result[i] < 0 || result[i] > 1) {
      fprintf(stderr, "error: the loop is wrong at %ld\n", (long)i);
      return 1;
    }

  {
    /* The middle of the steps is what the library says while nothing is known. */
    const int64_t middle = n / step / 2 * step;
    const double middle_time = time_of(middle, n), split_time = time_of(split, n);
    printf("runs     %ld\n", runs);
    printf("default  split at %ld of %ld: %.1f us\n", (long)middle, (long)n, middle_time * 1e6);
    printf("tuned    split at %ld of %ld: %.1f us\n", (long)split, (long)n, split_time * 1e6);
  }
  free(result);
  return 0;
}
