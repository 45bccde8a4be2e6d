#include "server/loops/lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

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
  CLexer(absl::string_view text, ErrorList* errors) : text_(text), errors_(errors) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") offset_ = 3;  // byte order mark
  }

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
  char Peek(size_t ahead = 0) const { return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0'; }

  void Advance() {
    if (text_[offset_] == '\n') {
      position_ = {position_.line + 1, 1};
    } else {
      ++position_.column;
    }
    do {
      ++offset_;
    } while (offset_ < text_.size() && IsContinuation(text_[offset_]));
  }
  void Advance(size_t bytes) {
    for (const size_t end = offset_ + bytes; offset_ < end;) Advance();
  }

  void Take(CTokenKind kind, size_t bytes) {
    tokens_.push_back({kind, text_.substr(offset_, bytes), position_});
    Advance(bytes);
  }

  bool AtLineSplice() const {
    return Peek() == '\\' && (Peek(1) == '\n' || (Peek(1) == '\r' && Peek(2) == '\n'));
  }

  // Returns false at the end.
  bool SkipBlanks() {
    while (offset_ < text_.size()) {
      if (Peek() == '\n' && in_line_) {
        Take(CTokenKind::kLineEnd, 0);
        in_line_ = false;
      } else if (AtLineSplice()) {
        Advance();
        while (Peek() != '\n') Advance();
        Advance();
      } else if (absl::ascii_isspace(Peek())) {
        Advance();
      } else if (Peek() == '/' && Peek(1) == '/') {
        while (offset_ < text_.size() && Peek() != '\n') Advance();
      } else if (Peek() == '/' && Peek(1) == '*') {
        const SourcePosition start = position_;
        Advance(2);
        while (offset_ < text_.size() && !(Peek() == '*' && Peek(1) == '/')) Advance();
        if (offset_ >= text_.size()) {
          errors_->Add({start}, "this comment is not closed; end it with */");
          return false;
        }
        Advance(2);
      } else {
        return true;
      }
    }
    return false;
  }

  void SkipLine() {
    while (offset_ < text_.size() && Peek() != '\n') Advance(AtLineSplice() ? 2 : 1);
  }

  void LexDirective() {
    const size_t begin = offset_;
    size_t at = begin + 1;
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    size_t end = at;
    while (end < text_.size() && IsCNamePart(text_[end])) ++end;
    const absl::string_view name = text_.substr(at, end - at);
    if (name == "pragma" || name == "define") {
      Take(name == "pragma" ? CTokenKind::kPragma : CTokenKind::kDefine, end - begin);
      in_line_ = true;
      return;
    }
    while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t')) ++end;
    const bool marker = name.empty() || absl::ascii_isdigit(name[0]) || name == "line";
    const bool of_the_system = name == "include" && end < text_.size() && text_[end] == '<';
    if (!marker && !of_the_system)
      errors_->Add({position_},
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
    while (offset_ + length < text_.size() && Peek(length) != quote && Peek(length) != '\n')
      length += Peek(length) == '\\' && Peek(length + 1) != '\0' ? 2 : 1;
    if (Peek(length) != quote) {
      errors_->Add({position_}, "this text is not closed on its line");
      SkipLine();
      return;
    }
    Take(CTokenKind::kText, length + 1);
  }

  void LexOperator() {
    for (absl::string_view symbol : kOperators)
      if (text_.substr(offset_, symbol.size()) == symbol) return Take(CTokenKind::kSymbol, symbol.size());
    const SourcePosition start = position_;
    const size_t begin = offset_;
    Advance();
    errors_->Add({start}, absl::StrCat("\"", text_.substr(begin, offset_ - begin), "\" has no place in C"));
  }

  absl::string_view text_;
  ErrorList* errors_;
  std::vector<CToken> tokens_;
  size_t offset_ = 0;
  SourcePosition position_{1, 1};
  bool in_line_ = false;  // of a pragma or a definition
};

}  // namespace

std::vector<CToken> LexC(absl::string_view text, ErrorList* errors) { return CLexer(text, errors).Lex(); }

}  // namespace fusion
