#include "worker/measure/host_data.h"

#include <cmath>
#include <cstring>
#include <mutex>

#include "worker/measure/parallel.h"

namespace fusion {
namespace {

constexpr int64_t kGrain = 1 << 16;  // entries per piece of work

template <class T>
void FillTyped(T* to, int64_t count, bool real, int bits, uint64_t key) {
  ParallelRanges(count, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(InputEntry(key, i, real, bits));
  });
}

template <class T>
Comparison CompareTyped(const T* output, const double* reference, int64_t count, double scale) {
  Comparison worst;
  std::mutex mutex;
  const int is_f32 = sizeof(T) == sizeof(float);
  ParallelRanges(count, kGrain, [&](int64_t begin, int64_t end) {
    Comparison mine;
    for (int64_t i = begin; i < end; ++i) {
      const double error = EntryError(output[i], ReferenceEntry(reference[i], is_f32), scale);
      if (error > mine.max_relative_error) mine = {error, i};
    }
    std::lock_guard lock(mutex);
    // The first of equally wrong entries, whatever the order of the threads.
    if (mine.max_relative_error > worst.max_relative_error ||
        (mine.worst_index >= 0 && mine.max_relative_error == worst.max_relative_error &&
         mine.worst_index < worst.worst_index))
      worst = mine;
  });
  return worst;
}

}  // namespace

void FillEntries(void* to, v1::DataType type, int64_t count, v1::ValueDomain domain, uint64_t key) {
  const bool real = domain == v1::REAL;
  if (type == v1::F64) {
    FillTyped(static_cast<double*>(to), count, real, InputBits(type), key);
  } else {
    FillTyped(static_cast<float*>(to), count, real, InputBits(type), key);
  }
}

void WidenEntries(double* to, const void* from, v1::DataType type, int64_t count) {
  ParallelRanges(count, kGrain, [=](int64_t begin, int64_t end) {
    if (type == v1::F64) {
      std::memcpy(to + begin, static_cast<const double*>(from) + begin, (end - begin) * sizeof(double));
    } else {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<const float*>(from)[i];
    }
  });
}

uint64_t HashBytes(const void* from, int64_t bytes, int64_t first_word) {
  const char* data = static_cast<const char*>(from);
  uint64_t sum = 0;
  std::mutex mutex;
  ParallelRanges(bytes / 8, kGrain, [&](int64_t begin, int64_t end) {
    uint64_t mine = 0;
    for (int64_t i = begin; i < end; ++i) {
      unsigned long long word;
      std::memcpy(&word, data + i * 8, 8);
      mine += HashWord(word, first_word + i);
    }
    std::lock_guard lock(mutex);
    sum += mine;
  });
  if (bytes % 8 != 0) {
    uint32_t tail;
    std::memcpy(&tail, data + bytes / 8 * 8, 4);
    sum += HashWord(tail, first_word + bytes / 8);
  }
  return sum;
}

ScaleParts Combine(const ScaleParts& a, const ScaleParts& b) {
  if (a.largest < b.largest) return Combine(b, a);
  ScaleParts sum = a;
  sum.finite += b.finite;
  if (b.largest > 0)
    sum.sum_of_squares += b.sum_of_squares * (b.largest / a.largest) * (b.largest / a.largest);
  return sum;
}

ScaleParts MeasureScale(const double* reference, v1::DataType type, int64_t count) {
  ScaleParts total;
  std::mutex mutex;
  ParallelRanges(count, kGrain, [&](int64_t begin, int64_t end) {
    ScaleParts mine;
    for (int64_t i = begin; i < end; ++i) {
      const double entry = std::abs(ReferenceEntry(reference[i], type == v1::F32));
      if (!IsFiniteEntry(entry)) continue;
      ++mine.finite;
      mine.largest = std::max(mine.largest, entry);
    }
    if (mine.largest > 0) {
      for (int64_t i = begin; i < end; ++i) {
        const double entry = ReferenceEntry(reference[i], type == v1::F32) / mine.largest;
        if (IsFiniteEntry(entry)) mine.sum_of_squares += entry * entry;
      }
    }
    std::lock_guard lock(mutex);
    total = Combine(total, mine);
  });
  return total;
}

double RootMeanSquare(const ScaleParts& parts) {
  return parts.finite == 0
             ? 0
             : parts.largest * std::sqrt(parts.sum_of_squares / static_cast<double>(parts.finite));
}

Comparison CompareEntries(const void* output, v1::DataType type, const double* reference, int64_t count,
                          double scale) {
  if (type == v1::F64) return CompareTyped(static_cast<const double*>(output), reference, count, scale);
  return CompareTyped(static_cast<const float*>(output), reference, count, scale);
}

}  // namespace fusion
