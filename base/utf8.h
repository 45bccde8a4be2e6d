// Finds bytes of a text that are no UTF-8.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace fusion {

// A place in a text: line and column from 1; 0 where there is no text.
struct SourcePosition {
  int line = 0;
  int column = 0;
};

// A byte that is no part of a character.
struct BadByte {
  SourcePosition position;
  unsigned char byte = 0;
};
// Finds the first one (RFC 3629: no overlong forms, no surrogates). Columns count characters.
std::optional<BadByte> FindBadByte(absl::string_view text);

// Says whether the byte is one of a character that began before it.
inline bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace fusion
