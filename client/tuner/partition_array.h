// The arrays that the iterations of a split loop touch in the host's memory. C++17.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fusion {

// Says what iterations touch of one array in the host's memory. Bytes that no iteration of the device touches
// are not copied.
class PartitionArray {
 public:
  // Iteration i reads row i. It may also read the rows before: the device has the first iterations, so they
  // are there. Row i begins at data + i * stride, and `length` elements of it are touched; stride 0: rows lie
  // side by side.
  template <class T>
  static PartitionArray ReadRows(const T* data, int64_t rows, int64_t length, int64_t stride = 0) {
    return Rows(const_cast<T*>(data), sizeof(T), rows, length, stride, true, false);
  }
  // Iteration i writes all of row i, and nothing reads what was there: it is not uploaded.
  template <class T>
  static PartitionArray WriteRows(T* data, int64_t rows, int64_t length, int64_t stride = 0) {
    return Rows(data, sizeof(T), rows, length, stride, false, true);
  }
  // Iteration i reads and writes row i.
  template <class T>
  static PartitionArray ReadWriteRows(T* data, int64_t rows, int64_t length, int64_t stride = 0) {
    return Rows(data, sizeof(T), rows, length, stride, true, true);
  }
  // Every iteration may read all of the array. It is uploaded by the first run that has iterations on the
  // device, and again by the next such run after PartitionedLoop::MarkChanged.
  template <class T>
  static PartitionArray ReadWhole(const T* data, int64_t count) {
    PartitionArray array = Rows(const_cast<T*>(data), sizeof(T), 1, count, 0, true, false);
    array.whole = true;
    return array;
  }
  // Only the first i + 1 elements of row i are touched. Not for WriteRows: copies are a little wider than the
  // triangle, and what lies beside it must come back as it went.
  PartitionArray LowerTriangle() const {
    PartitionArray array = *this;
    array.triangle_bytes = element_bytes;
    return array;
  }

  int64_t bytes() const { return rows == 0 ? 0 : (rows - 1) * stride_bytes + row_bytes; }
  // Returns how many bytes iterations [.., end) touch of each row at most.
  int64_t width_bytes(int64_t end) const {
    return triangle_bytes == 0 ? row_bytes : std::min(row_bytes, end * triangle_bytes);
  }

  char* host = nullptr;
  int64_t element_bytes = 0, rows = 0, row_bytes = 0, stride_bytes = 0;
  int64_t triangle_bytes = 0;  // 0: not a triangle
  bool read = false, written = false, whole = false;

 private:
  static PartitionArray Rows(void* data, int64_t element_bytes, int64_t rows, int64_t length, int64_t stride,
                             bool read, bool written) {
    PartitionArray array;
    array.host = static_cast<char*>(data);
    array.element_bytes = element_bytes;
    array.rows = rows;
    array.row_bytes = length * element_bytes;
    array.stride_bytes = (stride == 0 ? length : stride) * element_bytes;
    array.read = read;
    array.written = written;
    return array;
  }
};

}  // namespace fusion
