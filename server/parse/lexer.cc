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
