// Arrays as NumPy saves them: .npy files of the format versions 1 to 3
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fusion/v1/catalog.pb.h"

namespace fusion {

struct NpyHeader {
  std::string data_type;  // as NumPy has it: "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
  int64_t data_offset = 0;  // bytes from the beginning of the file to the first entry
  int64_t entries = 0;
};

// Reads the header and checks it against the size of the file, which must be a regular one. InvalidArgument
// begins with the path and says what is wrong: no such file, no .npy, a type or byte order that is not read,
// a file that is cut off.
absl::StatusOr<NpyHeader> ReadNpyHeader(const std::string& path);

// The entries row by row (the last dimension fastest, whatever order the file has), in the type, little
// endian. f64 numbers are rounded to f32; whole numbers and truth values must be numbers of the type, and all
// numbers those of an I32.
// InvalidArgument: one is not, or is too large for f32; the message says which.
absl::StatusOr<std::string> ReadNpyEntries(const std::string& path, const NpyHeader& header,
                                           v1::DataType type);

// "(3, 4)", "(5,)", "()", as Python writes it.
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace fusion
