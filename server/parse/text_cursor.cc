#include "server/parse/text_cursor.h"

#include "base/utf8.h"

namespace fusion {

TextCursor::TextCursor(absl::string_view text) : text_(text) {
  if (IsNext("\xEF\xBB\xBF")) offset_ = 3;
}

void TextCursor::Advance() {
  if (text_[offset_] == '\n') {
    position_ = {position_.line + 1, 1};
  } else {
    ++position_.column;
  }
  do {
    ++offset_;
  } while (!AtEnd() && IsContinuation(text_[offset_]));
}

void TextCursor::Advance(size_t bytes) {
  for (const size_t end = offset_ + bytes; offset_ < end && !AtEnd();) Advance();
}

bool TextCursor::SkipComment(ErrorList* errors) {
  if (IsNext("//")) {
    while (!AtEnd() && Peek() != '\n') Advance();
    return true;
  }
  if (!IsNext("/*")) return false;
  const SourcePosition start = position_;
  Advance(2);
  while (!AtEnd() && !IsNext("*/")) Advance();
  if (AtEnd()) {
    errors->Add({start}, "this comment is not closed; end it with */");
    ended_in_comment_ = true;
  }
  Advance(2);
  return true;
}

}  // namespace fusion
