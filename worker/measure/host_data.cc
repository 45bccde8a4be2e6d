#include "worker/measure/host_data.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "worker/measure/parallel.h"

namespace fusion {
namespace {

constexpr int64_t kGrain = 1 << 16;  // entries per piece of work

template <class T>
void FillTyped(T* to, int64_t count, const InputRule& rule, uint64_t key) {
  ParallelRanges(count, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(InputEntry(rule, key, i));
  });
}

template <class T>
Comparison CompareTyped(const T* output, const double* reference, int64_t count, double scale,
                        const double* excused) {
  Comparison worst;
  std::mutex mutex;
  const int is_f32 = std::is_same_v<T, float>;
  ParallelRanges(count, kGrain, [&](int64_t begin, int64_t end) {
    Comparison mine;
    for (int64_t i = begin; i < end; ++i) {
      const double error = EntryError(output[i], ReferenceEntry(reference[i], is_f32), scale,
                                      excused == nullptr ? 0.0 : excused[i]);
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

void FillEntries(void* to, v1::DataType type, int64_t count, const InputRule& rule, uint64_t key) {
  if (type == v1::F64) {
    FillTyped(static_cast<double*>(to), count, rule, key);
  } else if (type == v1::I32) {
    FillTyped(static_cast<int32_t*>(to), count, rule, key);
  } else {
    FillTyped(static_cast<float*>(to), count, rule, key);
  }
}

void WidenEntries(double* to, const void* from, v1::DataType type, int64_t count) {
  ParallelRanges(count, kGrain, [=](int64_t begin, int64_t end) {
    if (type == v1::F64) {
      std::memcpy(to + begin, static_cast<const double*>(from) + begin, (end - begin) * sizeof(double));
    } else if (type == v1::I32) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<const int32_t*>(from)[i];
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

ReferenceFigures FiguresOf(const ScaleParts& parts) {
  ReferenceFigures figures;
  figures.largest = parts.largest;
  figures.finite = parts.finite;
  if (parts.finite > 0)
    figures.scale = parts.largest * std::sqrt(parts.sum_of_squares / static_cast<double>(parts.finite));
  return figures;
}

Comparison CompareEntries(const void* output, v1::DataType type, const double* reference, int64_t count,
                          double scale, const double* excused) {
  if (type == v1::F64)
    return CompareTyped(static_cast<const double*>(output), reference, count, scale, excused);
  if (type == v1::I32)
    return CompareTyped(static_cast<const int32_t*>(output), reference, count, scale, excused);
  return CompareTyped(static_cast<const float*>(output), reference, count, scale, excused);
}

void PerturbEntries(double* entries, int64_t count, double most, uint64_t key) {
  ParallelRanges(count, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) entries[i] = PerturbedEntry(entries[i], most, key, i);
  });
}

void ExcuseEntries(double* excused, const double* reference, const double* other, v1::DataType type,
                   int64_t count, double factor, bool is_first) {
  const int is_f32 = type == v1::F32;
  ParallelRanges(count, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double difference =
          factor * EntryDifference(ReferenceEntry(reference[i], is_f32), ReferenceEntry(other[i], is_f32));
      excused[i] = is_first ? difference : std::max(excused[i], difference);
    }
  });
}

}  // namespace fusion
