// A cursor goes through the characters of a text and knows their lines and columns.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "server/parse/error_list.h"
#include "server/parse/location.h"

namespace fusion {

// Goes through a text that is valid UTF-8, which must outlive it. It begins behind a byte order mark. Not
// thread safe.
class TextCursor {
 public:
  explicit TextCursor(absl::string_view text);

  bool AtEnd() const { return offset_ >= text_.size(); }
  // The byte so many bytes ahead; 0 behind the end.
  char Peek(size_t ahead = 0) const { return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0'; }
  absl::string_view Next(size_t bytes) const { return text_.substr(offset_, bytes); }
  bool IsNext(absl::string_view text) const { return Next(text.size()) == text; }
  size_t offset() const { return offset_; }
  SourcePosition position() const { return position_; }

  void Advance();              // to the next character; not at the end
  void Advance(size_t bytes);  // by whole characters, as far as there are
  // Skips a comment of C, if one begins here, and returns whether one does. One that is not closed is an
  // error, and goes to the end of the text.
  bool SkipComment(ErrorList* errors);
  bool ended_in_comment() const { return ended_in_comment_; }

 private:
  absl::string_view text_;
  size_t offset_ = 0;
  SourcePosition position_{1, 1};
  bool ended_in_comment_ = false;
};

}  // namespace fusion
