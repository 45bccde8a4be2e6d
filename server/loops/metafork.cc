#include "server/loops/metafork.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/loops/build_c.h"
#include "server/loops/check.h"

namespace fusion {
namespace {

class MetaForkPrinter {
 public:
  // `known`: declarations that were printed for the regions before.
  MetaForkPrinter(const CProgram& program, const CRegion& region, std::set<std::string>* known,
                  ErrorList* errors)
      : program_(program), region_(region), known_(known), errors_(errors) {
    AddNames(*region.statement, &taken_);
    for (const CVariable& variable : region.scope) taken_.insert(variable.name);
  }

  std::string Print() {
    Statement(*region_.statement, 0);
    std::string head;
    const auto declare = [&](const std::string& line) {
      if (known_->insert(line).second) head += line;
    };
    for (const CParameter& parameter : program_.parameters)
      declare(absl::StrCat("#pragma fusion parameter ", parameter.name, " in ", parameter.low, "..",
                           parameter.high ? absl::StrCat(*parameter.high) : "", "\n"));
    for (const std::string& name : added_)
      declare(absl::StrCat("#pragma fusion parameter ", name, " in 1..\n"));
    for (const CVariable& variable : region_.scope)
      if (used_.count(variable.name) > 0 && declared_.count(variable.name) == 0)
        declare(Declaration(variable));
    if (region_.registers)
      absl::StrAppend(&head, "#pragma fusion registers ", region_.registers->granular, " ",
                      region_.registers->single, "\n");
    return head + text_;
  }

  std::string PrintInside(const CStatement& statement) {
    around_.scheduled = true;
    Statement(statement, 0);
    return std::move(text_);
  }

 private:
  // Directives around a statement say how many teams and threads there are.
  struct Around {
    std::string teams, threads;
    bool scheduled = false;    // in a meta_schedule
    bool distributed = false;  // in a loop that teams share
  };

  template <class... Parts>
  void Line(int depth, const Parts&... parts) {
    absl::StrAppend(&text_, std::string(4 * depth, ' '), parts..., "\n");
  }
  std::string Use(const CExpression& expression) {
    Note(expression);
    return CText(expression);
  }
  void Note(const CExpression& expression) {
    std::set<std::string> names;
    AddNames(expression, &names);
    for (const std::string& name : names) NoteName(name);
  }
  void NoteName(const std::string& name) {
    if (!used_.insert(name).second) return;
    // Its declaration uses names, too.
    std::set<std::string> names;
    for (const CVariable& variable : region_.scope)
      if (variable.name == name) AddNames(variable, &names);
    for (const std::string& further : names) NoteName(further);
  }

  std::string Declaration(const CVariable& variable) {
    if (!variable.array && variable.constant)
      return absl::StrCat("const ", CTypeName(variable.type), " ", variable.name, " = ", *variable.constant,
                          ";\n");
    std::string text =
        absl::StrCat(CTypeName(variable.type), " ",
                     variable.extents.empty() || variable.extents[0] != nullptr ? "" : "*", variable.name);
    for (const CExpressionPtr& extent : variable.extents)
      if (extent != nullptr) absl::StrAppend(&text, "[", CText(*extent), "]");
    if (variable.initial != nullptr) absl::StrAppend(&text, " = ", CText(*variable.initial));
    return text + ";\n";
  }

  void Statement(const CStatement& statement, int depth) {
    using Kind = CStatement::Kind;
    const Around outer = around_;
    Take(statement, depth);
    switch (statement.kind) {
      case Kind::kBlock:
        Line(depth, "{");
        for (const CStatementPtr& inner : statement.body) Statement(*inner, depth + 1);
        Line(depth, "}");
        break;
      case Kind::kSchedule: {
        std::vector<std::string> cached;
        for (const CExpressionPtr& name : statement.cached) cached.push_back(Use(*name));
        around_.scheduled = true;
        Line(depth, "meta_schedule",
             cached.empty() ? "" : absl::StrCat(" cache(", absl::StrJoin(cached, ", "), ")"));
        Statement(*statement.body[0], depth);
        break;
      }
      case Kind::kDeclaration: {
        std::string text = absl::StrCat(CTypeName(statement.variable.type), " ", statement.variable.name);
        for (const CExpressionPtr& extent : statement.variable.extents)
          absl::StrAppend(&text, "[", Use(*extent), "]");
        if (statement.value != nullptr) absl::StrAppend(&text, " = ", Use(*statement.value));
        Line(depth, text, ";");
        break;
      }
      case Kind::kAssignment:
        Line(depth, Use(*statement.target), " ", statement.operation, " ", Use(*statement.value), ";");
        break;
      case Kind::kIf:
        Line(depth, "if (", Use(*statement.value), ")");
        Body(*statement.body[0], depth);
        if (statement.body.size() > 1) {
          Line(depth, "else");
          Body(*statement.body[1], depth);
        }
        break;
      case Kind::kFor:
        For(statement, depth);
        break;
    }
    around_ = outer;
  }
  // A declaration cannot stand alone behind a condition or a loop, and `else` belongs to the nearest `if`.
  void Body(const CStatement& statement, int depth) {
    const bool block = statement.kind == CStatement::Kind::kBlock;
    if (!block) Line(depth, "{");
    Statement(statement, block ? depth : depth + 1);
    if (!block) Line(depth, "}");
  }

  void Take(const CStatement& statement, int depth) {
    for (const CDirective& directive : statement.directives) {
      if (directive.parametric) Line(depth, "#pragma fusion parametric");
      for (const CClause& clause : directive.clauses) {
        if (clause.name == "num_teams" && !clause.expressions.empty())
          around_.teams = Use(*clause.expressions[0]);
        if ((clause.name == "thread_limit" || clause.name == "num_threads") && !clause.expressions.empty())
          around_.threads = Use(*clause.expressions[0]);
        if (clause.name == "collapse" || clause.name == "reduction")
          errors_->Add({clause.position}, absl::StrCat("MetaFork has no word for the clause ", clause.name));
        if (clause.IsPrivate()) privates_.insert(privates_.end(), clause.names.begin(), clause.names.end());
      }
    }
  }

  static bool Has(const CStatement& statement, const std::string& construct) {
    return std::any_of(statement.directives.begin(), statement.directives.end(),
                       [&](const CDirective& directive) { return directive.Has(construct); });
  }

  void For(const CStatement& statement, int depth) {
    const bool distributes = Has(statement, "distribute"), threads = Has(statement, "for");
    if (!distributes && !threads) return Plain(statement, depth);
    if (!around_.scheduled) {
      Line(depth, "meta_schedule");
      Line(depth, "{");
      around_.scheduled = true;
      Shared(statement, distributes, threads, depth + 1);
      Line(depth, "}");
      return;
    }
    Shared(statement, distributes, threads, depth);
  }

  void Plain(const CStatement& statement, int depth) {
    const std::string& counter = statement.variable.name;
    if (statement.declares)
      declared_.insert(counter);
    else
      NoteName(counter);
    Line(depth, statement.meta ? "meta_for (" : "for (",
         statement.declares ? absl::StrCat(CTypeName(statement.variable.type), " ") : "", counter, " = ",
         Use(*statement.start), "; ", Use(*GoesOn(statement)), "; ", counter,
         statement.down ? " -= " : " += ", Use(*statement.step), ")");
    Body(*statement.body[0], depth);
  }

  // A name that the text does not have.
  std::string Temporary() {
    for (;;) {
      std::string name = absl::StrCat("tmp", temporaries_++);
      if (taken_.count(name) == 0) return name;
    }
  }
  // Returns what OpenMP says, or else a parameter, which has the same name wherever it is needed.
  std::string Or(const std::string& given, std::string parameter) {
    if (!given.empty()) return given;
    while (taken_.count(parameter) > 0) parameter += "_";
    if (std::find(added_.begin(), added_.end(), parameter) == added_.end()) added_.push_back(parameter);
    return parameter;
  }

  // A loop of OpenMP. Its iterations are counted from 0; the counter is computed of that.
  void Shared(const CStatement& statement, bool distributes, bool threads, int depth) {
    const std::string trips = Temporary(), index = Temporary();
    Line(depth, "int ", trips, " = ", Use(*TripCount(statement)), ";");
    std::string value = "0";  // of the iteration
    std::string guard;
    int loops = 0;
    const auto open = [&](const std::string& head) {
      Line(depth + loops, head);
      Line(depth + loops++, "{");
    };
    // Where only threads share the loop of a kernel without teams, teams share it as well.
    if (distributes || !around_.distributed) {
      const std::string chunk = Temporary(), chunks = Temporary(), team = Temporary();
      const std::string teams = Or(around_.teams, "teams");
      Line(depth, "int ", chunk, " = (", trips, " - 1 + ", teams, ") / ", teams, ";");
      Line(depth, "int ", chunks, " = (", trips, " - 1) / ", chunk, " + 1;");
      open(absl::StrCat("meta_for (int ", team, " = 0; ", team, " < ", chunks, "; ", team, " += 1)"));
      const std::string place = Temporary();
      if (threads) {
        Threads(place, chunk, open);
      } else {
        open(absl::StrCat("for (int ", place, " = 0; ", place, " < ", chunk, "; ", place, " += 1)"));
      }
      value = absl::StrCat(team, " * ", chunk, " + ", place);
      guard = absl::StrCat(index, " < ", trips);
    } else {
      const std::string place = Temporary();
      Threads(place, trips, open);
      value = place;
    }
    around_.distributed = true;
    const int inner = depth + loops;
    Line(inner, "int ", index, " = ", value, ";");
    declared_.insert(statement.variable.name);
    const std::string counter = absl::StrCat(CTypeName(statement.variable.type), " ", statement.variable.name,
                                             " = ", Use(*CounterValue(statement, CName(index))), ";");
    const int body = guard.empty() ? inner : inner + 1;
    if (!guard.empty()) {
      Line(inner, "if (", guard, ")");
      Line(inner, "{");
    }
    Line(body, counter);
    for (const std::string& name : privates_)
      for (const CVariable& variable : region_.scope)
        if (variable.name == name && !variable.array && declared_.insert(name).second)
          Line(body, CTypeName(variable.type), " ", name, ";");
    privates_.clear();
    Statement(*statement.body[0], body);
    if (!guard.empty()) Line(inner, "}");
    while (loops > 0) Line(depth + --loops, "}");
  }
  // B threads take iterations in turn.
  template <class Open>
  void Threads(const std::string& place, const std::string& count, const Open& open) {
    const std::string thread = Temporary(), threads = Or(around_.threads, "threads");
    open(absl::StrCat("meta_for (int ", thread, " = 0; ", thread, " < ", threads, "; ", thread, " += 1)"));
    open(absl::StrCat("for (int ", place, " = ", thread, "; ", place, " < ", count, "; ", place,
                      " += ", threads, ")"));
  }
  const CProgram& program_;
  const CRegion& region_;
  std::set<std::string>* const known_;
  ErrorList* errors_;
  std::string text_;
  Around around_;
  std::set<std::string> taken_, used_, declared_;
  std::vector<std::string> added_, privates_;
  int temporaries_ = 0;
};

// Returns an expression, or a statement, with a name's value in its place; loops of one iteration vanish.
CExpressionPtr WithValue(const CExpressionPtr& expression, const std::string& name, int64_t value) {
  if (expression == nullptr || IsNamed(*expression, name))
    return expression == nullptr ? nullptr : CInteger(value);
  auto copy = std::make_shared<CExpression>(*expression);
  for (CExpressionPtr& operand : copy->operands) operand = WithValue(operand, name, value);
  if (copy->kind != CExpression::Kind::kBinary) return copy;
  const auto is_zero = [](const CExpressionPtr& operand) {
    return operand->kind == CExpression::Kind::kInteger && operand->integer == 0;
  };
  if (copy->text == "*" && (is_zero(copy->operands[0]) || is_zero(copy->operands[1]))) return CInteger(0);
  if (copy->text == "+" && is_zero(copy->operands[0])) return copy->operands[1];
  return CBinary(copy->text, copy->operands[0], copy->operands[1]);
}
CStatementPtr WithValue(const CStatement& statement, const std::string& name, int64_t value) {
  auto copy = std::make_shared<CStatement>(statement);
  for (CExpressionPtr* part : {&copy->target, &copy->value, &copy->start, &copy->bound, &copy->step})
    *part = WithValue(*part, name, value);
  for (CStatementPtr& inner : copy->body) inner = WithValue(*inner, name, value);
  if (copy->kind != CStatement::Kind::kFor || copy->meta || copy->relation != "<") return copy;
  const CExpressionPtr trips = TripCount(*copy);
  const bool once = trips->kind == CExpression::Kind::kInteger && trips->integer == 1 &&
                    copy->start->kind == CExpression::Kind::kInteger;
  return once ? WithValue(*copy->body[0], copy->variable.name, copy->start->integer) : copy;
}

}  // namespace

std::string KernelText(const CProgram& program, const CRegion& region, const CStatement& kernel,
                       const std::vector<std::string>& cached, const std::string& granularity) {
  std::set<std::string> known;
  ErrorList errors("");
  const CStatementPtr single = granularity.empty() ? nullptr : WithValue(kernel, granularity, 1);
  auto schedule = std::make_shared<CStatement>();
  schedule->kind = CStatement::Kind::kSchedule;
  for (const std::string& array : cached) schedule->cached.push_back(CName(array));
  schedule->body = {CBlock({single == nullptr ? std::make_shared<CStatement>(kernel) : single})};
  return MetaForkPrinter(program, region, &known, &errors).PrintInside(*schedule);
}

absl::StatusOr<std::string> PrintMetaFork(absl::string_view text, const std::string& file_name) {
  FUSION_ASSIGN_OR_RETURN(const CheckedProgram checked, CheckLoops(text, file_name));
  ErrorList errors(file_name);
  std::string printed;
  std::set<std::string> known;
  for (const CRegion& region : checked.program.regions)
    printed += MetaForkPrinter(checked.program, region, &known, &errors).Print();
  if (!errors.empty()) return errors.ToStatus();
  return printed;
}

}  // namespace fusion
