// The lexer makes tokens with positions from the characters of a .fuse text.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"
#include "server/parse/error_list.h"
#include "server/parse/location.h"
#include "server/parse/text_cursor.h"

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
  bool ended_in_comment() const { return cursor_.ended_in_comment(); }

 private:
  char Peek(size_t ahead = 0) const { return cursor_.Peek(ahead); }
  void SkipBlanksAndComments();
  void SkipStrayCharacters();
  bool AtNumber() const;
  Token Take(TokenKind kind, size_t bytes);
  size_t NumberLength() const;

  TextCursor cursor_;
  ErrorList* errors_;
};

}  // namespace fusion
