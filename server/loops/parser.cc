#include "server/loops/parser.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "server/loops/evaluate.h"
#include "server/loops/lexer.h"
#include "server/loops/refusals.h"

namespace fusion {
namespace {

constexpr absl::string_view kTypeWords[] = {
    "int",    "long",      "float",        "double",     "unsigned", "signed", "short",    "char",
    "size_t", "ptrdiff_t", "int32_t",      "int64_t",    "const",    "static", "register", "volatile",
    "extern", "restrict",  "__restrict__", "__restrict", "void",     "struct", "inline",   "_Bool"};
constexpr absl::string_view kOtherTypes[] = {"unsigned", "short", "char", "void", "struct", "_Bool"};
template <class List>
bool IsIn(const List& list, absl::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// This is thrown where a statement cannot be read, and caught in this file.
struct Unreadable {
  SourcePosition position;
  std::string message;
};

class CParser {
 public:
  CParser(absl::string_view text, ErrorList* errors) : errors_(errors), tokens_(LexC(text, errors)) {
    FindAssigned();
  }

  CProgram Parse() {
    while (!AtEnd()) SkipThrough();
    return std::move(program_);
  }

 private:
  // --- Tokens ---
  const CToken& Now(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool AtEnd() const { return Now().kind == CTokenKind::kEnd; }
  bool Is(absl::string_view text, size_t ahead = 0) const {
    const CToken& token = Now(ahead);
    return (token.kind == CTokenKind::kSymbol || token.kind == CTokenKind::kName) && token.text == text;
  }
  bool IsName(size_t ahead = 0) const { return Now(ahead).kind == CTokenKind::kName; }
  bool Take(absl::string_view text) {
    if (!Is(text)) return false;
    ++at_;
    return true;
  }
  std::string Found() const {
    const CToken& token = Now();
    if (token.kind == CTokenKind::kEnd) return "the end of the text";
    if (token.kind == CTokenKind::kLineEnd) return "the end of the line";
    return absl::StrCat("\"", token.text.substr(0, 40), "\"");
  }
  [[noreturn]] void Fail(SourcePosition position, std::string message) const {
    throw Unreadable{position, std::move(message)};
  }
  void Expect(absl::string_view text, absl::string_view why) {
    if (!Take(text)) Fail(Now().position, absl::StrCat("expected \"", text, "\" ", why, ", not ", Found()));
  }
  std::string TakeName(absl::string_view what) {
    if (!IsName() || IsIn(kTypeWords, Now().text))
      Fail(Now().position, absl::StrCat("expected ", what, ", not ", Found()));
    return std::string(tokens_[at_++].text);
  }
  // Past a token, or past what is in brackets.
  void SkipToken() {
    if (Is("(") || Is("[") || Is("{")) return SkipBrackets();
    ++at_;
  }
  // Behind the bracket that closes the one here.
  void SkipBrackets() {
    int depth = 0;
    while (!AtEnd()) {
      if (Is("(") || Is("[") || Is("{")) ++depth;
      if (Is(")") || Is("]") || Is("}")) --depth;
      ++at_;
      if (depth <= 0) return;
    }
  }
  void SkipLine() {
    while (!AtEnd() && Now().kind != CTokenKind::kLineEnd) ++at_;
    if (!AtEnd()) ++at_;
  }

  // --- Names ---
  // Those that anything in the text gives a value, beside their declarations, or of which it takes the
  // address.
  void FindAssigned() {
    static constexpr absl::string_view kGiving[] = {
        "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"};
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != CTokenKind::kName) continue;
      const auto is = [&](size_t at, absl::string_view text) {
        return tokens_[at].kind == CTokenKind::kSymbol && tokens_[at].text == text;
      };
      const bool gives = tokens_[i + 1].kind == CTokenKind::kSymbol && IsIn(kGiving, tokens_[i + 1].text);
      // "int n = 3": a declaration, of one name or more.
      const bool declares = gives && is(i + 1, "=") && i > 0 &&
                            (is(i - 1, ",") || (tokens_[i - 1].kind == CTokenKind::kName &&
                                                IsIn(kTypeWords, tokens_[i - 1].text)));
      const bool before = i > 0 && (is(i - 1, "++") || is(i - 1, "--") || is(i - 1, "&"));
      if ((gives && !declares) || before) assigned_.insert(tokens_[i].text);
      // "p = q", or "p = &q[1]", but not "p = malloc(n)", also behind a cast.
      size_t value = i + 2;
      if (gives && is(i + 1, "=") && value < tokens_.size() && is(value, "("))
        while (value + 1 < tokens_.size() && !is(value++, ")")) {
        }
      if (gives && is(i + 1, "=") && value + 1 < tokens_.size() &&
          (is(value, "&") || (tokens_[value].kind == CTokenKind::kName && !is(value + 1, "("))))
        aliasing_.insert(tokens_[i].text);
    }
  }
  bool IsFixed(const CExpression& expression) const {
    if (expression.kind == CExpression::Kind::kCall || expression.kind == CExpression::Kind::kSubscript)
      return false;
    if (expression.kind == CExpression::Kind::kName && assigned_.count(expression.text) > 0) return false;
    return std::all_of(expression.operands.begin(), expression.operands.end(),
                       [&](const CExpressionPtr& operand) { return IsFixed(*operand); });
  }
  void Declare(const CVariable& variable) { scope_.push_back(variable); }
  const CVariable* Find(absl::string_view name) const {
    for (auto variable = scope_.rbegin(); variable != scope_.rend(); ++variable)
      if (variable->name == name) return &*variable;
    return nullptr;
  }

  // --- Outside of marked loops: any C ---
  // Reads past one statement or declaration, or into a block, and takes marked loops on the way.
  void SkipThrough() {
    if (Now().kind == CTokenKind::kDefine) return ReadDefinition();
    if (Now().kind == CTokenKind::kPragma || Is("meta_schedule")) return ReadMarked();
    if (Now().kind == CTokenKind::kLineEnd) {
      ++at_;
    } else if (Take("{")) {
      scopes_.push_back(scope_.size());
    } else if (Take("}")) {
      if (!scopes_.empty()) {
        scope_.resize(scopes_.back());
        scopes_.pop_back();
      }
    } else if (Is("for") && Is("(", 1)) {
      if (TakeHostLoop()) return;
      // Its counter may be declared here, and is in scope until something ends; that is harmless.
      ++at_;
      const size_t open = at_;
      ++at_;
      if (AtType()) SkipDeclaration();
      at_ = open;
      SkipBrackets();
    } else if ((Is("if") || Is("while") || Is("switch")) && Is("(", 1)) {
      ++at_;
      SkipBrackets();
    } else if (Is("else") || Is("do")) {
      ++at_;
    } else if (Take("typedef")) {
      ReadTypedef();
    } else if (AtType()) {
      SkipDeclaration();
    } else {
      SkipToEndOfStatement();
    }
  }

  // A loop of the host around marked loops belongs to them, where it can be read.
  bool TakeHostLoop() {
    const size_t begin = at_, declared = scope_.size();
    ++at_;
    SkipBrackets();
    bool marked = false;
    for (int depth = 0; !AtEnd(); ++at_) {
      if (Is("{")) ++depth;
      if (Is("}")) --depth;
      const bool pragma = Now().kind == CTokenKind::kPragma && (Is("omp", 1) || Is("fusion", 1));
      marked |= pragma || Is("meta_schedule");
      if (depth <= 0 && (Is("}") || Is(";") || marked)) break;
    }
    at_ = begin;
    if (!marked) return false;
    ErrorList scratch(errors_->file_name());
    ErrorList* const real = errors_;
    CRegion region{.statement = nullptr, .scope = scope_};
    const size_t parameters = program_.parameters.size();
    errors_ = &scratch;
    try {
      region.statement = TakeStatement({}, 0);
    } catch (const Unreadable&) {
    }
    errors_ = real;
    scope_.resize(declared);
    loops_ = 0;
    if (region.statement != nullptr && scratch.empty()) {
      region.registers = std::exchange(registers_, std::nullopt);
      program_.regions.push_back(std::move(region));
      return true;
    }
    program_.parameters.resize(parameters);
    at_ = begin;
    return false;
  }

  // "typedef double real;", and no other.
  void ReadTypedef() {
    try {
      const CType type = TakeType(true);
      if (IsName() && Is(";", 1) && !volatile_) types_[Now().text] = type;
    } catch (const Unreadable&) {
    }
    while (!AtEnd() && !Take(";")) SkipToken();
  }

  void SkipToEndOfStatement() {
    while (!AtEnd() && !Is("}")) {
      if (Take(";")) return;
      if (Is("{")) return;
      if (Now().kind == CTokenKind::kPragma || Now().kind == CTokenKind::kDefine) return;
      SkipToken();
    }
  }

  // Declares what it can of "TYPE a, *b = ..., c[N][M];" and of functions and their parameters.
  void SkipDeclaration() {
    const size_t begin = at_;
    const size_t declared = scope_.size();
    try {
      const bool constant = Is("const");
      const CType type = TakeType(true);
      do {
        CVariable variable = TakeDeclarator(type);
        if (Is("(")) {  // a function: its parameters are in scope in its body
          at_ = SkipParameters();
          return;
        }
        if (Take("=")) {
          const size_t value = at_;
          try {
            const CExpressionPtr initial = TakeAssignmentExpression();
            if (constant || assigned_.count(variable.name) == 0) {
              variable.constant = ConstantOf(*initial);
              if (IsFixed(*initial)) variable.initial = initial;
            }
          } catch (const Unreadable&) {
            at_ = value;
            while (!AtEnd() && !Is(",") && !Is(";")) SkipToken();
          }
        }
        Declare(variable);
      } while (Take(","));
      if (Take(";")) return;
    } catch (const Unreadable&) {
    }
    // The parser goes on behind what is no declaration.
    if (scope_.size() == declared || at_ == begin) at_ = std::max(at_, begin + 1);
    SkipToEndOfStatement();
  }

  // Declares the parameters of a function; the body's brace keeps them in scope, a mere declaration not.
  size_t SkipParameters() {
    const size_t open = at_;
    SkipBrackets();
    const size_t end = at_;
    if (!Is("{")) {
      SkipToEndOfStatement();
      return at_;
    }
    at_ = open + 1;
    scopes_.push_back(scope_.size());
    while (at_ + 1 < end) {
      try {
        const CType type = TakeType(true);
        CVariable variable = TakeDeclarator(type);
        // The outermost extent of a parameter says nothing of how long the array is, but is as good as
        // anything that C says.
        Declare(variable);
      } catch (const Unreadable&) {
      }
      while (at_ + 1 < end && !Is(",")) SkipToken();
      if (at_ + 1 < end) ++at_;
    }
    return end + 1;  // behind the brace, which has opened its scope
  }

  void ReadDefinition() {
    ++at_;
    const SourcePosition position = Now().position;
    if (IsName() &&
        (Now(1).kind == CTokenKind::kInteger || (Is("-", 1) && Now(2).kind == CTokenKind::kInteger) ||
         Is("(", 1)) &&
        Now(1).position.column != position.column + static_cast<int>(Now().text.size())) {
      CVariable variable{.name = std::string(Now().text), .position = position, .type = CType::kLong};
      ++at_;
      try {
        const CExpressionPtr value = TakeAssignmentExpression();
        variable.constant = ConstantOf(*value);
        if (variable.constant && Now().kind == CTokenKind::kLineEnd) {
          Declare(variable);
          return SkipLine();
        }
      } catch (const Unreadable&) {
      }
    }
    if (IsName()) macros_.push_back(std::string(Now().text));
    SkipLine();
  }

  bool AtPragma(absl::string_view name) const { return Now().kind == CTokenKind::kPragma && Is(name, 1); }

  // The statements between "#pragma scop" and "#pragma endscop", which polyhedral compilers mark loops with.
  void ReadScop() {
    auto block = std::make_shared<CStatement>();
    block->position = Now().position;
    block->directives.push_back(
        {.position = Now().position, .parametric = true, .constructs = {}, .clauses = {}});
    SkipLine();
    CRegion region{.statement = block, .scope = scope_};
    const size_t declared = scope_.size();
    try {
      while (!AtPragma("endscop")) {
        if (AtEnd()) Fail(block->position, "#pragma scop wants a #pragma endscop");
        if (!Take(";")) TakeIntoBlock(block.get(), 0);
      }
      region.registers = std::exchange(registers_, std::nullopt);
      program_.regions.push_back(std::move(region));
    } catch (const Unreadable& unreadable) {
      errors_->Add({unreadable.position}, unreadable.message);
    }
    while (!AtEnd() && !AtPragma("endscop")) ++at_;
    SkipLine();
    scope_.resize(declared);
    loops_ = 0;
  }

  // Pragmas, then marked loops; or pragmas that mark nothing.
  void ReadMarked() {
    if (AtPragma("scop")) return ReadScop();
    std::vector<CDirective> directives;
    bool marks = Is("meta_schedule");
    while (Now().kind == CTokenKind::kPragma) {
      std::optional<CDirective> directive = ReadPragma(false);
      if (!directive) continue;
      marks |= directive->parametric || IsIn(directive->constructs, "for") ||
               IsIn(directive->constructs, "distribute") || IsIn(directive->constructs, "simd") ||
               IsIn(directive->constructs, "target") || IsIn(directive->constructs, "teams");
      directives.push_back(*std::move(directive));
    }
    marks |= Is("meta_schedule");
    if (!marks) return;
    // Functions that a file declares to the device have no loops of their own.
    CRegion region{.statement = nullptr, .scope = scope_};
    const size_t begin = at_, declared = scope_.size();
    const int errors = errors_->count();
    try {
      region.statement = TakeStatement(std::move(directives), 0);
    } catch (const Unreadable& unreadable) {
      errors_->Add({unreadable.position}, unreadable.message);
    }
    if (region.statement != nullptr && errors_->count() == errors) {
      region.registers = std::exchange(registers_, std::nullopt);
      program_.regions.push_back(std::move(region));
    } else {
      // On behind these loops.
      at_ = begin;
      while (!AtEnd() &&
             (Is("for") || Is("meta_for") || Is("meta_schedule") || Now().kind == CTokenKind::kPragma)) {
        if (Now().kind == CTokenKind::kPragma) {
          SkipLine();
          continue;
        }
        ++at_;
        if (Is("cache")) ++at_;
        if (Is("(")) SkipBrackets();
      }
      if (Is("{")) {
        SkipBrackets();
      } else {
        SkipToEndOfStatement();
      }
    }
    scope_.resize(declared);
    loops_ = 0;
  }

  // Returns nothing for pragmas of others. `inside`: of marked loops.
  std::optional<CDirective> ReadPragma(bool inside) {
    CDirective directive{.position = Now().position};
    ++at_;
    if (Take("fusion")) {
      if (Take("parametric")) {
        directive.parametric = true;
      } else if (Take("parameter")) {
        ReadParameter();
      } else if (Take("registers")) {
        ReadRegisters();
      } else {
        errors_->Add({Now().position},
                     absl::StrCat("#pragma fusion has parametric, parameter and registers, not ", Found()));
      }
      SkipLine();
      if (!directive.parametric) return std::nullopt;
      return directive;
    }
    if (!Take("omp")) {
      SkipLine();
      return std::nullopt;
    }
    while (IsName()) {
      const absl::string_view word = Now().text;
      const bool first = directive.constructs.empty();
      if (IsConstruct(word) && !Is("(", 1)) {
        directive.constructs.emplace_back(word);
        ++at_;
      } else if (const std::string refused = RefusedConstruct(word, first, errors_); !refused.empty()) {
        if (inside || !first || !MayStandOutside(word)) errors_->Add({Now().position}, refused);
        SkipLine();
        return std::nullopt;
      } else {
        break;
      }
    }
    while (IsName() || Is(",")) {
      if (Take(",")) continue;
      try {
        directive.clauses.push_back(TakeClause());
      } catch (const Unreadable& unreadable) {
        errors_->Add({unreadable.position}, unreadable.message);
        break;
      }
    }
    if (Now().kind != CTokenKind::kLineEnd && Now().kind != CTokenKind::kName && errors_->empty())
      errors_->Add({Now().position}, absl::StrCat("expected a clause, not ", Found()));
    SkipLine();
    return directive;
  }

  void ReadRegisters() {
    CRegisters registers;
    for (int64_t* number : {&registers.granular, &registers.single}) {
      if (Now().kind != CTokenKind::kInteger || !absl::SimpleAtoi(Now().text, number)) {
        errors_->Add(
            {Now().position},
            "registers are two numbers: of a thread with the granularity in the text, and with one of 1");
        return;
      }
      ++at_;
    }
    registers_ = registers;
  }

  void ReadParameter() {
    CParameter parameter{.position = Now().position};
    try {
      parameter.name = TakeName("the name of a parameter");
      Expect("in", "before its range, as in \"s in 1..64\"");
      // "1..64" is one token, a number with two points.
      const std::string range(Now().text);
      const size_t points = range.find("..");
      int64_t high = 0;
      if (points == std::string::npos || !absl::SimpleAtoi(range.substr(0, points), &parameter.low) ||
          parameter.low < 0)
        Fail(Now().position, "expected a range such as 1..64");
      if (range.size() > points + 2) {
        if (!absl::SimpleAtoi(range.substr(points + 2), &high) || high < parameter.low)
          Fail(Now().position, "expected a range such as 1..64");
        parameter.high = high;
      }
      program_.parameters.push_back(parameter);
    } catch (const Unreadable& unreadable) {
      errors_->Add({unreadable.position}, unreadable.message);
    }
  }

  CClause TakeClause() {
    CClause clause{.name = std::string(Now().text), .position = Now().position};
    if (const std::string refused = RefusedClause(clause.name, errors_); !refused.empty())
      Fail(clause.position, refused);
    ++at_;
    if (!Is("(")) return clause;
    const size_t open = at_;
    ++at_;
    if (clause.name == "map") {
      if (Is(",", 1) && Is(":", 3)) SkipModifier(clause.name, "always");
      if (Is(":", 1)) {
        TakeOneOf({"to", "from", "tofrom", "alloc"}, clause.name);
        ++at_;
      }
      TakeNames(&clause);
    } else if (clause.name == "reduction") {
      if (Is(",", 1)) SkipModifier(clause.name, "default");
      if (!Is(":", 1))
        Fail(Now().position, absl::StrCat("expected an operation, as in reduction(+: x), not ", Found()));
      clause.operation = std::string(tokens_[at_++].text);
      ++at_;
      TakeNames(&clause);
    } else if (clause.name == "schedule" || clause.name == "dist_schedule") {
      for (; Is(":", 1) || Is(":", 3); ++at_) TakeOneOf({"monotonic", "nonmonotonic", "simd"}, clause.name);
      TakeOneOf({"static", "dynamic", "guided", "auto", "runtime"}, clause.name);
      if (Take(",")) clause.expressions.push_back(TakeAssignmentExpression());
    } else if (clause.name == "default" || clause.name == "proc_bind") {
      ++at_;  // the kind
    } else if (clause.name == "if") {
      if (IsName() && Is(":", 1)) at_ += 2;
      clause.expressions.push_back(TakeAssignmentExpression());
    } else if (clause.IsPrivate() || clause.name == "shared") {
      TakeNames(&clause);
      if (clause.name == "linear" && Take(":")) clause.expressions.push_back(TakeAssignmentExpression());
    } else {
      clause.expressions.push_back(TakeAssignmentExpression());
    }
    if (!Take(")")) {
      const std::string found = Found();
      const SourcePosition position = Now().position;
      at_ = open;
      SkipBrackets();
      Fail(position, absl::StrCat("expected \")\" behind what ", clause.name, " has, not ", found));
    }
    return clause;
  }

  void SkipModifier(const std::string& clause, absl::string_view known) {
    if (!Is(known))
      Fail(Now().position,
           absl::StrCat(clause, "(", Now().text, ", ...) is of OpenMP 5, and 4.5 is read here"));
    at_ += 2;
  }
  void TakeOneOf(const std::vector<absl::string_view>& words, const std::string& clause) {
    if (!IsIn(words, Now().text))
      Fail(Now().position,
           absl::StrCat("expected ", absl::StrJoin(words, ", "), " in ", clause, ", not ", Found()));
    ++at_;
  }

  // "a, b[0:n]"; sections only say how much of an array is copied, which footprints say better.
  void TakeNames(CClause* clause) {
    do {
      clause->names.push_back(TakeName("a name"));
      while (Is("[")) SkipBrackets();
    } while (Take(","));
  }

  // --- Types and declarations ---
  bool AtType() const { return IsName() && (IsIn(kTypeWords, Now().text) || types_.count(Now().text) > 0); }

  // `any`: outside of marked loops, where types without a kernel are no matter.
  CType TakeType(bool any = false) {
    const SourcePosition position = Now().position;
    volatile_ = false;
    int longs = 0;
    bool real = false, twice = false, integer = false;
    std::string other;
    while (AtType()) {
      const absl::string_view word = tokens_[at_++].text;
      if (!any && (word == "volatile" || word == "static"))
        Fail(tokens_[at_ - 1].position, RefusedVariable(word, ""));
      volatile_ |= word == "volatile";
      if (const auto defined = types_.find(word); defined != types_.end()) return defined->second;
      if (word == "long") ++longs;
      if (word == "float") real = true;
      if (word == "double") real = twice = true;
      if (word == "int" || word == "signed" || word == "int32_t") integer = true;
      if (word == "size_t" || word == "ptrdiff_t" || word == "int64_t") longs = 1;
      if (IsIn(kOtherTypes, word)) other = std::string(word);
      if (word == "struct" && IsName()) ++at_;
    }
    if (other.empty() && (real || longs > 0 || integer))
      return real ? (twice ? CType::kDouble : CType::kFloat) : longs > 0 ? CType::kLong : CType::kInt;
    if (!any || other.empty())
      Fail(position, absl::StrCat("the type ", other.empty() ? Found() : other,
                                  " is not supported; int, long, float and double are"));
    return CType::kOther;
  }

  CVariable TakeDeclarator(CType type) {
    CVariable variable{.type = type, .is_volatile = volatile_};
    int pointers = 0;
    const auto qualifiers = [&] {
      for (; Is("const") || Is("restrict") || Is("__restrict__") || Is("__restrict") || Is("volatile"); ++at_)
        variable.is_volatile |= Is("volatile");
    };
    for (qualifiers(); Take("*"); qualifiers()) ++pointers;
    bool inner_pointer = false;
    if (Is("(") && Is("*", 1)) {  // (*a)[n]
      at_ += 2;
      qualifiers();
      inner_pointer = true;
    }
    variable.position = Now().position;
    variable.name = TakeName("a name");
    if (inner_pointer) Expect(")", "behind a pointer to an array");
    if (pointers > 0 || inner_pointer) variable.extents.push_back(nullptr);
    variable.indirect = pointers > 1 || (pointers > 0 && Is("["));
    while (Take("[")) {
      qualifiers();
      if (Take("static")) qualifiers();
      if (Take("]")) {
        variable.extents.push_back(nullptr);
        continue;
      }
      variable.extents.push_back(TakeAssignmentExpression());
      Expect("]", "behind the extent of an array");
    }
    variable.array = !variable.extents.empty();
    variable.aliases = (pointers > 0 || inner_pointer) && aliasing_.count(variable.name) > 0;
    return variable;
  }

  std::optional<int64_t> ConstantOf(const CExpression& expression) const {
    std::set<std::string> names;
    AddNames(expression, &names);
    IntegerValues values;
    for (const std::string& name : names)
      if (const CVariable* variable = Find(name); variable != nullptr && variable->constant)
        values[name] = *variable->constant;
    return EvaluateC(expression, values);
  }

  // --- Expressions ---
  CExpressionPtr TakeAssignmentExpression() { return TakeConditional(0); }

  std::shared_ptr<CExpression> Make(CExpression::Kind kind, SourcePosition position, std::string text,
                                    std::vector<CExpressionPtr> operands = {}) const {
    auto expression = std::make_shared<CExpression>();
    expression->kind = kind;
    expression->position = position;
    expression->text = std::move(text);
    expression->operands = std::move(operands);
    return expression;
  }

  CExpressionPtr MakeOne(SourcePosition position) const {
    auto number = Make(CExpression::Kind::kInteger, position, "1");
    number->integer = 1;
    return number;
  }

  CExpressionPtr TakeConditional(int depth) {
    if (depth > kDeepestExpression)
      Fail(Now().position, absl::StrCat("expressions may be ", kDeepestExpression, " deep, not more"));
    CExpressionPtr condition = TakeBinary(0, depth + 1);
    if (!Is("?")) return condition;
    const SourcePosition position = Now().position;
    ++at_;
    CExpressionPtr yes = TakeConditional(depth + 1);
    Expect(":", "between the two values of a condition");
    CExpressionPtr no = TakeConditional(depth + 1);
    return Make(CExpression::Kind::kConditional, position, "?:", {condition, yes, no});
  }

  CExpressionPtr TakeBinary(size_t level, int depth) {
    static const std::array<std::vector<absl::string_view>, 10> kLevels = {{{"||"},
                                                                            {"&&"},
                                                                            {"|"},
                                                                            {"^"},
                                                                            {"&"},
                                                                            {"==", "!="},
                                                                            {"<", "<=", ">", ">="},
                                                                            {"<<", ">>"},
                                                                            {"+", "-"},
                                                                            {"*", "/", "%"}}};
    if (level == kLevels.size()) return TakeUnary(depth);
    CExpressionPtr left = TakeBinary(level + 1, depth);
    int operators = 0;
    while (Now().kind == CTokenKind::kSymbol && IsIn(kLevels[level], Now().text)) {
      if (++operators > 1000) Fail(Now().position, "this expression is too long");
      const SourcePosition position = Now().position;
      std::string operation(tokens_[at_++].text);
      CExpressionPtr right = TakeBinary(level + 1, depth);
      left = Make(CExpression::Kind::kBinary, position, std::move(operation), {left, right});
    }
    return left;
  }

  CExpressionPtr TakeUnary(int depth) {
    if (depth > kDeepestExpression)
      Fail(Now().position, absl::StrCat("expressions may be ", kDeepestExpression, " deep, not more"));
    const SourcePosition position = Now().position;
    if (Take("+")) return TakeUnary(depth + 1);
    if (Take("-")) return Make(CExpression::Kind::kUnary, position, "-", {TakeUnary(depth + 1)});
    if (Take("!")) return Make(CExpression::Kind::kUnary, position, "!", {TakeUnary(depth + 1)});
    RefusePointer();
    if (Is("++") || Is("--")) Fail(position, "++ and -- stand behind their variables here");
    if (Is("(") && IsName(1) && IsIn(kTypeWords, Now(1).text)) {
      ++at_;
      const CType type = TakeType();
      if (Is("*")) Fail(Now().position, "pointers are not converted here");
      Expect(")", "behind the type of a cast");
      auto cast = Make(CExpression::Kind::kCast, position, CTypeName(type), {TakeUnary(depth + 1)});
      cast->type = type;
      return cast;
    }
    return TakePrimary(depth);
  }

  void RefusePointer() const {
    if (Is("*")) Fail(Now().position, "pointers are not followed here; write the access as a[i]");
    if (Is("&")) Fail(Now().position, "addresses are not taken here; write the access as a[i]");
  }

  CExpressionPtr TakePrimary(int depth) {
    const CToken& token = Now();
    const SourcePosition position = token.position;
    if (token.kind == CTokenKind::kInteger) {
      auto number = Make(CExpression::Kind::kInteger, position, std::string(token.text));
      absl::string_view digits = token.text;
      while (!digits.empty() &&
             (absl::EndsWithIgnoreCase(digits, "l") || absl::EndsWithIgnoreCase(digits, "u")))
        digits.remove_suffix(1);
      const bool hexadecimal = absl::StartsWithIgnoreCase(digits, "0x");
      const bool octal = !hexadecimal && digits.size() > 1 && digits[0] == '0';
      if (octal) Fail(position, absl::StrCat("\"", token.text, "\" is octal; write it in decimals"));
      if (!(hexadecimal ? absl::SimpleHexAtoi(digits, &number->integer)
                        : absl::SimpleAtoi(digits, &number->integer)) ||
          number->integer < 0)
        Fail(position, absl::StrCat("\"", token.text, "\" is no whole number of 64 bits"));
      ++at_;
      return number;
    }
    if (token.kind == CTokenKind::kReal) {
      ++at_;
      absl::string_view digits = token.text;
      if (absl::EndsWithIgnoreCase(digits, "f")) digits.remove_suffix(1);
      double value = 0;
      if (!absl::SimpleAtod(digits, &value))
        Fail(position, absl::StrCat("\"", token.text, "\" is no number"));
      return Make(CExpression::Kind::kReal, position, std::string(token.text));
    }
    if (Take("(")) {
      CExpressionPtr inner = TakeConditional(depth + 1);
      Expect(")", "behind an expression in brackets");
      return inner;
    }
    if (!IsName() || IsIn(kTypeWords, token.text))
      Fail(position, absl::StrCat("expected a value, not ", Found()));
    if (const std::string refused = RefusedStatement(token.text); !refused.empty()) Fail(position, refused);
    std::string name = TakeName("a value");
    if (IsIn(macros_, name))
      Fail(position, absl::StrCat(name, " is a macro; give what `cc -E` makes of the file"));
    CExpressionPtr expression;
    if (Take("(")) {
      std::vector<CExpressionPtr> arguments;
      if (!Is(")")) {
        do {
          arguments.push_back(TakeConditional(depth + 1));
        } while (Take(","));
      }
      Expect(")", "behind the arguments of a call");
      expression = Make(CExpression::Kind::kCall, position, std::move(name), std::move(arguments));
    } else if (Is("[")) {
      std::vector<CExpressionPtr> indices;
      while (Take("[")) {
        indices.push_back(TakeConditional(depth + 1));
        Expect("]", "behind an index");
      }
      expression = Make(CExpression::Kind::kSubscript, position, std::move(name), std::move(indices));
    } else {
      expression = Make(CExpression::Kind::kName, position, std::move(name));
    }
    if (depth > 0 && (Is("++") || Is("--"))) {
      std::string operation(tokens_[at_++].text);
      return Make(CExpression::Kind::kUnary, position, std::move(operation), {expression});
    }
    if (Is(".") || Is("->"))
      Fail(position, absl::StrCat("members of structures are not read: ", CText(*expression), Now().text,
                                  Now(1).text, "; use a variable or an array of its own"));
    return expression;
  }

  // --- Statements of marked loops ---
  CStatementPtr TakeStatement(std::vector<CDirective> directives, int depth) {
    if (depth > 4 * kDeepestNest) Fail(Now().position, "statements are nested too deeply");
    bool alone = false;
    while (Now().kind == CTokenKind::kPragma) {
      std::optional<CDirective> directive = ReadPragma(true);
      alone = !directive;
      if (directive) directives.push_back(*std::move(directive));
    }
    auto statement = std::make_shared<CStatement>();
    statement->position = Now().position;
    statement->directives = std::move(directives);
    if (alone && Is("}")) return statement;  // a directive that has been refused stood alone
    if (Take("{")) {
      const size_t declared = scope_.size();
      while (!Is("}")) {
        if (AtEnd()) Fail(statement->position, "this block is not closed; end it with }");
        if (!Take(";")) TakeIntoBlock(statement.get(), depth);
      }
      ++at_;
      scope_.resize(declared);
      return statement;
    }
    if (Take(";")) return statement;  // an empty block
    if (Is("for") || Is("meta_for")) return TakeFor(std::move(statement), depth);
    if (Take("meta_schedule")) {
      statement->kind = CStatement::Kind::kSchedule;
      if (Take("cache")) {
        Expect("(", "behind cache");
        do {
          const SourcePosition position = Now().position;
          statement->cached.push_back(
              Make(CExpression::Kind::kName, position, TakeName("the name of an array")));
        } while (Take(","));
        Expect(")", "behind the names of cached arrays");
      }
      statement->body.push_back(TakeStatement({}, depth + 1));
      return statement;
    }
    if (Take("if")) {
      statement->kind = CStatement::Kind::kIf;
      Expect("(", "behind if");
      statement->value = TakeConditional(0);
      Expect(")", "behind a condition");
      statement->body.push_back(TakeStatement({}, depth + 1));
      if (Take("else")) statement->body.push_back(TakeStatement({}, depth + 1));
      return statement;
    }
    if (IsName() && Is(":", 1))
      Fail(Now().position,
           absl::StrCat("the label ", Now().text,
                        " has no place in loops for a device; put what goto skips into an if"));
    TakeAssignment(statement.get());
    std::vector<CStatementPtr> chain;  // a = b = c: b = c, then a = b
    while (Take("=")) {
      chain.push_back(statement);
      auto next = std::make_shared<CStatement>();
      next->kind = CStatement::Kind::kAssignment;
      next->position = statement->value->position;
      next->operation = "=";
      next->target = statement->value;
      next->value = TakeAssignmentExpression();
      CheckTarget(*next);
      statement = std::move(next);
    }
    Expect(";", "behind a statement");
    if (chain.empty()) return statement;
    auto block = std::make_shared<CStatement>();
    block->position = chain[0]->position;
    block->directives = chain[0]->directives;
    block->body.push_back(statement);
    block->body.insert(block->body.end(), chain.rbegin(), chain.rend());
    return block;
  }
  void CheckTarget(const CStatement& assignment) {
    if (assignment.target->kind != CExpression::Kind::kName &&
        assignment.target->kind != CExpression::Kind::kSubscript)
      Fail(assignment.position, "only variables and entries of arrays are assigned to");
  }

  // A declaration of several variables is one statement of each.
  void TakeIntoBlock(CStatement* block, int depth) {
    if (!AtType()) {
      block->body.push_back(TakeStatement({}, depth + 1));
      return;
    }
    const CType type = TakeType();
    do {
      auto statement = std::make_shared<CStatement>();
      statement->kind = CStatement::Kind::kDeclaration;
      statement->position = Now().position;
      statement->variable = TakeDeclarator(type);
      if (statement->variable.indirect ||
          (statement->variable.array && statement->variable.extents[0] == nullptr))
        Fail(statement->position,
             "pointers are not declared inside of loops for a device; write the access as a[i]");
      if (Take("=")) {
        if (Is("{")) Fail(Now().position, "arrays are not initialized here; assign to their entries");
        statement->value = TakeAssignmentExpression();
      }
      Declare(statement->variable);
      block->body.push_back(std::move(statement));
    } while (Take(","));
    Expect(";", "behind a declaration");
  }

  CStatementPtr TakeFor(std::shared_ptr<CStatement> statement, int depth) {
    if (++loops_ > kDeepestNest)
      Fail(Now().position, absl::StrCat("loops may be ", kDeepestNest, " deep, not more"));
    statement->kind = CStatement::Kind::kFor;
    statement->meta = Is("meta_for");
    ++at_;
    const size_t declared = scope_.size();
    Expect("(", "behind for");
    const SourcePosition head = Now().position;
    if (AtType()) {
      statement->declares = true;
      statement->variable.type = TakeType();
      if (Is("*")) Fail(head, "the counter of a loop is an integer, not a pointer; write the access as a[i]");
    }
    statement->variable.position = Now().position;
    statement->variable.name = TakeName("the counter of a loop");
    if (!statement->declares)
      if (const CVariable* outer = Find(statement->variable.name)) statement->variable.type = outer->type;
    if (!IsIntegerType(statement->variable.type)) Fail(head, "the counter of a loop is an integer");
    Expect("=", "in \"for (i = ...\"");
    statement->start = TakeAssignmentExpression();
    if (Is(",")) Fail(Now().position, "a loop has one counter here");
    Declare(statement->variable);
    Expect(";", "behind the start of a loop");
    const SourcePosition test = Now().position;
    CExpressionPtr condition = TakeAssignmentExpression();
    const std::string& counter = statement->variable.name;
    static const std::pair<absl::string_view, absl::string_view> kTurned[] = {
        {"<", ">"}, {"<=", ">="}, {">", "<"}, {">=", "<="}, {"!=", "!="}};
    bool compared = false;
    if (condition->kind == CExpression::Kind::kBinary)
      for (const auto& [straight, turned] : kTurned) {
        if (condition->text != straight) continue;
        if (IsNamed(*condition->operands[0], counter)) {
          statement->relation = std::string(straight);
          statement->bound = condition->operands[1];
          compared = true;
        } else if (IsNamed(*condition->operands[1], counter)) {
          statement->relation = std::string(turned);
          statement->bound = condition->operands[0];
          compared = true;
        }
      }
    if (!compared) Fail(test, absl::StrCat("a loop compares its counter, as in \"", counter, " < n\""));
    Expect(";", "behind the bound of a loop");
    TakeStep(statement.get());
    Expect(")", "behind the step of a loop");
    const bool up = !statement->down;
    if (statement->relation == "!=")
      statement->relation = up ? "<" : ">";  // with steps of 1, as TakeStep has seen to
    if (up != (statement->relation[0] == '<'))
      Fail(test, absl::StrCat("this loop counts ", up ? "up" : "down", " and ends ", up ? "below" : "above",
                              " its bound, which it never meets"));
    statement->body.push_back(TakeStatement({}, depth + 1));
    scope_.resize(declared);
    --loops_;
    return statement;
  }

  void TakeStep(CStatement* statement) {
    const SourcePosition position = Now().position;
    const std::string& counter = statement->variable.name;
    const bool not_equal = statement->relation == "!=";
    if (Is("++") || Is("--")) {
      statement->down = Is("--");
      ++at_;
      if (TakeName("the counter") != counter)
        Fail(position, absl::StrCat("the step of this loop is one of ", counter));
      statement->step = MakeOne(position);
      return;
    }
    if (TakeName("the counter") != counter)
      Fail(position, absl::StrCat("the step of this loop is one of ", counter));
    if (Take("++")) {
      statement->step = MakeOne(position);
    } else if (Take("--")) {
      statement->down = true;
      statement->step = MakeOne(position);
    } else if (Is("+=") || Is("-=")) {
      statement->down = Is("-=");
      ++at_;
      statement->step = TakeAssignmentExpression();
    } else if (Take("=")) {
      CExpressionPtr next = TakeAssignmentExpression();
      const bool sum = next->kind == CExpression::Kind::kBinary && (next->text == "+" || next->text == "-");
      if (sum && IsNamed(*next->operands[0], counter)) {
        statement->down = next->text == "-";
        statement->step = next->operands[1];
      } else if (sum && next->text == "+" && IsNamed(*next->operands[1], counter)) {
        statement->step = next->operands[0];
      } else {
        Fail(position, absl::StrCat("a loop steps by a sum, as in \"", counter, " += 2\""));
      }
    } else {
      Fail(Now().position, absl::StrCat("a loop steps as in \"", counter, "++\" or \"", counter,
                                        " += 2\", not by ", Found()));
    }
    if (not_equal && ConstantOf(*statement->step) != 1)
      Fail(position, "a loop that ends with != steps by 1 here");
  }

  void TakeAssignment(CStatement* statement) {
    statement->kind = CStatement::Kind::kAssignment;
    const SourcePosition position = Now().position;
    RefusePointer();
    if (Is("++") || Is("--")) {
      statement->operation = Is("++") ? "+=" : "-=";
      ++at_;
      statement->target = TakePrimary(0);
      statement->value = MakeOne(position);
    } else {
      statement->target = TakePrimary(0);
      if (statement->target->kind == CExpression::Kind::kCall)
        Fail(position,
             absl::StrCat(
                 "a call of ", statement->target->text,
                 " as a statement has no place in loops for a device; write what it does in its place"));
      static constexpr absl::string_view kAssignments[] = {
          "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
      if (Is("++") || Is("--")) {
        statement->operation = Is("++") ? "+=" : "-=";
        ++at_;
        statement->value = MakeOne(position);
      } else if (Now().kind == CTokenKind::kSymbol && IsIn(kAssignments, Now().text)) {
        statement->operation = std::string(tokens_[at_++].text);
        statement->value = TakeAssignmentExpression();
        if (Is("=") && statement->operation != "=")
          Fail(Now().position, absl::StrCat("behind ", statement->operation, " one value stands"));
      } else {
        Fail(Now().position, absl::StrCat("expected an assignment, not ", Found()));
      }
    }
    CheckTarget(*statement);
  }

  ErrorList* errors_;
  const std::vector<CToken> tokens_;
  size_t at_ = 0;
  CProgram program_;
  std::vector<CVariable> scope_;
  bool volatile_ = false;                // of the type that was read last
  std::optional<CRegisters> registers_;  // of the loops that follow
  std::vector<size_t> scopes_;           // where the open blocks begin in scope_
  std::vector<std::string> macros_;      // that are no plain numbers
  std::set<absl::string_view> assigned_, aliasing_;
  std::map<absl::string_view, CType> types_;  // that the text defines
  int loops_ = 0;                             // around the statement that is read
};

}  // namespace

CProgram ParseC(absl::string_view text, ErrorList* errors) {
  if (text.size() > kMostLoopBytes) {
    errors->Add({}, absl::StrCat("the text has ", text.size(), " bytes; ", kMostLoopBytes, " are allowed"));
    return {};
  }
  if (const std::optional<BadByte> bad = FindBadByte(text)) {
    errors->Add({bad->position}, absl::StrFormat("the byte 0x%02X is no UTF-8", bad->byte));
    return {};
  }
  return CParser(text, errors).Parse();
}

}  // namespace fusion
