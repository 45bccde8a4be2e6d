// Chooses the variant that this processor can run.
#include "parts.h"

namespace polybench {

#define POLYBENCH_VARIANT(name)                                            \
  namespace name {                                                         \
  void MultiplyOnHost(int64_t begin, int64_t end, const Product& product); \
  void SumRowsOnHost(int64_t begin, int64_t end, const RowSums& sums);     \
  }
POLYBENCH_VARIANT(avx512)
POLYBENCH_VARIANT(avx2)
POLYBENCH_VARIANT(plain)

namespace {

struct Variant {
  const char* name;
  decltype(&plain::MultiplyOnHost) multiply;
  decltype(&plain::SumRowsOnHost) sum_rows;
};

const Variant& ThisProcessors() {
  static const Variant variant = [] {
    if (__builtin_cpu_supports("avx512f"))
      return Variant{"AVX-512", &avx512::MultiplyOnHost, &avx512::SumRowsOnHost};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      return Variant{"AVX2", &avx2::MultiplyOnHost, &avx2::SumRowsOnHost};
    }
    return Variant{"SSE2", &plain::MultiplyOnHost, &plain::SumRowsOnHost};
  }();
  return variant;
}

}  // namespace

void MultiplyOnHost(int64_t begin, int64_t end, const Product& product) {
  ThisProcessors().multiply(begin, end, product);
}
void SumRowsOnHost(int64_t begin, int64_t end, const RowSums& sums) {
  ThisProcessors().sum_rows(begin, end, sums);
}
const char* HostInstructions() { return ThisProcessors().name; }

}  // namespace polybench
