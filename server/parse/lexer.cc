#include "server/parse/lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "base/utf8.h"

namespace fusion {
namespace {

constexpr absl::string_view kSymbols = "=,;()[]<>+-*/";

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

}  // namespace

Lexer::Lexer(absl::string_view text, ErrorList* errors) : cursor_(text), errors_(errors) {}

void Lexer::SkipBlanksAndComments() {
  while (!cursor_.AtEnd()) {
    if (absl::ascii_isspace(Peek())) {
      cursor_.Advance();
    } else if (!cursor_.SkipComment(errors_)) {
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
  const TextCursor begin = cursor_;
  int characters = 0;
  while (!cursor_.AtEnd() && !absl::ascii_isspace(Peek()) && !IsNamePart(Peek()) &&
         kSymbols.find(Peek()) == absl::string_view::npos) {
    cursor_.Advance();
    ++characters;
  }
  const size_t bytes = cursor_.offset() - begin.offset();
  std::string shown;
  for (char c : begin.Next(bytes).substr(0, 24)) {
    if (absl::ascii_iscntrl(c)) {
      absl::StrAppend(&shown, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      shown += c;
    }
  }
  // The cut may have left a part of a character.
  while (FindBadByte(shown)) shown.pop_back();
  if (bytes > 24) shown += "...";
  errors_->Add({begin.position()},
               absl::StrCat("stray ", characters == 1 ? "character " : "characters ", shown,
                            "; outside comments a line has names, numbers and = , ; ( ) [ ] < > alone"));
}

Token Lexer::Take(TokenKind kind, size_t bytes) {
  Token token{kind, cursor_.Next(bytes), cursor_.position()};
  cursor_.Advance(bytes);
  return token;
}

Token Lexer::Next() {
  for (;;) {
    SkipBlanksAndComments();
    if (cursor_.AtEnd()) return Token{TokenKind::kEnd, {}, cursor_.position()};
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
