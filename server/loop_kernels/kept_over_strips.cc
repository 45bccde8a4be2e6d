#include "server/loop_kernels/kept_over_strips.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/loop_kernels/reuse.h"
#include "server/loops/build_c.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

constexpr int64_t kMostOfThread = 64;    // entries, that registers may hold
constexpr int64_t kMostOfBlock = 32768;  // likewise: a host has them in memory
// Statements of a loop that is unrolled altogether.
constexpr int64_t kMostUnrolled = 1024;

// The way from a loop over threads to the loop that adds up.
class Way {
 public:
  Way(const CStatement& loop, const IntegerValues& constants) : constants_(constants) {
    changed_ = {loop.variable.name};
    found_ = Follow(loop.body[0]);
  }

  bool found() const { return found_; }
  const CStatement& leaf() const { return *leaf_; }
  const std::vector<std::string>& parts() const { return parts_; }
  const std::vector<int64_t>& counts() const { return counts_; }
  const std::set<std::string>& changed() const { return changed_; }

  // Returns the way with another statement in the leaf's place.
  CStatementPtr With(const CStatementPtr& statement, const CStatementPtr& leaf) const {
    if (statement.get() == leaf_) return leaf;
    if (statement->body.empty()) return statement;
    auto copy = std::make_shared<CStatement>(*statement);
    copy->body.back() = With(copy->body.back(), leaf);
    return copy;
  }

 private:
  bool Follow(const CStatementPtr& statement) {
    switch (statement->kind) {
      case Kind::kBlock:
      case Kind::kSchedule:
        if (statement->body.empty()) return false;
        for (size_t i = 0; i + 1 < statement->body.size(); ++i) {
          const CStatement& declaration = *statement->body[i];
          if (declaration.kind != Kind::kDeclaration || declaration.variable.array) return false;
          if (declaration.value == nullptr) continue;
          if (ReadsMemory(*declaration.value)) return false;
          if (UsesAny(*declaration.value, changed_)) changed_.insert(declaration.variable.name);
        }
        return Follow(statement->body.back());
      case Kind::kIf:
        return statement->body.size() == 1 && !ReadsMemory(*statement->value) &&
               !UsesAny(*statement->value, changed_) && Follow(statement->body[0]);
      case Kind::kFor: {
        if (!statement->meta && !statement->parts) {
          leaf_ = statement.get();
          return !HasLoop(*statement->body[0]);
        }
        for (const CExpressionPtr& part : {statement->start, statement->bound, statement->step})
          if (UsesAny(*part, changed_)) return false;
        if (statement->parts) {
          const auto count = EvaluateC(*TripCount(*statement), constants_);
          const auto is = [](const CExpression& number, int64_t value) {
            return number.kind == CExpression::Kind::kInteger && number.integer == value;
          };
          if (!count || *count < 1 || statement->down || !is(*statement->start, 0) ||
              !is(*statement->step, 1))
            return false;
          parts_.push_back(statement->variable.name);
          counts_.push_back(*count);
        }
        return Follow(statement->body[0]);
      }
      case Kind::kDeclaration:
      case Kind::kAssignment:
        return false;
    }
    return false;
  }

  const IntegerValues& constants_;
  std::set<std::string> changed_;  // names with other values in each iteration of the loop around
  std::vector<std::string> parts_;
  std::vector<int64_t> counts_;
  const CStatement* leaf_ = nullptr;
  bool found_ = false;
};

int64_t CountAssignments(const CStatement& statement, const IntegerValues& constants) {
  int64_t count = statement.kind == Kind::kAssignment ? 1 : 0;
  for (const CStatementPtr& inner : statement.body) count += CountAssignments(*inner, constants);
  return statement.parts ? count * EvaluateC(*TripCount(statement), constants).value_or(1) : count;
}

}  // namespace

std::optional<KeptOverStrips> KeepOverStrips(const CStatement& loop,
                                             const std::map<std::string, CType>& arrays,
                                             const IntegerValues& constants, int64_t threads, int first) {
  const Way way(loop, constants);
  if (!way.found()) return std::nullopt;
  // Without iterations the inner loop would touch nothing.
  const auto trips = EvaluateC(*TripCount(way.leaf()), constants);
  if (!loop.strips && (!trips || *trips < 1)) return std::nullopt;
  int64_t entries = 1;
  for (int64_t count : way.counts()) {
    entries *= count;
    if (entries > kMostOfThread || entries * threads > kMostOfBlock) return std::nullopt;
  }
  KeptOverStrips kept;
  std::vector<CStatementPtr> reads, writes;
  CStatementPtr leaf = std::make_shared<CStatement>(way.leaf());
  for (const CExpressionPtr& target : EntriesOfAll(way.leaf(), arrays, way.changed())) {
    const std::string name = absl::StrCat("$strip", first + static_cast<int>(kept.variables.size()));
    auto variable = std::make_shared<CExpression>();
    variable->kind = way.parts().empty() ? CExpression::Kind::kName : CExpression::Kind::kSubscript;
    variable->text = name;
    for (const std::string& part : way.parts()) variable->operands.push_back(CName(part));
    reads.push_back(CAssign(variable, target));
    writes.push_back(CAssign(target, variable));
    leaf = WithVariable(leaf, *target, variable);
    kept.variables.push_back({.name = name, .type = arrays.at(target->text), .extents = way.counts()});
    kept.arrays.insert(target->text);
  }
  if (kept.variables.empty()) return std::nullopt;
  kept.before = way.With(loop.body[0], CBlock(std::move(reads)));
  kept.after = way.With(loop.body[0], CBlock(std::move(writes)));
  auto body = std::make_shared<CStatement>(loop);
  body->body = {way.With(loop.body[0], leaf)};
  kept.loop = std::move(body);
  return kept;
}

CStatementPtr WithWholeStrips(const CStatementPtr& statement, const IntegerValues& constants) {
  auto copy = std::make_shared<CStatement>(*statement);
  for (CStatementPtr& inner : copy->body) inner = WithWholeStrips(inner, constants);
  if (copy->kind != Kind::kFor || copy->meta || copy->relation != "<" ||
      copy->bound->kind != CExpression::Kind::kConditional)
    return copy;
  // The end of a strip is its start and a length.
  const CExpressionPtr end = copy->bound->operands[1], bound = copy->bound->operands[2];
  if (CText(*copy->bound) != CText(*CSmaller(end, bound)) || end->kind != CExpression::Kind::kBinary ||
      end->text != "+" || CText(*end->operands[0]) != CText(*copy->start))
    return copy;
  const auto length = EvaluateC(*end->operands[1], constants);
  if (!length) return copy;
  auto whole = std::make_shared<CStatement>(*copy), rest = std::make_shared<CStatement>(*copy);
  whole->bound = end;
  whole->strips = *length * CountAssignments(*copy, constants) <= kMostUnrolled;
  rest->bound = bound;
  auto branches = std::make_shared<CStatement>();
  branches->kind = Kind::kIf;
  branches->position = copy->position;
  branches->value = CBinary("<=", end, bound);
  branches->body = {whole, rest};
  return branches;
}

}  // namespace fusion
