// Types of variables: scalars, vectors and matrices of a named size, and lists of small elements.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/catalog.pb.h"

namespace fusion {

using v1::DataType;

// 4 for F32, 8 for F64.
int DataTypeBytes(DataType data_type);
// "float" or "double": the name in generated code.
const char* DataTypeCName(DataType data_type);

// Values of the named sizes of a graph.
using SizeValues = std::map<std::string, int64_t>;

// One dimension of a collection: a named size ("n") or a constant (then name is empty).
struct Extent {
  std::string name;
  int64_t constant = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
  friend auto operator<=>(const Extent&, const Extent&) = default;
  std::string ToString() const;  // "n" or "512"
  // Requires a named size to be present.
  int64_t Size(const SizeValues& sizes) const { return name.empty() ? constant : sizes.at(name); }
};

// The dimension along which mapped lists extend.
inline constexpr char kElementsSize[] = "elements";
inline constexpr int64_t kDefaultElements = 31744;  // Fousek 2010, section 5.2

// A collection (mapped == false): extents.size() is 0 for a scalar, 1 for a vector, 2 for a matrix [rows,
// columns], row major. A list of elements (mapped == true): extents == {"elements"}; element_shape is {} for
// SCALAR, {n} for VECTORn, {rows, columns} for MATRIXrxc; entries of an element are contiguous, row major
// (array of structures).
struct Type {
  DataType data_type = v1::F32;
  bool mapped = false;
  std::vector<int> element_shape;
  std::vector<Extent> extents;

  static Type Scalar(DataType data_type);
  static Type Vector(DataType data_type, Extent n);
  static Type Matrix(DataType data_type, Extent rows, Extent columns);
  static Type Element(DataType data_type, std::vector<int> shape);

  bool is_scalar() const { return !mapped && extents.empty(); }
  // Entries of one element (1 for collections).
  int element_entries() const;
  // All entries at the given sizes. Requires every named size to be present.
  int64_t Entries(const SizeValues& sizes) const;
  int64_t Bytes(const SizeValues& sizes) const { return Entries(sizes) * DataTypeBytes(data_type); }
  // Returns the type as declared in a .fuse file: "matrix[m,n]", "MATRIX3x3", "f64 vector[n]".
  std::string ToString() const;

  friend bool operator==(const Type&, const Type&) = default;
};

}  // namespace fusion
