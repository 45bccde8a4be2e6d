#include "server/parse/parser.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "server/parse/lexer.h"
#include "server/parse/number.h"
#include "server/parse/type_name.h"

namespace fusion {
namespace {

// Recursive descent with one token of lookahead. A function that reads a part of a statement returns false
// once the statement is given up; it has then reported why.
class Parser {
 public:
  Parser(absl::string_view text, int max_calls, ErrorList* errors)
      : lexer_(text, errors), max_calls_(max_calls), errors_(errors), current_(lexer_.Next()) {}

  SyntaxTree Run() {
    while (current_.kind != TokenKind::kEnd && tree_.complete) {
      ++order_;
      names_.clear();
      tokens_taken_ = 0;
      if (!ParseStatement()) GiveUpStatement();
    }
    if (!tree_.has_return) tree_.return_location = Here();
    if (lexer_.ended_in_comment()) tree_.return_unclear = true;
    return std::move(tree_);
  }

 private:
  Location Here() const { return Location{current_.position}; }
  bool AtSymbol(char symbol) const {
    return current_.kind == TokenKind::kSymbol && current_.text[0] == symbol;
  }
  bool AtName() const { return current_.kind == TokenKind::kName; }
  bool AtWord(absl::string_view word) const { return AtName() && current_.text == word; }
  bool AtNewLine() const { return current_.position.line > previous_end_.line; }
  NameSyntax CurrentName() const { return {current_.text, Here(), order_}; }

  Token Take() {
    Token token = current_;
    ++tokens_taken_;
    if (token.kind == TokenKind::kName) names_.push_back(token.text);
    previous_end_ = token.position;
    previous_end_.column += static_cast<int>(token.text.size());
    current_ = lexer_.Next();
    return token;
  }

  bool TakeSymbol(char symbol) {
    if (!AtSymbol(symbol)) return false;
    Take();
    return true;
  }

  // Reports unless this statement has an error already (a stray character, say), or what is missing lies in a
  // comment that was not closed.
  bool Fail(const Location& location, std::string message) {
    const bool hidden = current_.kind == TokenKind::kEnd && lexer_.ended_in_comment();
    if (errors_->count() == errors_before_ && !hidden) errors_->Add(location, std::move(message));
    return false;
  }

  std::string Found() const {
    return current_.kind == TokenKind::kEnd ? "the file ends" : absl::StrCat("found ", Shown(current_.text));
  }

  bool FailExpected(absl::string_view expected) {
    return Fail(Here(), absl::StrCat("expected ", expected, ", ", Found()));
  }

  bool AtStatementWord() const {
    return AtName() && (IsKeyword(current_.text) || ElementShape(current_.text));
  }

  // To the next statement: behind the next ';', or to a word that begins a statement on a line of its own.
  void GiveUpStatement() {
    while (current_.kind != TokenKind::kEnd && !AtSymbol(';')) {
      if (tokens_taken_ > 0 && AtNewLine() && AtStatementWord()) break;
      Take();
    }
    for (absl::string_view name : names_) tree_.unclear.insert(name);
    EndStatement();
  }

  void EndStatement() {
    errors_before_ = errors_->count();
    if (AtSymbol(';')) Take();
  }

  // A ';' that is missing at the end of a line is reported there, and the next line is read as a statement.
  bool FinishStatement(absl::string_view expected) {
    if (AtSymbol(';')) {
      EndStatement();
      return true;
    }
    if (current_.kind == TokenKind::kEnd || AtNewLine()) {
      Fail(Location{previous_end_}, "missing ; at the end of this statement");
      EndStatement();
      return true;
    }
    return FailExpected(expected);
  }

  bool ParseStatement() {
    if (AtSymbol(';')) {
      EndStatement();
      return true;
    }
    if (!AtName()) return FailExpected("a statement: a declaration, input, x = f(a, b); or return");
    if (AfterReturn()) return false;
    if (AtWord("size")) return ParseSizes();
    if (AtWord("input")) return ParseInputs();
    if (AtWord("return")) return ParseReturn();
    if (AtStatementWord()) return ParseDeclaration();
    return ParseCallOrUnknown();
  }

  // `return` ends the file. What follows is read for its own errors, but reported once.
  bool AfterReturn() {
    if (!tree_.has_return || reported_after_return_) return false;
    reported_after_return_ = true;
    if (AtWord("return")) {
      Fail(Here(), absl::StrCat("a second return (the first is ", tree_.return_location.InWords(),
                                "); list all outputs in one: return x, y;"));
    } else {
      Fail(Here(), absl::StrCat("nothing may follow return (", tree_.return_location.InWords(), ")"));
    }
    return true;
  }

  bool ParseSizes() {
    Take();
    do {
      if (!AtName()) return FailExpected("the name of a size, as in size n = 1000000;");
      SizeSyntax size{CurrentName()};
      Take();
      if (TakeSymbol('=')) {
        if (current_.kind != TokenKind::kNumber) return FailExpected("a whole number");
        absl::StatusOr<int64_t> value = ParseWholeNumber(current_.text);
        if (!value.ok()) return Fail(Here(), std::string(value.status().message()));
        size.value = *value;
        size.value_location = Here();
        Take();
      }
      tree_.sizes.push_back(size);
    } while (TakeSymbol(','));
    return FinishStatement("= , or ;");
  }

  bool ParseName(std::vector<NameSyntax>* names, absl::string_view expected) {
    if (!AtName() || (AtNewLine() && IsKeyword(current_.text))) return FailExpected(expected);
    names->push_back(CurrentName());
    Take();
    return true;
  }

  bool ParseInputs() {
    Take();
    do {
      if (!ParseName(&tree_.inputs, "the name of an input")) return false;
      if (!ParseValues()) return false;
    } while (TakeSymbol(','));
    return FinishStatement(", or ;");
  }

  // Reads what is asked of the values of the input that was read last, if anything: "in (0.5, 2)", "= spd",
  // "= integers(0, 9)". The checker knows which kinds there are: to the language these are words like others.
  bool ParseValues() {
    ValuesSyntax values;
    values.range = AtWord(kRangeWord);
    if (!values.range && !AtSymbol('=')) return true;
    values.input = static_cast<int>(tree_.inputs.size()) - 1;
    if (!values.range) Take();
    if (!AtName()) return FailExpected("a kind of values, as in input A = spd;");
    values.word = current_.text;
    values.location = Here();
    Take();
    if (values.range && !AtSymbol('(')) return FailExpected("( and two bounds, as in x in (0.5, 2)");
    if (TakeSymbol('(')) {
      do {
        if (current_.kind != TokenKind::kNumber) return FailExpected("a number");
        absl::StatusOr<double> value = ParseLiteral(current_.text);
        if (!value.ok()) return Fail(Here(), std::string(value.status().message()));
        values.numbers.push_back({*value, Here()});
        Take();
      } while (TakeSymbol(','));
      if (!TakeSymbol(')')) return FailExpected(", or )");
    }
    tree_.values.push_back(std::move(values));
    return true;
  }

  bool ParseReturn() {
    tree_.return_location = Here();
    tree_.has_return = true;
    Take();
    if (AtSymbol(';')) {
      Fail(tree_.return_location, "return lists no output; write return x;");
      EndStatement();
      return true;
    }
    do {
      if (!ParseName(&tree_.outputs, "the name of an output")) return false;
      // Anywhere else it is a name like others.
      if (!AtWord(kIntoWord)) continue;
      Take();
      std::vector<NameSyntax> input;
      if (!ParseName(&input, "the input whose memory the output takes, as in return p2 into p;"))
        return false;
      tree_.in_place.push_back({static_cast<int>(tree_.outputs.size()) - 1, input[0]});
    } while (TakeSymbol(','));
    return FinishStatement(", or ;");
  }

  bool ParseDeclaration() {
    TypeSyntax type;
    type.location = Here();
    DataType data_type = v1::F32;
    if (AtWord("f32") || AtWord("f64")) {
      data_type = Take().text == "f64" ? v1::F64 : v1::F32;
      if (!AtName()) return FailExpected("a type");
      if (!AtStatementWord() || AtWord("size") || AtWord("input") || AtWord("return") || AtWord("f32") ||
          AtWord("f64"))
        return Fail(Here(), UnknownTypeMessage(current_.text, errors_->MaySuggest()));
    }
    const Token word = Take();
    if (AtSymbol('=')) return Fail(Location{word.position}, BadNameMessage(word.text));
    if (const auto shape = ElementShape(word.text)) {
      if (AtSymbol('[')) {
        return Fail(Here(),
                    absl::StrCat(word.text, " is the type of one element and has no sizes in []; whole ",
                                 "collections are vector[n] and matrix[m,n]"));
      }
      type.type = Type::Element(data_type, *shape);
      for (int size : *shape) {
        if (size > 0 || !type.type) continue;
        errors_->Add(Location{word.position},
                     absl::StrCat("sizes of elements are 1 to ", kLargestElementSize, ", but the type is ",
                                  Shown(word.text), "; larger ones are collections: vector[n], matrix[m,n]"));
        type.type.reset();
      }
    } else {
      type.type = Type::Scalar(data_type);
      if (!ParseExtents(word, &type)) return false;
    }
    tree_.types.push_back(std::move(type));
    return ParseDeclared();
  }

  bool ParseExtents(const Token& word, TypeSyntax* type) {
    const size_t wanted = word.text == "scalar" ? 0 : word.text == "vector" ? 1 : 2;
    const char* form = wanted == 1 ? "vector[n]" : "matrix[m,n]";
    const Location open = Here();
    if (TakeSymbol('[')) {
      do {
        if (wanted == 2 && type->extents.size() == 2 && AtName() && current_.text == "ld") {
          Take();
          if (!TakeSymbol('=')) return FailExpected("= and the leading dimension, as in matrix[m,n,ld=lda]");
          type->leading_location = Here();
          if (!ParseExtent(&type->leading_dimension.emplace())) return false;
          break;
        }
        type->extents.push_back(Here());
        if (!ParseExtent(&type->type->extents.emplace_back())) return false;
      } while (TakeSymbol(','));
      if (!TakeSymbol(']')) return FailExpected(type->leading_dimension ? "]" : ", or ]");
    }
    const size_t given = type->extents.size();
    if (given == wanted) return true;
    if (wanted == 0) return Fail(open, "a scalar has no sizes; write scalar x, or vector[n] x");
    const char* meant = given == 0 ? "" : given == 1 ? " (did you mean vector?)" : " (did you mean matrix?)";
    return Fail(open,
                absl::StrCat(word.text, " is written ", form, ", but ", given,
                             given == 1 ? " size is given" : " sizes are given", given <= 2 ? meant : ""));
  }

  bool ParseExtent(Extent* extent) {
    if (AtName()) {
      *extent = Extent{std::string(current_.text)};
    } else if (current_.kind == TokenKind::kNumber) {
      absl::StatusOr<int64_t> value = ParseWholeNumber(current_.text);
      if (!value.ok()) return Fail(Here(), std::string(value.status().message()));
      *extent = Extent{"", *value};
    } else {
      return FailExpected("a size: a name or a whole number");
    }
    Take();
    return true;
  }

  bool ParseDeclared() {
    const int type = static_cast<int>(tree_.types.size()) - 1;
    do {
      if (!AtName() || (AtNewLine() && IsKeyword(current_.text)))
        return FailExpected("the name of a variable");
      tree_.variables.push_back({CurrentName(), type});
      Take();
    } while (TakeSymbol(','));
    return FinishStatement(", or ;");
  }

  // x = f(a, b); or a word that is no type or keyword, followed by names.
  bool ParseCallOrUnknown() {
    CallSyntax call;
    call.result = CurrentName();
    Take();
    if (AtSymbol('(')) {
      tree_.result_unclear = true;
      return Fail(call.result.location,
                  absl::StrCat("the result of ", Shown(call.result.text),
                               " needs a name: x = ", Shown(call.result.text), "(...);"));
    }
    if (!TakeSymbol('=')) {
      if (AtName() || AtSymbol('[')) {
        if (SimilarName(call.result.text, {"return"}) == "return") tree_.return_unclear = true;
        return Fail(call.result.location, UnknownTypeMessage(call.result.text, errors_->MaySuggest()));
      }
      return FailExpected(absl::StrCat("= after ", Shown(call.result.text)));
    }
    if (!AtName()) return FailExpected("the name of a function, as in x = f(a, b);");
    call.function_location = Here();
    call.function = std::string(Take().text);
    if (AtSymbol('<') && !ParseParameters(&call.function)) return false;
    if (!AtSymbol('(')) return FailNoCall(call);
    Take();
    if (!AtSymbol(')')) {
      do {
        if (!ParseArgument(&call)) return false;
      } while (TakeSymbol(','));
    }
    if (!TakeSymbol(')')) return FailExpected(", or )");
    if (static_cast<int>(tree_.calls.size()) >= max_calls_) {
      tree_.complete = false;
      return Fail(call.result.location,
                  absl::StrCat("the graph has more than ", max_calls_, " calls, the limit of this server"));
    }
    tree_.calls.push_back(std::move(call));
    return FinishStatement("; after the call");
  }

  bool FailNoCall(const CallSyntax& call) {
    const bool is_operator = current_.kind == TokenKind::kSymbol &&
                             absl::string_view("+-*/").find(current_.text[0]) != absl::string_view::npos;
    if (is_operator || current_.kind == TokenKind::kNumber) {
      const bool minus = current_.text[0] == '-';
      const char* function = AtSymbol('*') ? "mul" : AtSymbol('/') ? "div" : minus ? "sub" : "add";
      return Fail(Here(), absl::StrCat("the language has no operators; call a function, as in ",
                                       Shown(call.result.text), " = ", function, "(a, b);"));
    }
    if (AtSymbol(';')) {
      return Fail(call.function_location,
                  absl::StrCat(Shown(call.function), " is not called; write ", Shown(call.result.text),
                               " = f(...);, or use ", Shown(call.function), " itself in place of ",
                               Shown(call.result.text)));
    }
    return FailExpected(absl::StrCat("( after the function ", Shown(call.function)));
  }

  // "<3,3>" behind the name of a function.
  bool ParseParameters(std::string* function) {
    do {
      absl::StrAppend(function, Take().text);
      if (current_.kind != TokenKind::kNumber) return FailExpected("a whole number");
      absl::StatusOr<int64_t> value = ParseWholeNumber(current_.text);
      if (!value.ok()) return Fail(Here(), std::string(value.status().message()));
      absl::StrAppend(function, *value);
      Take();
    } while (AtSymbol(','));
    if (!AtSymbol('>')) return FailExpected(", or >");
    absl::StrAppend(function, Take().text);
    return true;
  }

  bool ParseArgument(CallSyntax* call) {
    ArgumentSyntax argument;
    argument.location = Here();
    if (current_.kind == TokenKind::kNumber) {
      absl::StatusOr<double> value = ParseLiteral(current_.text);
      if (!value.ok()) return Fail(Here(), std::string(value.status().message()));
      argument.literal = *value;
      Take();
    } else if (AtName()) {
      argument.name = Take().text;
      if (AtSymbol('(') || AtSymbol('<')) {
        return Fail(argument.location, absl::StrCat("nested call of ", Shown(argument.name),
                                                    "; give the inner call a name: t = ",
                                                    Shown(argument.name), "(...); and use t here"));
      }
    } else {
      return FailExpected("a variable or a number");
    }
    call->arguments.push_back(argument);
    return true;
  }

  Lexer lexer_;
  const int max_calls_;
  ErrorList* errors_;
  int errors_before_ = 0;  // number of errors when this statement began
  Token current_;
  SourcePosition previous_end_{1, 1};     // behind the last token taken
  std::vector<absl::string_view> names_;  // of this statement
  SyntaxTree tree_;
  int order_ = 0;
  int tokens_taken_ = 0;  // in this statement
  bool reported_after_return_ = false;
};

}  // namespace

SyntaxTree ParseFuse(absl::string_view text, int max_calls, ErrorList* errors) {
  return Parser(text, max_calls, errors).Run();
}

}  // namespace fusion
