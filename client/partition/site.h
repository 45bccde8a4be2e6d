// The interface between programs that fusion-cc compiled and libfusion_partition.so: what the compiler says
// to the run time. Both sides must have the same version of it.
#pragma once

#ifdef __cplusplus
#include <cstdint>
extern "C" {
#else
#include <stdint.h>
#endif

enum { FUSION_PARTITION_VERSION = 5 };

// The loop's iterations `first` .. `last - 1`, in order. What they read of the function around the loop is in
// `context`.
typedef void (*fusion_partition_body)(int64_t first, int64_t last, void* context);

enum {
  FUSION_PARTITION_READ = 1,
  FUSION_PARTITION_WRITTEN = 2,
  // Not every iteration makes this access, or not at all bytes of its range: some of the range may belong to
  // another object or to none. Without this flag the range is touched from its first byte to its last.
  FUSION_PARTITION_PARTIAL = 4,
  // It is not known before the loop runs which bytes are read. None of the array is written. The four
  // numbers are 0. No other memory has a copy of such an array: these loops run on the host.
  FUSION_PARTITION_UNBOUNDED = 8,
  // All accesses of the array have it, or none. Each iteration writes what it reads of the array before it
  // reads it, and all iterations write the same bytes: those of the ranges that are written and not partial.
  // Calls of the body that run at the same time need memory of their own for the array, and it is left as the
  // last iteration has it. For calls of two iterations at least. Such a loop has no kernel, and no sums.
  FUSION_PARTITION_PRIVATE = 16,
};

// A load or store, or several with the same range.
typedef struct fusion_partition_access {
  uint32_t array;  // which one
  uint32_t flags;  // FUSION_PARTITION_READ and the others
} fusion_partition_access;

// A pointer in the context. On a device it points as far behind the copy of its array as it does behind the
// array.
typedef struct fusion_partition_pointer {
  uint32_t offset;  // in the context, bytes
  uint32_t array;
} fusion_partition_pointer;

// Two arrays that the compiler could not prove apart, one of which is written at least.
typedef struct fusion_partition_pair {
  uint32_t first, second;  // arrays
} fusion_partition_pair;

// One loop of the program, or a nest that has a copy in another order: then there is no body, and no context.
// All but `state` is constant.
typedef struct fusion_partition_site {
  uint32_t version;  // FUSION_PARTITION_VERSION
  uint32_t line, column;
  uint32_t context_bytes;
  const char* file;
  const char* function;
  fusion_partition_body body;
  uint32_t arrays, accesses, pointers, pairs;  // how many
  const fusion_partition_access* access;
  const fusion_partition_pointer* pointer;
  const fusion_partition_pair* pair;
  // PTX of all kernels of the file, a text that ends in 0, and this loop's in it. Null: there is none. A
  // kernel has the parameters int64_t first, int64_t last and the context's bytes, aligned to 8: thread t of
  // a grid of one dimension runs iteration first + t where that is below last.
  const char* device_code;
  const char* kernel;
  // 1: an iteration of the loop consists of columns that may run at the same time. Two numbers of the
  // facts are e0 and e1: the greatest column of iteration i is e0 + e1 * i, none where that is negative; what
  // an iteration does beside its columns is done with each of them, and with column 0 where there are none.
  // The kernel has them as further parameters: thread (x, y) of the grid runs column x of the iterations
  // first + y, first + y + the grid's height, ...
  uint32_t has_columns;
  // Integers that the loop sums up are in the context, and a call of the body adds its iterations' part
  // there, in one piece: several threads may do so. How many there are; 0: the context is only read. Such a
  // loop has no kernel, and its body runs on the host alone.
  uint32_t sums;
  // 1: what the loop reads and writes may stay on the device: where fusion_partition_open is not 0 the thread
  // calls fusion_partition_sync or fusion_partition_touch before it touches memory again, but for what these
  // calls need, be it in this loop as it was written.
  uint32_t may_stay;
  void* state;  // the run time's own, null at first
} fusion_partition_site;

// Loops of less work, in instructions, are not worth a call: the compiled code asks before anything else.
extern double fusion_partition_least_work;

// Not 0: some thread's loops have results that are not in the host's memory, or may come to have them.
extern int fusion_partition_open;

// The calling thread is about to touch memory: what its loops have written is there when it returns.
void fusion_partition_sync(void);

// The calling thread is about to touch these bytes alone: results of its loops stay on the device where that
// has no copy of them.
void fusion_partition_touch(const void* address, int64_t bytes, int written);

// Runs the loop's `iterations` (at least 1) and returns 1, or does nothing and returns 0: then the caller
// runs it. work: an estimate of the loop's instructions. facts: the addresses of all arrays, then four
// numbers for each access, c0, c1, d0, d1: iteration i touches bytes c0 + c1 * i up to and without d0 + d1 *
// i behind the array's address; then the two of the columns, where there are columns; then the bits of a
// double, an estimate of the first iteration's instructions. Any thread may call it.
int fusion_partition_enter(fusion_partition_site* site, int64_t iterations, double work, void* context,
                           const int64_t* facts);

// Returns 1 when the nest is to run in its other order, in which more of it is partitioned, and 0 when as
// written. Its iterations, work and facts are those of its outermost loop. Any thread may call it.
int fusion_partition_reorders(fusion_partition_site* site, int64_t iterations, double work,
                              const int64_t* facts);

// A loop of enough work whose conditions do not hold is counted: the caller runs it.
void fusion_partition_refuse(fusion_partition_site* site);

#ifdef __cplusplus
}
#endif
