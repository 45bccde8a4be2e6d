// Filling, converting, hashing and comparing arrays in host memory, on all cores. Formulas:
// entry_operations.h.
#pragma once

#include <cstdint>

#include "fusion/v1/catalog.pb.h"
#include "worker/measure/execution_backend.h"

namespace fusion {

void FillEntries(void* to, v1::DataType type, int64_t count, const InputRule& rule, uint64_t key);
void WidenEntries(double* to, const void* from, v1::DataType type, int64_t count);
// Words from `first_word` on, so that a large array can be hashed piece by piece (the sum of its pieces).
// bytes is a multiple of 8, or of 4 in the last piece.
uint64_t HashBytes(const void* from, int64_t bytes, int64_t first_word = 0);

// Sums of squares of finite entries, relative to the largest, so that nothing overflows.
struct ScaleParts {
  double largest = 0;
  double sum_of_squares = 0;  // of entry / largest
  int64_t finite = 0;
};
ScaleParts MeasureScale(const double* reference, v1::DataType type, int64_t count);
ScaleParts Combine(const ScaleParts& a, const ScaleParts& b);
ReferenceFigures FiguresOf(const ScaleParts& parts);

// `excused` may be null.
Comparison CompareEntries(const void* output, v1::DataType type, const double* reference, int64_t count,
                          double scale, const double* excused);
void PerturbEntries(double* entries, int64_t count, double most, uint64_t key);
void ExcuseEntries(double* excused, const double* reference, const double* other, v1::DataType type,
                   int64_t count, double factor, bool is_first);

}  // namespace fusion
