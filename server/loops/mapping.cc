#include "server/loops/mapping.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/loops/build_c.h"
#include "server/loops/nest.h"
#include "server/loops/rearranged.h"
#include "server/loops/strips.h"
#include "server/loops/sum_in_entry.h"
#include "server/loops/sums.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

constexpr int kMostTiled = 3;      // loops of one kernel that are cut into tiles
constexpr int kMostAnalyses = 16;  // of dependences, beside those of the check: each may take a second
constexpr int64_t kMostThreads = 1024, kMostGranularity = 8, kMostSumBlocks = 1024;
constexpr int64_t kShortestStrip = 8, kLongestStrip = 32;
// Loops of the host around a sum that nobody asks for: each run of it is two launches.
constexpr size_t kMostLoopsAroundSum = 1;

bool Uses(const CExpression& expression, const std::string& name) {
  std::set<std::string> names;
  AddNames(expression, &names);
  return names.count(name) > 0;
}

// Returns whether a value rises or falls with a name all along: sums, and products with what is free of it.
bool IsLinearIn(const CExpression& expression, const std::string& name) {
  using Expression = CExpression::Kind;
  if (!Uses(expression, name) || IsNamed(expression, name)) return true;
  if (expression.kind == Expression::kUnary)
    return expression.text == "-" && IsLinearIn(*expression.operands[0], name);
  if (expression.kind != Expression::kBinary) return false;
  const CExpression &left = *expression.operands[0], &right = *expression.operands[1];
  if (expression.text == "+" || expression.text == "-")
    return IsLinearIn(left, name) && IsLinearIn(right, name);
  return expression.text == "*" &&
         ((IsLinearIn(left, name) && !Uses(right, name)) || (IsLinearIn(right, name) && !Uses(left, name)));
}

void AddAssigned(const CStatement& statement, std::set<std::string>* scalars) {
  if (statement.kind == Kind::kAssignment && statement.target->kind == CExpression::Kind::kName)
    scalars->insert(statement.target->text);
  if (statement.kind == Kind::kFor && !statement.declares) scalars->insert(statement.variable.name);
  for (const CStatementPtr& inner : statement.body) AddAssigned(*inner, scalars);
}

// Without what is declared there itself.
std::set<std::string> AssignedOutside(const CStatement& statement) {
  std::set<std::string> scalars;
  AddAssigned(statement, &scalars);
  const auto drop = [&](auto&& self, const CStatement& one) -> void {
    if (one.kind == Kind::kDeclaration) scalars.erase(one.variable.name);
    if (one.kind == Kind::kFor && one.declares) scalars.erase(one.variable.name);
    for (const CStatementPtr& inner : one.body) self(self, *inner);
  };
  drop(drop, statement);
  return scalars;
}

class Mapper {
 public:
  Mapper(const CheckedProgram& checked, const MappingOptions& options, ErrorList* errors)
      : checked_(checked), options_(options), errors_(errors) {}

  MappedLoops Map() {
    mapped_.program.parameters = checked_.program.parameters;
    for (size_t i = 0; i < checked_.program.regions.size(); ++i) {
      region_ = &checked_.program.regions[i];
      CRegion region = *region_;
      FindTaken(*region.statement);
      NumberLoops(i);
      assigned_.clear();
      AddAssigned(*region.statement, &assigned_);
      workspaces_.clear();
      region.statement = Host(region.statement);
      region.scope.insert(region.scope.end(), workspaces_.begin(), workspaces_.end());
      mapped_.program.regions.push_back(std::move(region));
    }
    mapped_.program.parameters.insert(mapped_.program.parameters.end(), mapped_.shapes.begin(),
                                      mapped_.shapes.end());
    return std::move(mapped_);
  }

 private:
  struct Loop {
    bool parallel = false, proved = false;
    bool asked = false;            // whether it is parallel
    bool combines = false;         // a reduction clause says so
    bool sums = false;             // iterations have nothing but sums in common
    std::vector<std::string> own;  // scalars that each iteration has for itself
  };

  void FindTaken(const CStatement& statement) {
    AddNames(statement, &taken_);
    for (const CVariable& variable : region_->scope) {
      taken_.insert(variable.name);
      AddNames(variable, &taken_);
    }
    for (const CParameter& parameter : mapped_.program.parameters) taken_.insert(parameter.name);
  }
  std::string Fresh(std::string name) {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  // Loops are numbered as nests number them: in the order of the text.
  void NumberLoops(size_t region) {
    region_number_ = region;
    numbers_.clear();
    const std::vector<const CStatement*> statements = LoopsOf(*region_->statement);
    for (size_t i = 0; i < statements.size(); ++i) {
      const NestLoop& loop = checked_.nests[region]->loops[i];
      numbers_[statements[i]] = static_cast<int>(i);
      Loop& known = loops_[statements[i]];
      known.own = loop.privates;
      known.combines = !loop.reductions.empty();
    }
    for (const CheckedLoop& checked : checked_.loops) {
      if (checked.region != region) continue;
      Loop& loop = loops_[statements[checked.verdict.loop]];
      loop.proved = checked.verdict.verdict == Verdict::kIndependent;
      loop.parallel = loop.proved || (IsClaimed(checked.claim) && !options_.proved_only);
      loop.own.insert(loop.own.end(), checked.verdict.own.begin(), checked.verdict.own.end());
      loop.sums = checked.verdict.verdict == Verdict::kReduction || (loop.combines && loop.parallel);
      if (loop.combines) loop.parallel = loop.proved = false;
      if (IsClaimed(checked.claim) && checked.verdict.verdict != Verdict::kIndependent)
        mapped_.asserted.push_back(
            absl::StrCat(checked.counter, " at ", checked.position.line, ":", checked.position.column));
    }
  }
  const Loop& Of(const CStatement& statement) { return loops_[&statement]; }

  // A copy of a loop is as parallel as it was, around a part of what it had.
  CStatementPtr WithBody(const CStatement& statement, const CStatementPtr& body) {
    auto copy = std::make_shared<CStatement>(statement);
    copy->body = {body};
    if (statement.kind == Kind::kFor) {
      Loop loop = Of(statement);
      loops_[copy.get()] = std::move(loop);
      if (const auto number = numbers_.find(&statement); number != numbers_.end())
        numbers_[copy.get()] = number->second;
    }
    kept_.push_back(copy);
    return copy;
  }

  // `depth`: how many loops of the host are around it.
  bool HasParallel(const CStatement& statement, size_t depth) {
    if (statement.kind == Kind::kFor &&
        (statement.meta || Of(statement).parallel || !Sums(statement, depth).empty()))
      return true;
    return std::any_of(statement.body.begin(), statement.body.end(), [&](const CStatementPtr& inner) {
      return HasParallel(*inner, depth + (statement.kind == Kind::kFor ? 1 : 0));
    });
  }
  bool HasParallel(const CStatement& statement) { return HasParallel(statement, host_.size()); }

  // --- Sums ---
  // Returns what a loop that is not parallel combines, where kernels are made of that. Nobody has to ask for
  // them where the host does not launch them again and again.
  std::vector<LoopSum> Sums(const CStatement& loop, size_t depth) {
    const Loop& known = Of(loop);
    if (options_.as_written || known.parallel || (!known.combines && depth > kMostLoopsAroundSum)) return {};
    if (HasMeta(loop)) return {};
    const std::set<std::string> own(known.own.begin(), known.own.end());
    std::vector<LoopSum> sums = SumsOf(loop, region_->scope, own, false);
    if (sums.empty() && known.sums) sums = SumsOf(loop, region_->scope, own, true);
    return sums;
  }
  CStatementPtr SumKernelsOf(const CStatement& loop, const std::vector<LoopSum>& sums) {
    std::vector<std::string> own = Of(loop).own;
    AddCounters(loop, &own);
    SumKernels made =
        MakeSumKernels(loop, sums,
                       {.blocks = CName(Shape("G", kMostSumBlocks)),
                        .threads = CName(Shape("B0", kMostThreads)),
                        .any_order = !SumsOf(loop, region_->scope, {own.begin(), own.end()}, false).empty(),
                        .own = [&](const CStatementPtr& work) { return WithOwn(own, work); },
                        .fresh = [&](const std::string& name) { return Fresh(name); }});
    workspaces_.insert(workspaces_.end(), made.workspaces.begin(), made.workspaces.end());
    return made.statement;
  }

  bool AllMetaProved(const CStatement& statement) {
    if (statement.kind == Kind::kFor && statement.meta && !Of(statement).proved) return false;
    return std::all_of(statement.body.begin(), statement.body.end(),
                       [&](const CStatementPtr& inner) { return AllMetaProved(*inner); });
  }

  // The loop around all that a thread of a nest of `meta_for` does is marked where its iterations are proved
  // to be independent.
  CStatementPtr WithParts(const CStatementPtr& statement) {
    auto copy = std::make_shared<CStatement>(*statement);
    const bool has_meta = std::any_of(statement->body.begin(), statement->body.end(),
                                      [](const CStatementPtr& inner) { return HasMeta(*inner); });
    if (statement->meta && !has_meta) {
      const CStatementPtr inner = Unwrapped(statement->body[0]);
      if (inner->kind != Kind::kFor || !IsIndependent(*inner)) return statement;
      auto parts = std::make_shared<CStatement>(*inner);
      parts->parts = true;
      copy->body = {parts};
      return copy;
    }
    for (CStatementPtr& inner : copy->body)
      if (HasMeta(*inner)) inner = WithParts(inner);
    return copy;
  }
  bool IsIndependent(const CStatement& loop) {
    const auto number = numbers_.find(&loop);
    if (number == numbers_.end()) return false;
    if (++analyses_ > kMostAnalyses) return false;
    Nest asked = *checked_.nests[region_number_];
    for (NestLoop& one : asked.loops) one.claim = Claim::kNone;
    asked.loops[number->second].claim = Claim::kAsked;
    for (const LoopVerdict& verdict : FindDependences(asked))
      if (verdict.loop == number->second) return verdict.verdict == Verdict::kIndependent;
    return false;
  }

  // --- The host's part ---
  CStatementPtr Host(const CStatementPtr& statement) {
    switch (statement->kind) {
      case Kind::kFor:
        if (statement->meta)
          return options_.proved_only && !AllMetaProved(*statement) ? Serial(statement)
                                                                    : WithParts(statement);
        if (Of(*statement).parallel) return Kernel(statement);
        if (const std::vector<LoopSum> sums = Sums(*statement, host_.size()); !sums.empty())
          return SumKernelsOf(*statement, sums);
        if (Of(*statement).combines && !options_.as_written && !options_.proved_only)
          errors_->Add({statement->position},
                       absl::StrCat("no kernel is known for what iterations of ", statement->variable.name,
                                    " combine: += and *= are, and x = fmax(x, ...), of a scalar or of one "
                                    "entry of an array that nothing else in the loop reads"));
        if (!HasParallel(*statement)) return Serial(statement);
        return WithinHost(statement->variable,
                          [&] { return WithBody(*statement, Host(statement->body[0])); });
      case Kind::kBlock:
      case Kind::kSchedule: {
        std::vector<CStatementPtr> body, serial;
        const auto end_serial = [&] {
          if (!serial.empty()) body.push_back(Serial(CBlock(std::exchange(serial, {}))));
        };
        for (const CStatementPtr& inner : statement->body) {
          const bool declares = inner->kind == Kind::kDeclaration;
          if (!declares && !HasParallel(*inner)) {
            serial.push_back(inner);
            continue;
          }
          end_serial();
          body.push_back(declares ? inner : Host(inner));
          if (declares &&
              (!IsIntegerType(inner->variable.type) || inner->variable.array || inner->value == nullptr))
            errors_->Add({inner->position}, absl::StrCat(inner->variable.name,
                                                         " is declared between kernels; only "
                                                         "integers with values may be"));
        }
        end_serial();
        return CBlock(std::move(body));
      }
      case Kind::kIf: {
        if (!HasParallel(*statement)) return Serial(statement);
        auto copy = std::make_shared<CStatement>(*statement);
        for (CStatementPtr& branch : copy->body) branch = Host(branch);
        return copy;
      }
      case Kind::kAssignment:
      case Kind::kDeclaration:
        return Serial(statement);
    }
    return statement;
  }

  template <class Make>
  CStatementPtr WithinHost(const CVariable& counter, const Make& make) {
    host_.push_back(counter);
    CStatementPtr made = make();
    host_.pop_back();
    return made;
  }

  // One thread does what nothing shares out.
  CStatementPtr Serial(const CStatementPtr& statement) {
    if (statement->kind == Kind::kBlock && statement->body.empty()) return statement;
    for (const std::string& scalar : AssignedOutside(*statement))
      if (!IsCounterAlone(*statement, scalar))
        errors_->Add({PositionOf(*statement)},
                     absl::StrCat(scalar,
                                  " gets a value outside of parallel loops, and is not an array: no kernel "
                                  "takes it to another; make it an array of one entry"));
    std::vector<std::string> own;
    AddCounters(*statement, &own);
    return CCount(Counter("v"), CInteger(1),
                  CCount(Counter("u"), CInteger(1), WithOwn(own, Elided(statement)), true), true);
  }
  static SourcePosition PositionOf(const CStatement& statement) {
    if (statement.position.line > 0 || statement.body.empty()) return statement.position;
    return PositionOf(*statement.body[0]);
  }
  static bool IsCounterAlone(const CStatement& statement, const std::string& name) {
    if (statement.kind == Kind::kAssignment && IsNamed(*statement.target, name)) return false;
    return std::all_of(statement.body.begin(), statement.body.end(),
                       [&](const CStatementPtr& inner) { return IsCounterAlone(*inner, name); });
  }
  static void AddCounters(const CStatement& statement, std::vector<std::string>* counters) {
    if (statement.kind == Kind::kFor && !statement.declares) counters->push_back(statement.variable.name);
    for (const CStatementPtr& inner : statement.body) AddCounters(*inner, counters);
  }
  // Without parallel loops: the serial elision.
  static CStatementPtr Elided(const CStatementPtr& statement) {
    auto copy = std::make_shared<CStatement>(*statement);
    copy->meta = false;
    for (CStatementPtr& inner : copy->body) inner = Elided(inner);
    return copy;
  }

  // --- Kernels ---
  CStatementPtr Kernel(const CStatementPtr& marked) {
    if (options_.as_written) return AsWritten(marked);
    const CStatementPtr loop = WithSumsInEntries(marked);
    Ask(*loop->body[0]);
    // It is worth it where one of them has parallel loops, or can be done in strips.
    std::vector<CStatementPtr> parts = PartsWithStrips({loop}, loop->body[0]);
    if (parts.size() < 2 && HasParallel(*loop->body[0])) parts = Parts(loop->body[0]);
    if (parts.size() > 1 && MayDistribute(*loop)) {
      std::vector<CStatementPtr> kernels;
      for (const CStatementPtr& part : parts) kernels.push_back(Kernel(WithBody(*loop, part)));
      return CBlock(std::move(kernels));
    }
    std::vector<CStatementPtr> tiled = {loop};
    CStatementPtr inner = Sunk(loop->body[0]);
    while (tiled.size() < kMostTiled && inner->kind == Kind::kFor) {
      if (!Of(*inner).parallel) {
        const CStatementPtr turned = Interchanged(tiled, inner);
        if (turned == nullptr) break;
        inner = turned;
      }
      if (!MayTile(tiled, *inner)) break;
      tiled.push_back(inner);
      inner = Sunk(inner->body[0]);
    }
    return Tiled(FastestLast(std::move(tiled)), inner);
  }

  // The parts of a body, or of that of a parallel loop which is all that it has, if one can be done in
  // strips.
  std::vector<CStatementPtr> PartsWithStrips(std::vector<CStatementPtr> around, const CStatementPtr& body) {
    const CStatementPtr inner = Unwrapped(body);
    if (inner->kind == Kind::kFor && Of(*inner).parallel) {
      around.push_back(inner);
      std::vector<CStatementPtr> parts = PartsWithStrips(around, inner->body[0]);
      if (parts.size() < 2) return {body};
      for (CStatementPtr& part : parts) part = WithBody(*inner, part);
      return parts;
    }
    std::vector<CStatementPtr> parts = Parts(body);
    const auto shared = [&](const CStatementPtr& part) { return SharedLoop(around, part) != nullptr; };
    return std::any_of(parts.begin(), parts.end(), shared) ? parts : std::vector<CStatementPtr>{body};
  }
  CStatementPtr WithSumsInEntries(const CStatementPtr& statement) {
    if (statement->kind == Kind::kFor)
      return WithBody(*statement, WithSumsInEntries(Unwrapped(statement->body[0])));
    const CStatementPtr sum =
        SumInEntry(*statement, region_->scope,
                   [&](const CStatement& loop, const CStatementPtr& body) { return WithBody(loop, body); });
    if (sum != nullptr) return Unwrapped(sum);
    auto copy = std::make_shared<CStatement>(*statement);
    for (CStatementPtr& inner : copy->body) inner = WithSumsInEntries(inner);
    return copy;
  }

  CStatementPtr AsWritten(const CStatementPtr& loop) {
    std::vector<CStatementPtr> tiled = {loop};
    CStatementPtr inner = Unwrapped(loop->body[0]);
    while (tiled.size() < kMostTiled && inner->kind == Kind::kFor && Of(*inner).parallel &&
           MayTile(tiled, *inner)) {
      tiled.push_back(inner);
      inner = Unwrapped(inner->body[0]);
    }
    return Tiled(tiled, inner);
  }

  // Loops inside of parallel ones of which nobody has said anything may be parallel, too.
  void Ask(const CStatement& statement) {
    if (statement.kind == Kind::kFor) {
      Loop& loop = loops_[&statement];
      if (!loop.parallel && !loop.asked) {
        loop.asked = true;
        loop.parallel = loop.proved = IsIndependent(statement);
      }
    }
    for (const CStatementPtr& inner : statement.body) Ask(*inner);
  }

  // A declaration that gives the same value wherever it stands.
  bool IsPure(const CStatement& statement) const {
    return statement.kind == Kind::kDeclaration && !statement.variable.array && statement.value != nullptr &&
           IsIntegerType(statement.variable.type) && !ReadsMemory(*statement.value) &&
           assigned_.count(statement.variable.name) == 0;
  }
  // The statements of a body, each with the declarations and conditions that it is under.
  std::vector<CStatementPtr> Parts(const CStatementPtr& body) const {
    const CStatementPtr statement = Unwrapped(body);
    if (statement->kind == Kind::kIf && statement->body.size() == 1 && !ReadsMemory(*statement->value) &&
        !UsesAssigned(*statement->value)) {
      std::vector<CStatementPtr> parts = Parts(statement->body[0]);
      if (parts.size() < 2) return {statement};
      for (CStatementPtr& part : parts) part = CWhere(statement->value, part);
      return parts;
    }
    if (statement->kind != Kind::kBlock) return {statement};
    std::vector<CStatementPtr> declarations, parts;
    for (const CStatementPtr& inner : statement->body) {
      if (inner->kind == Kind::kDeclaration) {
        if (!IsPure(*inner)) return {statement};
        declarations.push_back(inner);
        continue;
      }
      for (const CStatementPtr& part : Parts(inner)) {
        std::vector<CStatementPtr> own = declarations;
        own.push_back(part);
        parts.push_back(own.size() == 1 ? part : CBlock(std::move(own)));
      }
    }
    return parts;
  }
  bool UsesAssigned(const CExpression& expression) const {
    std::set<std::string> names;
    AddNames(expression, &names);
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return assigned_.count(name) > 0; });
  }

  // Conditions and declarations around nothing but a parallel loop go into it.
  CStatementPtr Sunk(const CStatementPtr& body) {
    const CStatementPtr statement = Unwrapped(body);
    if (statement->kind == Kind::kIf && statement->body.size() == 1 && !ReadsMemory(*statement->value) &&
        !UsesAssigned(*statement->value)) {
      const CStatementPtr inner = Sunk(statement->body[0]);
      if (inner->kind != Kind::kFor || !Of(*inner).parallel || Uses(*statement->value, inner->variable.name))
        return statement;
      return WithBody(*inner, CWhere(statement->value, inner->body[0]));
    }
    if (statement->kind != Kind::kBlock || statement->body.size() < 2) return statement;
    for (size_t i = 0; i + 1 < statement->body.size(); ++i)
      if (!IsPure(*statement->body[i])) return statement;
    const CStatementPtr inner = Sunk(statement->body.back());
    if (inner->kind != Kind::kFor || !Of(*inner).parallel) return statement;
    std::vector<CStatementPtr> sunk(statement->body.begin(), statement->body.end() - 1);
    for (const CStatementPtr& declaration : sunk) {
      if (declaration->variable.name == inner->variable.name) return statement;
      for (const CExpressionPtr& part : {inner->start, inner->bound, inner->step})
        if (Uses(*part, declaration->variable.name)) return statement;
      if (Uses(*declaration->value, inner->variable.name)) return statement;
    }
    sunk.push_back(inner->body[0]);
    return WithBody(*inner, CBlock(std::move(sunk)));
  }

  // The loop whose iterations touch entries next to each other is the innermost one, whose threads are: where
  // the ranges of the loops are free of each other.
  std::vector<CStatementPtr> FastestLast(std::vector<CStatementPtr> loops) {
    if (loops.size() < 2) return loops;
    for (const CStatementPtr& one : loops)
      for (const CStatementPtr& other : loops)
        for (const CExpressionPtr& part : {one->start, one->bound, one->step})
          if (Uses(*part, other->variable.name)) return loops;
    std::set<std::pair<int, int>> inside;
    const auto collect = [&](auto&& self, const CExpression& expression) -> void {
      if (expression.kind == CExpression::Kind::kSubscript)
        inside.insert({expression.position.line, expression.position.column});
      for (const CExpressionPtr& operand : expression.operands) self(self, *operand);
    };
    const auto walk = [&](auto&& self, const CStatement& statement) -> void {
      for (const CExpressionPtr& part : {statement.target, statement.value})
        if (part != nullptr) collect(collect, *part);
      for (const CStatementPtr& inner : statement.body) self(self, *inner);
    };
    walk(walk, *loops.back());
    const Nest& nest = *checked_.nests[region_number_];
    std::vector<int> steps_of_one(loops.size(), 0);
    for (const NestAccess& access : nest.accesses) {
      if (inside.count({access.position.line, access.position.column}) == 0) continue;
      const Polynomial flat = FlatIndex(nest, access);
      if (!flat.exact()) continue;
      for (size_t i = 0; i < loops.size(); ++i) {
        const auto number = numbers_.find(loops[i].get());
        if (number == numbers_.end()) continue;
        const std::vector<Polynomial> coefficients = flat.CoefficientsOf(nest.loops[number->second].symbol);
        steps_of_one[i] += coefficients.size() == 2 &&
                           (coefficients[1] == Polynomial(1) || coefficients[1] == Polynomial(-1));
      }
    }
    size_t fastest = loops.size() - 1;
    for (size_t i = 0; i < loops.size(); ++i)
      if (steps_of_one[i] > steps_of_one[fastest]) fastest = i;
    std::rotate(loops.begin() + static_cast<std::ptrdiff_t>(fastest),
                loops.begin() + static_cast<std::ptrdiff_t>(fastest) + 1, loops.end());
    return loops;
  }

  // A loop over several statements whose iterations are apart does the same as a loop over each, one after
  // the other, unless scalars carry something from one to the next.
  bool MayDistribute(const CStatement& loop) {
    for (const std::string& scalar : AssignedOutside(loop))
      if (!IsCounterAlone(loop, scalar)) return false;
    return true;
  }

  // `serial` is a loop around a parallel one alone, or around serial loops around one. Returns the parallel
  // one around the others, if it is proved to be parallel there; else null.
  CStatementPtr Interchanged(const std::vector<CStatementPtr>& around, const CStatementPtr& serial) {
    std::vector<CStatementPtr> between = {serial};
    CStatementPtr inner = Unwrapped(serial->body[0]);
    while (inner->kind == Kind::kFor && !Of(*inner).parallel) {
      between.push_back(inner);
      inner = Unwrapped(inner->body[0]);
    }
    if (inner->kind != Kind::kFor || inner->meta) return nullptr;
    for (const CStatementPtr& loop : between) {
      for (const CExpressionPtr& bound : {inner->start, inner->bound, inner->step})
        if (Uses(*bound, loop->variable.name)) return nullptr;
      for (const CExpressionPtr& bound : {loop->start, loop->bound, loop->step})
        if (Uses(*bound, inner->variable.name)) return nullptr;
    }
    CStatementPtr turned = inner->body[0];
    for (auto loop = between.rbegin(); loop != between.rend(); ++loop) turned = WithBody(**loop, turned);
    turned = WithBody(*inner, turned);
    CStatementPtr whole = turned;
    for (auto loop = around.rbegin(); loop != around.rend(); ++loop) whole = WithBody(**loop, whole);
    if (++analyses_ > kMostAnalyses) return nullptr;
    auto asked = std::make_shared<CStatement>(*whole);
    asked->directives = {CDirective{.position = whole->position, .parametric = true}};
    CRegion region = *region_;
    region.statement = asked;
    region.scope.insert(region.scope.end(), host_.begin(), host_.end());
    ErrorList scratch(errors_->file_name());
    CProgram program;
    program.parameters = checked_.program.parameters;
    const std::unique_ptr<Nest> nest = BuildNest(program, region, &scratch);
    if (!scratch.empty()) return nullptr;
    for (const LoopVerdict& verdict : FindDependences(*nest))
      if (verdict.loop == static_cast<int>(around.size()) && verdict.verdict == Verdict::kIndependent) {
        loops_[turned.get()].proved = loops_[turned.get()].parallel = true;
        return turned;
      }
    return nullptr;
  }

  // The range of a loop is the same for all iterations around it, or its ends go up and down with those.
  bool MayTile(const std::vector<CStatementPtr>& around, const CStatement& loop) {
    int dependent = 0;
    for (const CStatementPtr& outer : around) {
      const std::string& counter = outer->variable.name;
      if (!Uses(*loop.start, counter) && !Uses(*loop.bound, counter) && !Uses(*loop.step, counter)) continue;
      if (loop.down || loop.step->kind != CExpression::Kind::kInteger || loop.step->integer != 1)
        return false;
      if (!IsLinearIn(*loop.start, counter) || !IsLinearIn(*loop.bound, counter)) return false;
      // The ends of the outer loop have to be free of counters themselves.
      for (const CStatementPtr& other : around)
        for (const CExpressionPtr& bound : {outer->start, outer->bound, outer->step})
          if (Uses(*bound, other->variable.name)) return false;
      ++dependent;
    }
    return dependent <= 1;
  }

  // An extent says how many iterations there are at most, and where the counter begins.
  struct Extent {
    CExpressionPtr trips;
    CExpressionPtr first;  // of a loop whose range depends on one around it; null: the loop itself says all
  };
  static Extent ExtentOf(const std::vector<CStatementPtr>& around, const CStatement& loop) {
    for (const CStatementPtr& outer : around) {
      const std::string& counter = outer->variable.name;
      if (!Uses(*loop.start, counter) && !Uses(*loop.bound, counter)) continue;
      const CExpressionPtr low = CounterValue(*outer, CInteger(0));
      const CExpressionPtr high = CounterValue(*outer, CBinary("-", TripCount(*outer), CInteger(1)));
      const auto ends = [&](const CExpressionPtr& value, bool larger) {
        if (!Uses(*value, counter)) return value;
        const CExpressionPtr one = Replaced(value, counter, low), other = Replaced(value, counter, high);
        return larger ? CLarger(one, other) : CSmaller(one, other);
      };
      CStatement widest = loop;
      widest.start = ends(loop.start, false);
      widest.bound = ends(loop.bound, true);
      return {TripCount(widest), widest.start};
    }
    return {TripCount(loop), nullptr};
  }

  // A counter's name, which other kernels may have, too.
  std::string Counter(std::string name) const {
    while (taken_.count(name) > 0) name += "_";
    return name;
  }

  // The parameters of a program are the same for all of its kernels, by their names.
  std::string Shape(const std::string& name, int64_t most, bool strips = false) {
    auto known = shape_names_.find(name);
    if (known == shape_names_.end()) {
      known = shape_names_.emplace(name, Fresh(name)).first;
      mapped_.shapes.push_back({.name = known->second,
                                .position = {},
                                .low = strips ? kShortestStrip : 1,
                                .high = most,
                                .strips = strips});
    }
    return known->second;
  }

  // Returns the loop that all threads of a block can go through together: all that a body has, but for
  // declarations before it. Else null.
  CStatementPtr SharedLoop(const std::vector<CStatementPtr>& loops, const CStatementPtr& body) const {
    if (options_.as_written || !options_.in_strips) return nullptr;
    CStatementPtr loop = Unwrapped(body);
    std::set<std::string> own;
    for (const CStatementPtr& around : loops) own.insert(around->variable.name);
    if (loop->kind == Kind::kBlock && !loop->body.empty()) {
      for (size_t i = 0; i + 1 < loop->body.size(); ++i) {
        if (!IsPure(*loop->body[i])) return nullptr;
        own.insert(loop->body[i]->variable.name);
      }
      loop = loop->body.back();
    }
    if (!MayBeInStrips(*loop)) return nullptr;
    for (const CExpressionPtr& bound : {loop->start, loop->bound}) {
      if (ReadsMemory(*bound) || UsesAssigned(*bound)) return nullptr;
      for (const std::string& name : own)
        if (Uses(*bound, name)) return nullptr;
    }
    return loop;
  }

  CStatementPtr Tiled(const std::vector<CStatementPtr>& loops, const CStatementPtr& all) {
    CStatementPtr inner = Unwrapped(all), strips;
    if (const CStatementPtr serial = SharedLoop(loops, inner); serial != nullptr) {
      const CExpressionPtr length = CName(Shape("K0", kLongestStrip, true));
      const std::shared_ptr<CStatement> loop =
          CCount(Counter("w"), StripCount(*serial, length), serial, false);
      loop->variable.type = serial->variable.type;
      loop->strips = true;
      const CStatementPtr strip = StripOf(*serial, CName(loop->variable.name), length);
      if (serial == inner) {
        inner = strip;
      } else {
        auto block = std::make_shared<CStatement>(*inner);
        block->body.back() = strip;
        inner = block;
      }
      strips = loop;
    }
    std::vector<CStatementPtr> body;
    std::vector<CExpressionPtr> guards, ranges;  // of counts, and of counters
    struct Dimension {
      std::string block, thread, part;
      CExpressionPtr blocks, threads, granularity;
    };
    std::vector<Dimension> dimensions;
    std::vector<CStatementPtr> counters;
    for (size_t i = 0; i < loops.size(); ++i) {
      const CStatement& loop = *loops[i];
      const Extent extent = ExtentOf({loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(i)}, loop);
      const std::string number = absl::StrCat(loops.size() - 1 - i);  // the innermost is 0
      Dimension one{.block = Counter("v" + number),
                    .thread = Counter("u" + number),
                    .part = Counter("k" + number),
                    .blocks = nullptr,
                    .threads = CInteger(1),
                    .granularity = CInteger(1)};
      if (loops.size() - i <= 2) {
        one.threads = CName(Shape("B" + number, kMostThreads));
        one.granularity = CName(Shape("s" + number, kMostGranularity));
      }
      const CExpressionPtr tile = CBinary("*", one.granularity, one.threads);
      one.blocks = CBinary("/", CBinary("-", CBinary("+", extent.trips, tile), CInteger(1)), tile);
      if (tile->kind == CExpression::Kind::kInteger) one.blocks = extent.trips;
      const std::string count = Counter("n" + number);
      // (v*s + k)*B + u
      const CExpressionPtr place = CBinary(
          "+",
          CBinary(
              "*",
              CBinary("+", CBinary("*", CName(one.block), one.granularity),
                      one.granularity->kind == CExpression::Kind::kInteger ? CInteger(0) : CName(one.part)),
              one.threads),
          tile->kind == CExpression::Kind::kInteger ? CInteger(0) : CName(one.thread));
      body.push_back(CDeclare(loop.variable.type, count, place));
      if (tile->kind != CExpression::Kind::kInteger)
        guards.push_back(CBinary("<", CName(count), extent.trips));
      const CExpressionPtr value = extent.first == nullptr ? CounterValue(loop, CName(count))
                                                           : CBinary("+", extent.first, CName(count));
      counters.push_back(CDeclare(loop.variable.type, loop.variable.name, value));
      if (extent.first != nullptr) {
        ranges.push_back(CBinary(">=", CName(loop.variable.name), loop.start));
        ranges.push_back(CBinary(loop.relation, CName(loop.variable.name), loop.bound));
      }
      dimensions.push_back(std::move(one));
    }
    std::vector<std::string> own;
    for (const CStatementPtr& loop : loops) {
      const std::vector<std::string>& names = Of(*loop).own;
      own.insert(own.end(), names.begin(), names.end());
    }
    AddCounters(*inner, &own);
    CStatementPtr work = WithOwn(own, inner);
    for (const std::string& scalar : AssignedOutside(*work))
      errors_->Add({loops[0]->position},
                   absl::StrCat("iterations of ", loops[0]->variable.name, " share ", scalar,
                                ", of which a kernel would have one for each thread"));
    if (!ranges.empty()) work = CWhere(CAll(ranges), work);
    counters.push_back(std::move(work));
    work = CBlock(std::move(counters));
    body.push_back(guards.empty() ? std::move(work) : CWhere(CAll(guards), work));
    CStatementPtr nest = CBlock(std::move(body));
    const auto around = [&](auto name, auto bound, bool meta) {
      for (auto one = dimensions.rbegin(); one != dimensions.rend(); ++one) {
        if (!meta && ((*one).*bound)->kind == CExpression::Kind::kInteger) continue;
        const std::shared_ptr<CStatement> loop = CCount((*one).*name, (*one).*bound, nest, meta);
        loop->parts = !meta;
        nest = loop;
      }
    };
    around(&Dimension::part, &Dimension::granularity, false);
    around(&Dimension::thread, &Dimension::threads, true);
    if (strips != nullptr) nest = WithBody(*strips, nest);
    around(&Dimension::block, &Dimension::blocks, true);
    auto placed = std::make_shared<CStatement>(*nest);
    placed->position = loops[0]->position;
    return placed;
  }
  // Declares what each iteration has for itself, of what the text declares outside.
  CStatementPtr WithOwn(const std::vector<std::string>& names, const CStatementPtr& statement) {
    const std::set<std::string> assigned = AssignedOutside(*statement);
    std::vector<CStatementPtr> body;
    std::set<std::string> done;
    for (const std::string& name : names) {
      if (assigned.count(name) == 0 || !done.insert(name).second) continue;
      CType type = CType::kInt;
      for (const CVariable& variable : region_->scope)
        if (variable.name == name && !variable.array) type = variable.type;
      body.push_back(CDeclare(type, name, nullptr));
    }
    if (body.empty()) return statement;
    body.push_back(statement);
    return CBlock(std::move(body));
  }

  const CheckedProgram& checked_;
  const MappingOptions options_;
  ErrorList* const errors_;
  const CRegion* region_ = nullptr;
  size_t region_number_ = 0;
  std::map<const CStatement*, int> numbers_;  // of the loops of the region as it was written
  MappedLoops mapped_;
  std::map<const CStatement*, Loop> loops_;
  int analyses_ = 0;
  std::vector<CStatementPtr> kept_;  // so that no other statement gets the address of one in loops_
  std::set<std::string>
      assigned_;                 // scalars of the region that get other values than their declarations give
  std::vector<CVariable> host_;  // counters of loops around
  std::vector<CVariable> workspaces_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> shape_names_;
};

}  // namespace

MappedLoops MapLoops(const CheckedProgram& checked, const MappingOptions& options, ErrorList* errors) {
  std::optional<CheckedProgram> rearranged;
  if (!options.as_written && !options.in_order) rearranged = Rearranged(checked);
  MappedLoops mapped = Mapper(rearranged ? *rearranged : checked, options, errors).Map();
  mapped.rearranged = rearranged.has_value();
  return mapped;
}

}  // namespace fusion
