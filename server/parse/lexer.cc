#include "server/parse/lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/parse/similar_name.h"

namespace fusion {
namespace {

constexpr absl::string_view kSymbols = "=,;()[]<>+-*/";

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }
bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

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

Lexer::Lexer(absl::string_view text, ErrorList* errors) : text_(text), errors_(errors) {
  if (text_.substr(0, 3) == "\xEF\xBB\xBF") offset_ = 3;  // byte order mark
}

// To the next character.
void Lexer::Advance() {
  if (text_[offset_] == '\n') {
    position_ = {position_.line + 1, 1};
  } else {
    ++position_.column;
  }
  do {
    ++offset_;
  } while (offset_ < text_.size() && IsContinuation(text_[offset_]));
}

void Lexer::SkipBlanksAndComments() {
  while (offset_ < text_.size()) {
    if (absl::ascii_isspace(Peek())) {
      Advance();
    } else if (Peek() == '/' && Peek(1) == '/') {
      while (offset_ < text_.size() && Peek() != '\n') Advance();
    } else if (Peek() == '/' && Peek(1) == '*') {
      const SourcePosition start = position_;
      Advance();
      Advance();
      while (offset_ < text_.size() && !(Peek() == '*' && Peek(1) == '/')) Advance();
      if (offset_ >= text_.size()) {
        errors_->Add({start}, "this comment is not closed; end it with */");
        ended_in_comment_ = true;
        return;
      }
      Advance();
      Advance();
    } else {
      return;
    }
  }
}

// A sign belongs to a number when a digit or a point and a digit follow.
bool Lexer::AtNumber() const {
  size_t i = Peek() == '+' || Peek() == '-' ? 1 : 0;
  if (Peek(i) == '.') ++i;
  return absl::ascii_isdigit(Peek(i));
}

size_t Lexer::NumberLength() const {
  size_t length = 1;
  for (;; ++length) {
    const char c = Peek(length), previous = Peek(length - 1);
    const bool sign_of_exponent = (c == '+' || c == '-') && (previous == 'e' || previous == 'E');
    if (!IsNamePart(c) && c != '.' && !sign_of_exponent) return length;
  }
}

void Lexer::SkipStrayCharacters() {
  const SourcePosition start = position_;
  const size_t begin = offset_;
  int characters = 0;
  while (offset_ < text_.size() && !absl::ascii_isspace(Peek()) && !IsNamePart(Peek()) &&
         kSymbols.find(Peek()) == absl::string_view::npos) {
    Advance();
    ++characters;
  }
  std::string shown;
  for (char c : text_.substr(begin, offset_ - begin).substr(0, 24)) {
    if (absl::ascii_iscntrl(c)) {
      absl::StrAppend(&shown, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      shown += c;
    }
  }
  // The cut may have left a part of a character.
  while (FindBadByte(shown)) shown.pop_back();
  if (offset_ - begin > 24) shown += "...";
  errors_->Add({start},
               absl::StrCat("stray ", characters == 1 ? "character " : "characters ", shown,
                            "; outside comments a line has names, numbers and = , ; ( ) [ ] < > alone"));
}

Token Lexer::Take(TokenKind kind, size_t bytes) {
  Token token{kind, text_.substr(offset_, bytes), position_};
  offset_ += bytes;
  position_.column += static_cast<int>(bytes);
  return token;
}

Token Lexer::Next() {
  for (;;) {
    SkipBlanksAndComments();
    if (offset_ >= text_.size()) return Token{TokenKind::kEnd, {}, position_};
    if (IsNameStart(Peek())) {
      size_t length = 1;
      while (IsNamePart(Peek(length))) ++length;
      return Take(TokenKind::kName, length);
    }
    if (AtNumber()) return Take(TokenKind::kNumber, NumberLength());
    if (kSymbols.find(Peek()) != absl::string_view::npos) return Take(TokenKind::kSymbol, 1);
    SkipStrayCharacters();
  }
}

}  // namespace fusion
