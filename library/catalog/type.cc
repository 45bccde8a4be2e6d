#include "library/catalog/type.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace

int DataTypeBytes(DataType data_type) { return data_type == v1::F64 ? 8 : 4; }

const char* DataTypeCName(DataType data_type) { return data_type == v1::F64 ? "double" : "float"; }

std::string Extent::ToString() const { return name.empty() ? absl::StrCat(constant) : name; }

Type Type::Scalar(DataType data_type) { return Type{.data_type = data_type}; }

Type Type::Vector(DataType data_type, Extent n) {
  return Type{.data_type = data_type, .extents = {std::move(n)}};
}

Type Type::Matrix(DataType data_type, Extent rows, Extent columns) {
  return Type{.data_type = data_type, .extents = {std::move(rows), std::move(columns)}};
}

Type Type::Element(DataType data_type, std::vector<int> shape) {
  return Type{.data_type = data_type,
              .mapped = true,
              .element_shape = std::move(shape),
              .extents = {Extent{.name = kElementsSize}}};
}

int Type::element_entries() const {
  int entries = 1;
  for (int extent : element_shape) entries *= extent;
  return entries;
}

int64_t Type::Entries(const SizeValues& sizes) const {
  int64_t entries = element_entries();
  for (const Extent& extent : extents) entries = SaturatingMultiply(entries, extent.Size(sizes));
  return entries;
}

std::string Type::ToString() const {
  const char* prefix = data_type == v1::F64 ? "f64 " : "";
  if (mapped) {
    static constexpr const char* kNames[] = {"SCALAR", "VECTOR", "MATRIX"};
    return absl::StrCat(prefix, kNames[element_shape.size()], absl::StrJoin(element_shape, "x"));
  }
  static constexpr const char* kNames[] = {"scalar", "vector", "matrix"};
  std::string text = absl::StrCat(prefix, kNames[extents.size()]);
  if (extents.empty()) return text;
  return absl::StrCat(
      text, "[",
      absl::StrJoin(extents, ",", [](std::string* out, const Extent& e) { out->append(e.ToString()); }), "]");
}

}  // namespace fusion
