#include "base/utf8.h"

#include <cstddef>

namespace fusion {
namespace {

// Bytes of the UTF-8 character at `offset`, or 0 when it is none.
size_t CharacterLength(absl::string_view text, size_t offset) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : lead >> 4 == 0xE             ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || offset + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if (!IsContinuation(text[offset + i])) return 0;
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
  if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && byte(1) < 0x90) return 0;  // overlong
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;  // over U+10FFFF
  return length;
}

}  // namespace

std::optional<BadByte> FindBadByte(absl::string_view text) {
  SourcePosition position{1, 1};
  for (size_t offset = 0; offset < text.size();) {
    const size_t length = CharacterLength(text, offset);
    if (length == 0) return BadByte{position, static_cast<unsigned char>(text[offset])};
    if (text[offset] == '\n') {
      position = {position.line + 1, 1};
    } else {
      ++position.column;
    }
    offset += length;
  }
  return std::nullopt;
}

}  // namespace fusion
