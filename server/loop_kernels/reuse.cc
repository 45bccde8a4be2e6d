#include "server/loop_kernels/reuse.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/loops/build_c.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

constexpr int64_t kMostParts = 64;  // of a thread, that registers may hold

// Names that get a value there, or are declared there.
void AddChanged(const CStatement& statement, std::set<std::string>* names) {
  if (statement.kind == Kind::kDeclaration || statement.kind == Kind::kFor)
    names->insert(statement.variable.name);
  if (statement.kind == Kind::kAssignment) names->insert(statement.target->text);
  for (const CStatementPtr& inner : statement.body) AddChanged(*inner, names);
}

template <class Visit>
void VisitExpressions(const CStatement& statement, const Visit& visit) {
  for (const CExpressionPtr& part :
       {statement.target, statement.value, statement.start, statement.bound, statement.step})
    if (part != nullptr) visit(*part);
  for (const CStatementPtr& inner : statement.body) VisitExpressions(*inner, visit);
}

void AddEntries(const CExpression& expression, const std::string& array, std::set<std::string>* texts) {
  if (expression.kind == CExpression::Kind::kSubscript && expression.text == array)
    texts->insert(CText(expression));
  for (const CExpressionPtr& operand : expression.operands) AddEntries(*operand, array, texts);
}

CExpressionPtr WithVariable(const CExpressionPtr& expression, const std::string& entry,
                            const CExpressionPtr& variable) {
  if (expression->kind == CExpression::Kind::kSubscript && CText(*expression) == entry) return variable;
  if (expression->operands.empty()) return expression;
  auto copy = std::make_shared<CExpression>(*expression);
  for (CExpressionPtr& operand : copy->operands) operand = WithVariable(operand, entry, variable);
  return copy;
}
CStatementPtr WithVariable(const CStatementPtr& statement, const std::string& entry,
                           const CExpressionPtr& variable) {
  auto copy = std::make_shared<CStatement>(*statement);
  for (CExpressionPtr* part : {&copy->target, &copy->value, &copy->start, &copy->bound, &copy->step})
    if (*part != nullptr) *part = WithVariable(*part, entry, variable);
  for (CStatementPtr& inner : copy->body) inner = WithVariable(inner, entry, variable);
  return copy;
}

// Adds the entries that every iteration writes.
void AddTargets(const CStatement& body, std::vector<CExpressionPtr>* targets) {
  if (body.kind == Kind::kAssignment && body.target->kind == CExpression::Kind::kSubscript)
    targets->push_back(body.target);
  if (body.kind == Kind::kBlock)
    for (const CStatementPtr& inner : body.body) AddTargets(*inner, targets);
}

bool IsOneEntry(const CStatement& loop, const CExpression& target, std::set<std::string> changed) {
  AddChanged(loop, &changed);
  for (const CExpressionPtr& index : target.operands)
    if (HasEntries(*index) || UsesAny(*index, changed)) return false;
  std::set<std::string> texts;
  VisitExpressions(loop, [&](const CExpression& expression) { AddEntries(expression, target.text, &texts); });
  return texts.size() == 1;
}

// Entries that are variables while a loop runs.
class Promotion {
 public:
  explicit Promotion(const std::map<std::string, CType>& arrays) : arrays_(arrays) {}

  CStatementPtr Do(const CStatementPtr& statement) {
    auto copy = std::make_shared<CStatement>(*statement);
    for (CStatementPtr& inner : copy->body) inner = Do(inner);
    if (copy->kind != Kind::kFor || HasLoop(*copy->body[0])) return copy;
    std::vector<CStatementPtr> before, after;
    CStatementPtr body = copy->body[0];
    for (const CExpressionPtr& target : EntriesOfAll(*copy, arrays_, {})) {
      const std::string name = absl::StrCat("@kept", number_++);
      before.push_back(CDeclare(arrays_.at(target->text), name, target));
      body = WithVariable(body, CText(*target), CName(name));
      after.push_back(CAssign(target, CName(name)));
    }
    if (before.empty()) return copy;
    copy->body = {body};
    before.push_back(copy);
    before.insert(before.end(), after.begin(), after.end());
    // A loop without iterations touches nothing.
    return CWhere(CBinary(copy->relation, copy->start, copy->bound), CBlock(std::move(before)));
  }

 private:
  const std::map<std::string, CType>& arrays_;
  int number_ = 0;
};

// Loops over parts around a statement.
CStatementPtr Around(const std::vector<const CStatement*>& parts, CStatementPtr statement) {
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    auto loop = std::make_shared<CStatement>(**part);
    loop->body = {statement};
    statement = std::move(loop);
  }
  return statement;
}

// Parts that do each statement in turn.
class Jam {
 public:
  Jam(std::vector<const CStatement*> parts, std::vector<int64_t> counts)
      : parts_(std::move(parts)), counts_(std::move(counts)) {
    for (const CStatement* part : parts_) own_.insert(part->variable.name);
  }

  // Parts for which `guard` does not hold do nothing but the declarations that it uses.
  void Guard(const CExpressionPtr& guard, const std::vector<CStatementPtr>& declarations) {
    guard_ = guard;
    for (const CStatementPtr& declaration : declarations) unguarded_.insert(declaration->variable.name);
  }

  CStatementPtr Do(const CStatementPtr& body) {
    std::vector<CStatementPtr> out;
    Statement(body, &out);
    return CBlock(std::move(out));
  }

 private:
  CExpressionPtr Own(const CExpressionPtr& expression) const {
    if (expression->kind == CExpression::Kind::kName && arrays_.count(expression->text) > 0) {
      auto entry = std::make_shared<CExpression>();
      entry->kind = CExpression::Kind::kSubscript;
      entry->position = expression->position;
      entry->text = expression->text;
      for (const CStatement* part : parts_) entry->operands.push_back(CName(part->variable.name));
      return entry;
    }
    if (expression->operands.empty()) return expression;
    auto copy = std::make_shared<CExpression>(*expression);
    for (CExpressionPtr& operand : copy->operands) operand = Own(operand);
    return copy;
  }
  CStatementPtr Own(const CStatementPtr& statement) const {
    auto copy = std::make_shared<CStatement>(*statement);
    for (CExpressionPtr* part : {&copy->target, &copy->value, &copy->start, &copy->bound, &copy->step})
      if (*part != nullptr) *part = Own(*part);
    for (CExpressionPtr& extent : copy->variable.extents) extent = Own(extent);
    for (CStatementPtr& inner : copy->body) inner = Own(inner);
    return copy;
  }
  CStatementPtr Each(const CStatementPtr& statement) const {
    return Around(parts_, guard_ == nullptr ? statement : CWhere(Own(guard_), statement));
  }
  bool Differs(const CExpression& expression) const { return UsesAny(expression, own_); }
  bool DiffersIn(const CStatement& statement) const {
    bool differs = false;
    VisitExpressions(statement, [&](const CExpression& expression) { differs |= Differs(expression); });
    return differs;
  }

  void Statement(const CStatementPtr& statement, std::vector<CStatementPtr>* out) {
    switch (statement->kind) {
      case Kind::kBlock:
      case Kind::kSchedule: {
        std::vector<CStatementPtr> inner;
        for (const CStatementPtr& each : statement->body) Statement(each, &inner);
        out->push_back(CBlock(std::move(inner)));
        return;
      }
      case Kind::kDeclaration: {
        const CVariable& variable = statement->variable;
        const bool alike = !variable.array && statement->value != nullptr && !Differs(*statement->value) &&
                           changed_.count(variable.name) == 0 && !ReadsMemory(*statement->value);
        if (alike) {
          out->push_back(statement);
          return;
        }
        own_.insert(variable.name);
        arrays_.insert(variable.name);
        auto declaration = std::make_shared<CStatement>(*statement);
        declaration->value = nullptr;
        for (size_t i = 0; i < counts_.size(); ++i)
          declaration->variable.extents.insert(
              declaration->variable.extents.begin() + static_cast<std::ptrdiff_t>(i), CInteger(counts_[i]));
        declaration->variable.array = true;
        out->push_back(std::move(declaration));
        if (statement->value == nullptr) return;
        auto assignment = std::make_shared<CStatement>();
        assignment->kind = Kind::kAssignment;
        assignment->position = statement->position;
        assignment->operation = "=";
        assignment->target = Own(CName(variable.name));
        assignment->value = Own(statement->value);
        out->push_back(unguarded_.count(variable.name) > 0 ? Around(parts_, assignment) : Each(assignment));
        return;
      }
      case Kind::kIf:
        if (HasLoop(*statement) && statement->body.size() == 1) {
          if (!Differs(*statement->value) && !ReadsMemory(*statement->value)) {
            std::vector<CStatementPtr> inner;
            Statement(statement->body[0], &inner);
            out->push_back(CWhere(statement->value, CBlock(std::move(inner))));
            return;
          }
        }
        out->push_back(Each(Own(statement)));
        return;
      case Kind::kFor:
        if (!statement->parts && !Differs(*statement->start) && !Differs(*statement->bound) &&
            !Differs(*statement->step) && own_.count(statement->variable.name) == 0 &&
            !ReadsMemory(*statement->bound)) {
          auto loop = std::make_shared<CStatement>(*statement);
          std::vector<CStatementPtr> inner;
          Statement(statement->body[0], &inner);
          loop->body = {CBlock(std::move(inner))};
          out->push_back(std::move(loop));
          return;
        }
        out->push_back(Each(Own(statement)));
        return;
      case Kind::kAssignment:
        out->push_back(Each(Own(statement)));
        return;
    }
  }

 public:
  // Scalars that are assigned to somewhere are each part's own.
  void FindChanged(const CStatement& statement) {
    if (statement.kind == Kind::kAssignment && statement.target->kind == CExpression::Kind::kName)
      changed_.insert(statement.target->text);
    for (const CStatementPtr& inner : statement.body) FindChanged(*inner);
  }
  // Returns whether no name is declared twice, and no array is: parts take turns only then.
  static bool MayJam(const CStatement& statement, std::set<std::string>* declared) {
    if (statement.kind == Kind::kDeclaration || (statement.kind == Kind::kFor && statement.declares)) {
      if (!declared->insert(statement.variable.name).second) return false;
      if (statement.kind == Kind::kDeclaration && statement.variable.array) return false;
    }
    if (statement.kind == Kind::kFor && !statement.declares) return false;
    return std::all_of(statement.body.begin(), statement.body.end(),
                       [&](const CStatementPtr& inner) { return MayJam(*inner, declared); });
  }

 private:
  const std::vector<const CStatement*> parts_;
  const std::vector<int64_t> counts_;
  CExpressionPtr guard_;
  std::set<std::string> unguarded_;
  std::set<std::string> own_;     // names that differ from part to part
  std::set<std::string> arrays_;  // of them those that have become arrays, with an entry for each part
  std::set<std::string> changed_;
};

CStatementPtr Jammed(const CStatementPtr& body, const IntegerValues& constants) {
  std::vector<const CStatement*> parts;
  std::vector<int64_t> counts;
  int64_t all = 1;
  CStatementPtr at = body;
  for (;;) {
    while (at->kind == Kind::kBlock && at->body.size() == 1) at = at->body[0];
    if (at->kind != Kind::kFor || !at->parts) break;
    const auto count = EvaluateC(*TripCount(*at), constants);
    if (!count || *count < 1 || all * *count > kMostParts) return body;
    all *= *count;
    parts.push_back(at.get());
    counts.push_back(*count);
    at = at->body[0];
  }
  std::set<std::string> declared;
  if (parts.empty() || all == 1 || !HasLoop(*at) || !Jam::MayJam(*at, &declared)) return body;
  // Where there are declarations and a condition around all the rest, those parts do nothing for which it
  // does not hold.
  CStatementPtr work = at;
  std::vector<CStatementPtr> checks;
  CExpressionPtr guard;
  if (at->kind == Kind::kBlock && !at->body.empty() && at->body.back()->kind == Kind::kIf &&
      at->body.back()->body.size() == 1 &&
      std::all_of(at->body.begin(), at->body.end() - 1,
                  [](const CStatementPtr& one) { return one->kind == Kind::kDeclaration; })) {
    checks.assign(at->body.begin(), at->body.end() - 1);
    guard = at->body.back()->value;
    std::vector<CStatementPtr> unguarded = checks;
    unguarded.push_back(at->body.back()->body[0]);
    work = CBlock(std::move(unguarded));
  }
  const auto jammed = [&](bool guarded) {
    Jam jam(parts, counts);
    jam.FindChanged(*work);
    if (guarded) jam.Guard(guard, checks);
    return jam.Do(work);
  };
  if (guard == nullptr) return jammed(false);
  const CStatementPtr together = jammed(false), some = jammed(true);
  const auto combine = [&](const char* operation, const char* name) {
    auto statement = std::make_shared<CStatement>(*CAssign(CName(name), guard));
    statement->operation = operation;
    checks.push_back(std::move(statement));
  };
  combine("&=", "@all");
  combine("|=", "@any");
  auto branches = std::make_shared<CStatement>(*CWhere(CName("@all"), together));
  branches->body.push_back(CWhere(CName("@any"), some));
  return CBlock({CDeclare(CType::kInt, "@all", CInteger(1)), CDeclare(CType::kInt, "@any", CInteger(0)),
                 Around(parts, CBlock(std::move(checks))), branches});
}

}  // namespace

bool UsesAny(const CExpression& expression, const std::set<std::string>& names) {
  std::set<std::string> used;
  AddNames(expression, &used);
  return std::any_of(used.begin(), used.end(),
                     [&](const std::string& name) { return names.count(name) > 0; });
}

bool HasLoop(const CStatement& statement) {
  return statement.kind == Kind::kFor ||
         std::any_of(statement.body.begin(), statement.body.end(),
                     [](const CStatementPtr& inner) { return HasLoop(*inner); });
}

std::vector<CExpressionPtr> EntriesOfAll(const CStatement& loop, const std::map<std::string, CType>& arrays,
                                         const std::set<std::string>& changed) {
  std::vector<CExpressionPtr> targets, entries;
  AddTargets(*loop.body[0], &targets);
  std::set<std::string> done;
  for (const CExpressionPtr& target : targets)
    if (done.insert(target->text).second && arrays.count(target->text) > 0 &&
        IsOneEntry(loop, *target, changed))
      entries.push_back(target);
  return entries;
}

CStatementPtr WithVariable(const CStatementPtr& statement, const CExpression& entry,
                           const CExpressionPtr& variable) {
  return WithVariable(statement, CText(entry), variable);
}

CStatementPtr KeepInRegisters(const CStatementPtr& body, const std::map<std::string, CType>& arrays,
                              const IntegerValues& constants) {
  return Jammed(Promotion(arrays).Do(body), constants);
}

}  // namespace fusion
