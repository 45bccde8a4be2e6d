// Words of the .fuse language: keywords, and types of elements such as MATRIX3x3.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fusion {

inline constexpr int kLargestElementSize = 32;
inline constexpr size_t kLongestName = 200;

// Keywords are size, input, return, scalar, vector, matrix, f32 and f64.
bool IsKeyword(absl::string_view word);

// SCALAR -> {}, VECTOR3 -> {3}, MATRIX3x5 -> {3, 5}; nullopt when the word has none of these forms. Sizes
// that are not in [1, kLargestElementSize] are given as 0.
std::optional<std::vector<int>> ElementShape(absl::string_view word);

// Says what is wrong with a word where a type is expected, with the word meant where one is near.
std::string UnknownTypeMessage(absl::string_view word, bool may_suggest);

// Says what is wrong with `word` as the name of a size or variable; "" when nothing is.
std::string BadNameMessage(absl::string_view word);

}  // namespace fusion
