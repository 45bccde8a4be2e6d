// Makes names that nobody else has.
#pragma once

#include <random>
#include <string>

#include "absl/strings/str_format.h"

namespace fusion {

// Returns 32 random bits a word, in hex: 8 lower-case digits each. They are never all 0, which means "none"
// where the W3C's trace contexts have them.
inline std::string RandomHex(int words) {
  thread_local std::random_device random;
  std::string text;
  do {
    text.clear();
    for (int i = 0; i < words; ++i) absl::StrAppendFormat(&text, "%08x", random());
  } while (text.find_first_not_of('0') == std::string::npos);
  return text;
}

}  // namespace fusion
