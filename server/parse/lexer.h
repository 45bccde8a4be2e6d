// The lexer makes tokens with positions from the characters of a .fuse text.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"
#include "server/parse/error_list.h"
#include "server/parse/location.h"

namespace fusion {

enum class TokenKind {
  kName,    // letters, digits and _, not starting with a digit
  kNumber,  // starts with a digit, or with a sign or point and then a digit; takes all letters that follow:
            // "1.0f"
  kSymbol,  // one of = , ; ( ) [ ] < > + - * /
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;  // in the source
  SourcePosition position;
};

// Reads a text that is valid UTF-8 in one pass. Comments ("//" to the end of the line, "/* */") are skipped.
// Characters that begin no token are reported, a run of them once, and skipped. Not thread safe; `text` must
// outlive the tokens.
class Lexer {
 public:
  Lexer(absl::string_view text, ErrorList* errors);
  Token Next();
  bool ended_in_comment() const { return ended_in_comment_; }

 private:
  char Peek(size_t ahead = 0) const { return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0'; }
  void Advance();
  void SkipBlanksAndComments();
  void SkipStrayCharacters();
  bool AtNumber() const;
  Token Take(TokenKind kind, size_t bytes);
  size_t NumberLength() const;

  absl::string_view text_;
  ErrorList* errors_;
  size_t offset_ = 0;
  SourcePosition position_{1, 1};
  bool ended_in_comment_ = false;
};

}  // namespace fusion
