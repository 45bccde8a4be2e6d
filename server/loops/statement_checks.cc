#include "server/loops/statement_checks.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/loops/refusals.h"
#include "server/loops/sums.h"

namespace fusion {
namespace {

std::vector<CExpressionPtr> PartsOf(const CStatement& statement) {
  std::vector<CExpressionPtr> parts;
  for (const CExpressionPtr& part :
       {statement.target, statement.value, statement.start, statement.bound, statement.step})
    if (part != nullptr) parts.push_back(part);
  return parts;
}

class StatementChecker {
 public:
  StatementChecker(const CRegion& region, ErrorList* errors) : errors_(errors) {
    std::set<std::string> declared;
    AddDeclared(*region.statement, &declared);
    for (const CVariable& variable : region.scope)
      if (declared.count(variable.name) == 0) volatile_[variable.name] = variable.is_volatile;
  }

  void Check(const CStatement& statement) {
    const std::map<std::string, std::string> outer = reductions_;
    for (const CDirective& directive : statement.directives)
      for (const CClause& clause : directive.clauses)
        for (const std::string& name : clause.names)
          if (clause.name == "reduction")
            reductions_[name] = clause.operation == "-" ? "+" : clause.operation;
    for (const CExpressionPtr& part : PartsOf(statement)) CheckVolatile(*part);
    if (statement.kind == CStatement::Kind::kAssignment) CheckReduction(statement);
    if (statement.kind == CStatement::Kind::kFor) CheckBounds(statement);
    for (const CStatementPtr& inner : statement.body) Check(*inner);
    reductions_ = outer;
  }

 private:
  void CheckVolatile(const CExpression& expression) {
    using Kind = CExpression::Kind;
    if (expression.kind == Kind::kName || expression.kind == Kind::kSubscript)
      if (const auto found = volatile_.find(expression.text); found != volatile_.end() && found->second) {
        errors_->Add({expression.position}, RefusedVariable("volatile", expression.text));
        found->second = false;  // once is enough
      }
    for (const CExpressionPtr& operand : expression.operands) CheckVolatile(*operand);
  }

  void CheckReduction(const CStatement& assignment) {
    const auto clause = reductions_.find(assignment.target->text);
    if (clause == reductions_.end()) return;
    const std::string combined = CombinedBy(assignment);
    const bool same = combined == clause->second || absl::StartsWith(combined, clause->second) ||
                      absl::StartsWith(combined, "f" + clause->second);
    if (!combined.empty() && !same)
      errors_->Add({assignment.position}, absl::StrCat(clause->first, " is combined by ", combined,
                                                       " here, and its reduction clause says ",
                                                       clause->second, "; let both say the same"));
  }

  void CheckBounds(const CStatement& loop) {
    const std::string& counter = loop.variable.name;
    for (const CExpressionPtr& part : {loop.bound, loop.step, loop.declares ? loop.start : nullptr}) {
      std::set<std::string> names;
      if (part != nullptr) AddNames(*part, &names);
      if (names.count(counter) > 0)
        errors_->Add({part->position}, absl::StrCat("the range of ", counter, " is said by ", counter,
                                                    " itself; its start, bound and step are values that the "
                                                    "loop finds"));
    }
  }

  ErrorList* const errors_;
  std::map<std::string, bool> volatile_;
  std::map<std::string, std::string> reductions_;  // operations by name, around the statement
};

void AddWrittenNames(const CExpression& expression, std::set<std::string>* names) {
  if (expression.kind == CExpression::Kind::kUnary && expression.text.size() == 2)  // x++
    names->insert(expression.operands[0]->text);
  for (const CExpressionPtr& operand : expression.operands) AddWrittenNames(*operand, names);
}
void AddWrittenNames(const CStatement& statement, std::set<std::string>* names) {
  if (statement.kind == CStatement::Kind::kAssignment) names->insert(statement.target->text);
  for (const CExpressionPtr& part : PartsOf(statement)) AddWrittenNames(*part, names);
  for (const CStatementPtr& inner : statement.body) AddWrittenNames(*inner, names);
}

std::string FirstOf(const CExpression& expression, const std::set<std::string>& names) {
  using Kind = CExpression::Kind;
  if ((expression.kind == Kind::kName || expression.kind == Kind::kSubscript) &&
      names.count(expression.text) > 0)
    return CText(expression);
  for (const CExpressionPtr& operand : expression.operands)
    if (std::string found = FirstOf(*operand, names); !found.empty()) return found;
  return "";
}

void AddNotes(const CStatement& statement, std::vector<LoopNote>* notes) {
  static const std::map<std::string, const char*> kIgnored = {
      {"simd", "threads of a device are its vectors"},    {"safelen", "threads of a device are its vectors"},
      {"simdlen", "threads of a device are its vectors"}, {"proc_bind", "a device places its threads itself"},
      {"nowait", "kernels run one after another"},        {"device", "a job chooses its device"}};
  for (const CDirective& directive : statement.directives) {
    const auto add = [&](const std::string& word, SourcePosition position) {
      if (const auto ignored = kIgnored.find(word); ignored != kIgnored.end())
        notes->push_back({position, absl::StrCat(word, " is ignored: ", ignored->second)});
    };
    for (const std::string& construct : directive.constructs) add(construct, directive.position);
    for (const CClause& clause : directive.clauses) add(clause.name, clause.position);
  }
  for (const CStatementPtr& inner : statement.body) AddNotes(*inner, notes);
}

}  // namespace

void CheckStatements(const CRegion& region, ErrorList* errors) {
  StatementChecker(region, errors).Check(*region.statement);
}

std::string ChangedBound(const CStatement& loop) {
  std::set<std::string> written;
  for (const CStatementPtr& inner : loop.body) AddWrittenNames(*inner, &written);
  const std::string bound = FirstOf(*loop.bound, written);
  return bound.empty() ? FirstOf(*loop.step, written) : bound;
}

std::vector<LoopNote> NotesOf(const CProgram& program) {
  std::vector<LoopNote> notes;
  for (const CRegion& region : program.regions) AddNotes(*region.statement, &notes);
  return notes;
}

std::string NoteText(const LoopNote& note, const std::string& file_name) {
  return absl::StrCat(file_name, ":", note.position.line, ":", note.position.column, ": note: ", note.text);
}

}  // namespace fusion
