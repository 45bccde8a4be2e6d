#include "server/loops/lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/parse/text_cursor.h"

namespace fusion {
namespace {

bool IsCNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsCNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// The longer ones stand before their beginnings.
constexpr absl::string_view kOperators[] = {
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=",
    "*=",  "/=",  "%=",  "&=", "^=", "|=", "{",  "}",  "(",  ")",  "[",  "]",  ";",  ",",  ".",  "=",
    "+",   "-",   "*",   "/",  "%",  "<",  ">",  "!",  "~",  "&",  "|",  "^",  "?",  ":"};

class CLexer {
 public:
  CLexer(absl::string_view text, ErrorList* errors) : cursor_(text), errors_(errors) {}

  std::vector<CToken> Lex() {
    while (SkipBlanks()) {
      const char c = Peek();
      if (c == '#' && !in_line_) {
        LexDirective();
      } else if (IsCNameStart(c)) {
        size_t length = 1;
        while (IsCNamePart(Peek(length))) ++length;
        Take(CTokenKind::kName, length);
      } else if (absl::ascii_isdigit(c) || (c == '.' && absl::ascii_isdigit(Peek(1)))) {
        LexNumber();
      } else if (c == '"' || c == '\'') {
        LexText(c);
      } else {
        LexOperator();
      }
    }
    if (in_line_) Take(CTokenKind::kLineEnd, 0);
    Take(CTokenKind::kEnd, 0);
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const { return cursor_.Peek(ahead); }

  void Take(CTokenKind kind, size_t bytes) {
    tokens_.push_back({kind, cursor_.Next(bytes), cursor_.position()});
    cursor_.Advance(bytes);
  }

  // Skips a backslash and the end of the line behind it.
  bool SkipLineSplice() {
    if (!cursor_.IsNext("\\\n") && !cursor_.IsNext("\\\r\n")) return false;
    while (Peek() != '\n') cursor_.Advance();
    cursor_.Advance();
    return true;
  }

  // Returns false at the end.
  bool SkipBlanks() {
    while (!cursor_.AtEnd()) {
      if (Peek() == '\n' && in_line_) {
        Take(CTokenKind::kLineEnd, 0);
        in_line_ = false;
      } else if (absl::ascii_isspace(Peek())) {
        cursor_.Advance();
      } else if (!SkipLineSplice() && !cursor_.SkipComment(errors_)) {
        return true;
      }
    }
    return false;
  }

  void SkipLine() {
    while (!cursor_.AtEnd() && Peek() != '\n')
      if (!SkipLineSplice()) cursor_.Advance();
  }

  size_t BlanksAt(size_t length) const {
    while (Peek(length) == ' ' || Peek(length) == '\t') ++length;
    return length;
  }

  void LexDirective() {
    const size_t begin = BlanksAt(1);
    size_t end = begin;
    while (IsCNamePart(Peek(end))) ++end;
    const absl::string_view name = cursor_.Next(end).substr(begin);
    if (name == "pragma" || name == "define") {
      Take(name == "pragma" ? CTokenKind::kPragma : CTokenKind::kDefine, end);
      in_line_ = true;
      return;
    }
    const bool marker = name.empty() || absl::ascii_isdigit(name[0]) || name == "line";
    const bool of_the_system = name == "include" && Peek(BlanksAt(end)) == '<';
    if (!marker && !of_the_system)
      errors_->Add({cursor_.position()},
                   absl::StrCat("#", name, " is the preprocessor's; give what `cc -E` makes of the file"));
    SkipLine();
  }

  void LexNumber() {
    const bool hexadecimal = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
    bool real = false;
    size_t length = 0;
    for (;; ++length) {
      const char c = Peek(length), previous = length > 0 ? Peek(length - 1) : ' ';
      const bool exponent = !hexadecimal && (previous == 'e' || previous == 'E');
      if (c == '.' || (!hexadecimal && (c == 'e' || c == 'E'))) real = true;
      if (!IsCNamePart(c) && c != '.' && !(exponent && (c == '+' || c == '-'))) break;
    }
    Take(real ? CTokenKind::kReal : CTokenKind::kInteger, length);
  }

  void LexText(char quote) {
    size_t length = 1;
    while (Peek(length) != '\0' && Peek(length) != quote && Peek(length) != '\n')
      length += Peek(length) == '\\' && Peek(length + 1) != '\0' ? 2 : 1;
    if (Peek(length) != quote) {
      errors_->Add({cursor_.position()}, "this text is not closed on its line");
      SkipLine();
      return;
    }
    Take(CTokenKind::kText, length + 1);
  }

  void LexOperator() {
    for (absl::string_view symbol : kOperators)
      if (cursor_.IsNext(symbol)) return Take(CTokenKind::kSymbol, symbol.size());
    const TextCursor begin = cursor_;
    cursor_.Advance();
    errors_->Add({begin.position()},
                 absl::StrCat("\"", begin.Next(cursor_.offset() - begin.offset()), "\" has no place in C"));
  }

  TextCursor cursor_;
  ErrorList* errors_;
  std::vector<CToken> tokens_;
  bool in_line_ = false;  // of a pragma or a definition
};

}  // namespace

std::vector<CToken> LexC(absl::string_view text, ErrorList* errors) { return CLexer(text, errors).Lex(); }

}  // namespace fusion
