#include "tests/property/functions/operand_shapes.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "library/catalog/definition_check.h"

namespace fusion::testing {
namespace {

Extent Constant(int64_t value) { return Extent{.name = "", .constant = value}; }

std::vector<OperandShapes> EntrywiseShapes(const Overload& overload, DataType data_type) {
  std::vector<OperandShapes> all;
  auto add = [&](const Type& any, const Type& scalar, int64_t elements) {
    OperandShapes shapes{.elements = elements};
    for (const Operand& operand : overload.operands) {
      shapes.types.push_back(operand.pattern.kind == TypePattern::Kind::kAny ? any : scalar);
    }
    all.push_back(std::move(shapes));
  };
  Type scalar = Type::Scalar(data_type);
  add(scalar, scalar, 1);
  for (int64_t n : {0, 1, 2, 7, 10007}) add(Type::Vector(data_type, Constant(n)), scalar, 1);
  for (int64_t rows : {0, 1, 5}) {
    for (int64_t columns : {0, 1, 7})
      add(Type::Matrix(data_type, Constant(rows), Constant(columns)), scalar, 1);
  }
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{{}, {1}, {5}, {1, 1}, {3, 2}}) {
    for (int64_t elements : {0, 1, 9}) {
      add(Type::Element(data_type, shape), scalar, elements);
      add(Type::Element(data_type, shape), Type::Element(data_type, {}), elements);
    }
  }
  return all;
}

std::vector<OperandShapes> CollectionShapes(const Overload& overload, DataType data_type) {
  std::vector<std::vector<int64_t>> sizes;
  if (overload.dimensions.size() < 2) {
    for (int64_t n : {0, 1, 2, 7, 1023, 100003}) sizes.push_back({n});
  } else {
    for (int64_t m : {0, 1, 2, 7, 33}) {
      for (int64_t n : {0, 1, 2, 7, 65}) sizes.push_back({m, n});
    }
    sizes.insert(sizes.end(), {{33, 33}, {257, 389}, {3, 20011}, {20011, 3}, {211, 211}});
  }
  auto equal = ParseEqualDimensions(overload.constraint, overload.dimensions).value();
  std::vector<OperandShapes> all;
  for (const std::vector<int64_t>& size : sizes) {
    bool fits = std::all_of(equal.begin(), equal.end(),
                            [&](auto pair) { return size[pair.first] == size[pair.second]; });
    if (!fits) continue;
    OperandShapes shapes;
    for (const Operand& operand : overload.operands) {
      Type type = Type::Scalar(data_type);
      for (int dimension : operand.pattern.dimensions) type.extents.push_back(Constant(size[dimension]));
      shapes.types.push_back(std::move(type));
    }
    all.push_back(std::move(shapes));
  }
  return all;
}

std::vector<OperandShapes> ElementShapes(const Overload& overload, DataType data_type,
                                         const std::vector<StaticParameters>& instances) {
  auto value_of = [&](const std::string& extent, const StaticParameters& instance) {
    if (std::isdigit(static_cast<unsigned char>(extent[0]))) return std::stoi(extent);
    auto it = std::find(overload.static_parameters.begin(), overload.static_parameters.end(), extent);
    return instance[it - overload.static_parameters.begin()];
  };
  std::vector<OperandShapes> all;
  for (const StaticParameters& instance : instances) {
    for (int64_t elements : {0, 1, 2, 5}) {
      for (bool broadcast_elements : {false, true}) {
        OperandShapes shapes{.elements = elements};
        for (const Operand& operand : overload.operands) {
          std::vector<int> shape;
          for (const std::string& extent : operand.pattern.shape) shape.push_back(value_of(extent, instance));
          bool element = operand.pattern.kind == TypePattern::Kind::kElement || broadcast_elements;
          shapes.types.push_back(element ? Type::Element(data_type, shape) : Type::Scalar(data_type));
        }
        all.push_back(std::move(shapes));
      }
    }
  }
  return all;
}

}  // namespace

std::vector<OperandShapes> ShapesOf(const Overload& overload, DataType data_type,
                                    const std::vector<StaticParameters>& instances) {
  switch (overload.form) {
    case v1::ENTRYWISE:
      return EntrywiseShapes(overload, data_type);
    case v1::ELEMENT:
      return ElementShapes(overload, data_type, instances);
    default:
      return CollectionShapes(overload, data_type);
  }
}

}  // namespace fusion::testing
