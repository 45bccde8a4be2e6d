// Parameters of any skeleton as numbers, texts and kernels of a message, and back, in the order in which
// their type lists its fields:
//
//   template <typename Archive> void Fields(Archive& archive) { archive(threads, load_path, kept); }
//
// A field is an integer, a flag, a load path or storage class, a value, an extent, a kernel, a type with
// Fields of its own, or a vector of those. Both ends are of one build.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fusion/v1/search.pb.h"
#include "server/graph/graph.h"
#include "server/plan/plan.h"
#include "server/skeletons/shared/load_path.h"

namespace fusion {

inline int64_t LastNumber(LoadPath) { return static_cast<int64_t>(kLastLoadPath); }

class ParameterWriter {
 public:
  explicit ParameterWriter(v1::FusionImplementation* message) : message_(message) {}

  template <typename... Types>
  void operator()(Types&... fields) {
    (Field(fields), ...);
  }

 private:
  template <typename Type>
  void Field(Type& field) {
    if constexpr (std::is_integral_v<Type> || std::is_enum_v<Type>)
      message_->add_numbers(static_cast<int64_t>(field));
    else
      field.Fields(*this);
  }
  void Field(ValueId& id) { message_->add_numbers(id.value); }
  void Field(Extent& extent) {
    message_->add_texts(extent.name);
    message_->add_numbers(extent.constant);
  }
  void Field(FusionImplementation& kernel);
  template <typename Type>
  void Field(std::vector<Type>& fields) {
    message_->add_numbers(static_cast<int64_t>(fields.size()));
    for (Type& field : fields) Field(field);
  }

  v1::FusionImplementation* const message_;
};

class ParameterReader {
 public:
  ParameterReader(const v1::FusionImplementation& message, const Graph& graph)
      : message_(message), graph_(graph) {}

  template <typename... Types>
  void operator()(Types&... fields) {
    (Field(fields), ...);
  }
  // Everything was there, named a value of the graph or a choice that there is, and nothing is left.
  bool Complete() const {
    return known_ && number_ == message_.numbers_size() && text_ == message_.texts_size() &&
           kernel_ == message_.kernels_size();
  }

 private:
  int64_t Number(int64_t least, int64_t most) {
    const int64_t number = number_ < message_.numbers_size() ? message_.numbers(number_) : most;
    known_ &= number_ < message_.numbers_size() && number >= least && number <= most;
    ++number_;
    return std::clamp(number, least, most);
  }
  template <typename Type>
  void Field(Type& field) {
    if constexpr (std::is_enum_v<Type>)
      field = static_cast<Type>(Number(0, LastNumber(field)));
    else if constexpr (std::is_integral_v<Type>)
      field = static_cast<Type>(Number(std::numeric_limits<Type>::min(), std::numeric_limits<Type>::max()));
    else
      field.Fields(*this);
  }
  void Field(ValueId& id) {
    id.value = static_cast<int>(Number(0, static_cast<int64_t>(graph_.values().size()) - 1));
  }
  void Field(Extent& extent) {
    known_ &= text_ < message_.texts_size();
    if (known_) extent.name = message_.texts(text_);
    ++text_;
    Field(extent.constant);
  }
  void Field(FusionImplementation& kernel);
  template <typename Type>
  void Field(std::vector<Type>& fields) {
    // The vector becomes no longer than there are numbers or kernels for.
    fields.resize(Number(0, message_.numbers_size() + message_.kernels_size()));
    for (Type& field : fields) Field(field);
  }

  const v1::FusionImplementation& message_;
  const Graph& graph_;
  int number_ = 0, text_ = 0, kernel_ = 0;  // positions of the next ones
  bool known_ = true;
};

}  // namespace fusion
