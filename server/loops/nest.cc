#include "server/loops/nest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/similar_name.h"
#include "server/loops/sums.h"
#include "server/polynomial/prover.h"

namespace fusion {
namespace {

constexpr absl::string_view kFunctions[] = {
    "sqrt", "sqrtf", "fabs",   "fabsf", "exp",   "expf", "log",  "logf", "sin",   "sinf", "cos",
    "cosf", "tan",   "tanf",   "tanh",  "tanhf", "pow",  "powf", "fmin", "fminf", "fmax", "fmaxf",
    "abs",  "floor", "floorf", "ceil",  "ceilf", "erf",  "erff", "min",  "max"};

// A scalar is used like this in a region.
struct ScalarUse {
  int assignments = 0;    // plain ones
  bool compound = false;  // += and the like
};

class NestBuilder {
 public:
  NestBuilder(const CProgram& program, const CRegion& region, ErrorList* errors)
      : program_(program), region_(region), errors_(errors) {}

  std::unique_ptr<Nest> Build() {
    CountAssignments(*region_.statement);
    FindOpenMpBounds(*region_.statement);
    for (const CParameter& parameter : program_.parameters) {
      nest_->facts.push_back(Polynomial::Symbol(parameter.name) - Polynomial(parameter.low));
      if (parameter.high)
        nest_->facts.push_back(Polynomial(*parameter.high) - Polynomial::Symbol(parameter.name));
      may_be_parameter_.insert(parameter.name);
    }
    const std::set<std::string> used = UsedNames();
    for (const CVariable& variable : region_.scope)
      if (used.count(variable.name) > 0) DeclareOutside(variable);
    FindBoundNames(*region_.statement);
    Walk(*region_.statement);
    AddQuotientFacts();
    CheckTeams();
    return std::move(nest_);
  }

 private:
  struct Name {
    enum class Kind { kParameter, kValue, kScalar, kArray };
    Kind kind = Kind::kScalar;
    CType type = CType::kInt;
    Polynomial value = Polynomial::Inexact();  // kParameter, kValue
    int array = -1;
    int owner = -1;        // the loop in which it is declared
    bool outside = false;  // of the region
    bool counter = false;  // of a loop around the use
  };

  // The directives around a statement say this.
  struct Directives {
    std::vector<std::string> privates, reductions;
    bool asked = false;  // "#pragma fusion parametric", "#pragma scop"
    int collapsed =
        0;  // so many loops that follow belong to the last directive, with these names of its clauses
    std::vector<std::string> collapsed_privates = {}, collapsed_reductions = {};
    int teams = -1;  // the number of the innermost "teams"
  };

  // --- Before the walk ---
  // Names in the region, and in the declarations of those. What else is declared around it may use what
  // nobody knows here, such as constants of headers.
  std::set<std::string> UsedNames() const {
    std::set<std::string> used;
    AddNames(*region_.statement, &used);
    for (size_t before = 0; before != used.size();) {
      before = used.size();
      for (const CVariable& variable : region_.scope)
        if (used.count(variable.name) > 0) AddNames(variable, &used);
    }
    return used;
  }

  void CountSteps(const CExpression& expression) {
    if (expression.kind == CExpression::Kind::kUnary && expression.text.size() == 2)
      uses_[expression.operands[0]->text].compound = true;
    for (const CExpressionPtr& operand : expression.operands) CountSteps(*operand);
  }
  void CountAssignments(const CStatement& statement) {
    for (const CExpressionPtr* part :
         {&statement.target, &statement.value, &statement.start, &statement.bound, &statement.step})
      if (*part != nullptr) CountSteps(**part);
    if (statement.kind == CStatement::Kind::kAssignment &&
        statement.target->kind == CExpression::Kind::kName) {
      ScalarUse& use = uses_[statement.target->text];
      if (statement.operation == "=")
        ++use.assignments;
      else
        use.compound = true;
    }
    if (statement.kind == CStatement::Kind::kFor && !statement.declares)
      uses_[statement.variable.name].compound = true;
    for (const CStatementPtr& inner : statement.body) CountAssignments(*inner);
  }

  // Names in bounds of loops, and in what those are computed from, may be parameters without a declaration.
  void FindBoundNames(const CStatement& statement) {
    if (statement.kind == CStatement::Kind::kFor) {
      for (const CExpressionPtr* bound : {&statement.start, &statement.bound, &statement.step})
        AddNames(**bound, &may_be_parameter_);
    }
    for (const CStatementPtr& inner : statement.body) FindBoundNames(*inner);
  }
  void FindOpenMpBounds(const CStatement& statement) {
    for (const CDirective& directive : statement.directives)
      for (const CClause& clause : directive.clauses)
        if (clause.name == "num_teams" || clause.name == "thread_limit" || clause.name == "num_threads")
          for (const CExpressionPtr& expression : clause.expressions) {
            AddNames(*expression, &may_be_parameter_);
            AddNames(*expression, &positive_);
          }
    for (const CStatementPtr& inner : statement.body) FindOpenMpBounds(*inner);
  }
  void DeclareOutside(const CVariable& variable) {
    Name name{.type = variable.type, .outside = true};
    if (variable.array) {
      name.kind = Name::Kind::kArray;
      name.array = AddArray(variable, false);
    } else if (variable.initial != nullptr && IsIntegerType(variable.type) &&
               IsIntegerExpression(*variable.initial)) {
      name.kind = Name::Kind::kValue;
      name.value = ValueOf(*variable.initial);
      if (!name.value.exact()) name.value = Polynomial::Symbol(variable.name);
    } else if (variable.constant) {
      name.kind = Name::Kind::kValue;
      name.value = Polynomial(*variable.constant);
    } else {
      const auto use = uses_.find(variable.name);
      if (IsIntegerType(variable.type) && use == uses_.end()) {
        name.kind = Name::Kind::kParameter;
        name.value = Polynomial::Symbol(variable.name);
      }
    }
    names_[variable.name] = {name};
  }

  int AddArray(const CVariable& variable, bool local) {
    NestArray array{.variable = variable, .local = local, .owner = Innermost()};
    for (const CExpressionPtr& extent : variable.extents) {
      array.extents.push_back(extent == nullptr ? Polynomial::Inexact() : ValueOf(*extent));
      // C has no arrays of no entries.
      if (array.extents.back().exact() && !array.extents.back().Constant())
        nest_->facts.push_back(array.extents.back() - 1);
    }
    nest_->arrays.push_back(std::move(array));
    return static_cast<int>(nest_->arrays.size()) - 1;
  }

  int Innermost() const { return loops_.empty() ? -1 : loops_.back(); }

  // --- Names and values ---
  Name* Find(const CExpression& use) {
    const auto found = names_.find(use.text);
    if (found != names_.end() && !found->second.empty()) return &found->second.back();
    if (use.kind == CExpression::Kind::kName && may_be_parameter_.count(use.text) > 0 &&
        uses_.count(use.text) == 0) {
      names_[use.text] = {
          Name{.kind = Name::Kind::kParameter, .value = Polynomial::Symbol(use.text), .outside = true}};
      return &names_[use.text].back();
    }
    if (reported_.insert(use.text).second) {
      std::string similar;
      if (errors_->MaySuggest()) {
        std::vector<absl::string_view> known;
        for (const auto& [name, meanings] : names_)
          if (!meanings.empty()) known.push_back(name);
        similar = SimilarName(use.text, known);
      }
      errors_->Add({use.position}, absl::StrCat(use.text, " is not declared", DidYouMean(similar)));
    }
    return nullptr;
  }

  void NoteParameter(const std::string& name) {
    if (!noted_.insert(name).second) return;
    nest_->parameters.push_back(name);
    if (positive_.count(name) > 0) nest_->facts.push_back(Polynomial::Symbol(name) - 1);
  }

  // Returns the integer value of an expression where it is a polynomial.
  Polynomial ValueOf(const CExpression& expression) {
    using Kind = CExpression::Kind;
    switch (expression.kind) {
      case Kind::kInteger:
        return Polynomial(expression.integer);
      case Kind::kName: {
        const Name* name = Find(expression);
        if (name == nullptr || name->kind == Name::Kind::kArray) return Polynomial::Inexact();
        if (name->kind == Name::Kind::kParameter) NoteParameter(expression.text);
        return name->value;
      }
      case Kind::kUnary:
        return expression.text == "-" ? -ValueOf(*expression.operands[0]) : Polynomial::Inexact();
      case Kind::kCast:
        return IsIntegerType(expression.type) && IsIntegerExpression(*expression.operands[0])
                   ? ValueOf(*expression.operands[0])
                   : Polynomial::Inexact();
      case Kind::kBinary: {
        if (expression.text != "+" && expression.text != "-" && expression.text != "*" &&
            expression.text != "/" && expression.text != "%")
          return Polynomial::Inexact();
        const Polynomial left = ValueOf(*expression.operands[0]), right = ValueOf(*expression.operands[1]);
        if (expression.text == "+") return left + right;
        if (expression.text == "-") return left - right;
        if (expression.text == "*") return left * right;
        const Polynomial quotient = Quotient(left, right);
        return expression.text == "/" ? quotient : left - quotient * right;
      }
      default:
        return Polynomial::Inexact();
    }
  }

  bool IsIntegerExpression(const CExpression& expression) {
    using Kind = CExpression::Kind;
    if (expression.kind == Kind::kInteger) return true;
    if (expression.kind == Kind::kReal || expression.kind == Kind::kCall) return false;
    if (expression.kind == Kind::kCast) return IsIntegerType(expression.type);
    if (expression.kind == Kind::kName || expression.kind == Kind::kSubscript) {
      const Name* name = Find(expression);
      return name != nullptr && IsIntegerType(name->type);
    }
    return std::all_of(expression.operands.begin(), expression.operands.end(),
                       [&](const CExpressionPtr& operand) { return IsIntegerExpression(*operand); });
  }

  // A quotient of parameters is a symbol of its own, of which is known what division says. Of counters it
  // would be another one in each iteration.
  Polynomial Quotient(const Polynomial& numerator, const Polynomial& denominator) {
    if (!numerator.exact() || !denominator.exact() || denominator.IsZero()) return Polynomial::Inexact();
    if (const auto n = numerator.Constant(), d = denominator.Constant(); n && d)
      return *d > 0 ? Polynomial(*n / *d) : Polynomial::Inexact();
    if (denominator == Polynomial(1)) return numerator;
    for (const Polynomial* part : {&numerator, &denominator})
      for (const std::string& symbol : part->Symbols())
        if (symbols_of_loops_.count(symbol) > 0) return Polynomial::Inexact();
    for (const NestQuotient& known : nest_->quotients)
      if (known.numerator == numerator && known.denominator == denominator)
        return Polynomial::Symbol(known.symbol);
    const std::string symbol = absl::StrCat("(", numerator.ToString(), ")/(", denominator.ToString(), ")");
    nest_->quotients.push_back({symbol, numerator, denominator});
    // The size of a part is not negative.
    nest_->facts.push_back(denominator - 1);
    return Polynomial::Symbol(symbol);
  }

  // The bounds of a quotient hold where the numerator is not negative: where that is proved, or else
  // in loops up to the quotient, which would be empty.
  void AddQuotientFacts() {
    for (const NestQuotient& quotient : nest_->quotients) {
      const Polynomial value = Polynomial::Symbol(quotient.symbol);
      const Polynomial rest = quotient.numerator - value * quotient.denominator;
      const std::vector<Polynomial> facts = {value, rest, quotient.denominator - 1 - rest};
      if (Prover(nest_->facts).IsNeverNegative(quotient.numerator, {})) {
        nest_->facts.insert(nest_->facts.end(), facts.begin(), facts.end());
        continue;
      }
      for (NestLoop& loop : nest_->loops) {
        const auto is = [](const std::vector<Polynomial>& bounds, const Polynomial& bound) {
          return std::find(bounds.begin(), bounds.end(), bound) != bounds.end();
        };
        if (is(loop.highs, value - 1) && is(loop.lows, Polynomial(0)))
          loop.conditions.insert(loop.conditions.end(), facts.begin(), facts.end());
      }
    }
  }

  // --- The walk ---
  void Walk(const CStatement& statement) {
    // Directives hold in their statement alone.
    const Directives outer = directives_;
    const size_t loops = nest_->loops.size();
    for (const CDirective& directive : statement.directives) {
      directives_.asked |= directive.parametric;
      if (!directive.Has("teams")) continue;
      directives_.teams = static_cast<int>(teams_positions_.size());
      teams_positions_.push_back(directive.position);
    }
    WalkInside(statement);
    const bool claimed =
        std::any_of(nest_->loops.begin() + static_cast<std::ptrdiff_t>(loops), nest_->loops.end(),
                    [](const NestLoop& loop) { return loop.claim != Claim::kNone; });
    for (const CDirective& directive : statement.directives)
      if (!claimed && (directive.Has("teams") || directive.Has("parallel") || directive.Has("for") ||
                       directive.parametric))
        errors_->Add({directive.position},
                     "no loop of this directive says what to share out: teams want distribute, and parallel "
                     "wants for");
    directives_ = outer;
  }

  void WalkInside(const CStatement& statement) {
    using Kind = CStatement::Kind;
    switch (statement.kind) {
      case Kind::kBlock:
      case Kind::kSchedule: {
        for (const CExpressionPtr& cached : statement.cached) {
          const Name* name = Find(*cached);
          if (name != nullptr && name->kind != Name::Kind::kArray)
            errors_->Add({cached->position},
                         absl::StrCat(cached->text, " is no array, so it cannot be cached"));
        }
        TakeDirectives(statement);
        const auto before = names_;
        for (const CStatementPtr& inner : statement.body) Walk(*inner);
        names_ = before;
        break;
      }
      case Kind::kDeclaration:
        WalkDeclaration(statement);
        break;
      case Kind::kAssignment:
        WalkAssignment(statement);
        break;
      case Kind::kIf:
        WalkIf(statement);
        break;
      case Kind::kFor:
        WalkFor(statement);
        break;
    }
  }

  void WalkDeclaration(const CStatement& statement) {
    const CVariable& variable = statement.variable;
    Name name{.type = variable.type, .owner = Innermost()};
    if (statement.value != nullptr) Read(*statement.value);
    if (variable.array) {
      name.kind = Name::Kind::kArray;
      name.array = AddArray(variable, true);
    } else if (IsIntegerType(variable.type) && statement.value != nullptr &&
               uses_.count(variable.name) == 0) {
      name.kind = Name::Kind::kValue;
      name.value = IsIntegerExpression(*statement.value) ? ValueOf(*statement.value) : Polynomial::Inexact();
    }
    names_[variable.name].push_back(name);
  }

  void WalkAssignment(const CStatement& statement) {
    const CExpression& target = *statement.target;
    const size_t accesses = nest_->accesses.size(), scalars = nest_->scalars.size();
    Read(*statement.value);
    const bool sums = !CombinedBy(statement).empty();
    if (sums) {  // what it reads of its target it adds to
      const std::string text = CText(target);
      for (size_t i = accesses; i < nest_->accesses.size(); ++i)
        nest_->accesses[i].accumulates = nest_->accesses[i].text == text;
      for (size_t i = scalars; i < nest_->scalars.size(); ++i)
        nest_->scalars[i].accumulates = nest_->scalars[i].name == text;
    }
    Name* name = Find(target);
    if (name == nullptr) {
      for (const CExpressionPtr& index : target.operands) Read(*index);
      return;
    }
    if (target.kind == CExpression::Kind::kSubscript) {
      for (const CExpressionPtr& index : target.operands) Read(*index);
      if (statement.operation != "=") AddAccess(target, *name, false, sums);
      AddAccess(target, *name, true, sums);
      return;
    }
    if (name->kind == Name::Kind::kArray) {
      errors_->Add({target.position}, absl::StrCat(target.text, " is an array; assign to its entries"));
      return;
    }
    if (name->kind == Name::Kind::kValue && name->outside) {
      errors_->Add({target.position}, absl::StrCat(target.text, " is a constant"));
      return;
    }
    if (IsCounter(target, *name)) return;
    if (statement.operation != "=") AddScalar(target, *name, false, sums);
    AddScalar(target, *name, true, sums);
    // The only assignment to it says what it is from here on, if not in the next iteration.
    const ScalarUse& use = uses_[target.text];
    const bool only = use.assignments == 1 && !use.compound && IsIntegerType(name->type) &&
                      IsIntegerExpression(*statement.value);
    name->value = only ? ValueOf(*statement.value) : Polynomial::Inexact();
    name->kind = Name::Kind::kScalar;
  }

  // Reports that a body changes the counter of a loop around it, which no range would be true of.
  bool IsCounter(const CExpression& target, const Name& name) {
    if (name.counter)
      errors_->Add({target.position},
                   absl::StrCat(target.text, " counts a loop, whose body may not change it"));
    return name.counter;
  }

  void WalkIf(const CStatement& statement) {
    Read(*statement.value);
    NestGuard guard = GuardOf(statement.value);
    for (size_t branch = 0; branch < statement.body.size(); ++branch) {
      NestGuard now = guard;
      if (branch == 1) {
        now.holds = false;
        // Where several conditions do not all hold, nobody knows which fails.
        const bool single = guard.whole && guard.conditions.size() == 1;
        now.conditions.clear();
        if (single) now.conditions.push_back(-guard.conditions[0] - 1);
        now.whole = single;
      }
      guards_.push_back(std::move(now));
      branches_.push_back(next_branch_++);
      const auto before = names_;
      Walk(*statement.body[branch]);
      names_ = before;
      guards_.pop_back();
      branches_.pop_back();
    }
    ForgetAssigned(statement);
  }

  // Behind an `if`, and in a loop before its end, scalars may have what another iteration or branch gave
  // them.
  void ForgetAssigned(const CStatement& statement) {
    if (statement.kind == CStatement::Kind::kAssignment &&
        statement.target->kind == CExpression::Kind::kName) {
      const auto found = names_.find(statement.target->text);
      if (found != names_.end() && !found->second.empty() && found->second.back().kind == Name::Kind::kScalar)
        found->second.back().value = Polynomial::Inexact();
    }
    for (const CStatementPtr& inner : statement.body) ForgetAssigned(*inner);
  }

  NestGuard GuardOf(const CExpressionPtr& condition) {
    NestGuard guard{.condition = condition, .key = CText(*condition), .whole = true};
    AddConditions(*condition, &guard);
    std::set<std::string> names;
    AddNames(*condition, &names);
    for (const std::string& name : names) {
      const auto found = names_.find(name);
      if (found == names_.end() || found->second.empty()) continue;
      const Name& meaning = found->second.back();
      if (!meaning.value.exact()) {
        guard.of_memory = true;
        continue;
      }
      absl::StrAppend(&guard.key, "; ", name, " = ", meaning.value.ToString());
      for (const std::string& symbol : meaning.value.Symbols()) guard.symbols.push_back(symbol);
    }
    return guard;
  }

  // Adds what a condition says, as polynomials that are at least 0.
  void AddConditions(const CExpression& condition, NestGuard* guard) {
    if (condition.kind == CExpression::Kind::kBinary && condition.text == "&&") {
      AddConditions(*condition.operands[0], guard);
      AddConditions(*condition.operands[1], guard);
      return;
    }
    if (condition.kind != CExpression::Kind::kBinary || !IsIntegerExpression(condition)) {
      guard->whole = false;
      return;
    }
    const Polynomial left = ValueOf(*condition.operands[0]), right = ValueOf(*condition.operands[1]);
    const std::string& relation = condition.text;
    if (!left.exact() || !right.exact()) {
      guard->whole = false;
    } else if (relation == "<") {
      guard->conditions.push_back(right - left - 1);
    } else if (relation == "<=") {
      guard->conditions.push_back(right - left);
    } else if (relation == ">") {
      guard->conditions.push_back(left - right - 1);
    } else if (relation == ">=") {
      guard->conditions.push_back(left - right);
    } else if (relation == "==") {
      guard->conditions.push_back(left - right);
      guard->conditions.push_back(right - left);
    } else {
      guard->whole = false;
    }
  }

  void WalkFor(const CStatement& statement) {
    Read(*statement.start);
    Read(*statement.bound);
    Read(*statement.step);
    NestLoop loop{.counter = statement.variable.name, .position = statement.position, .parent = Innermost()};
    const int number = static_cast<int>(nest_->loops.size());
    loop.symbol = absl::StrCat(loop.counter, "@", number);  // no name of C
    symbols_of_loops_.insert(loop.symbol);
    const Polynomial start = IntegerOf(*statement.start), bound = IntegerOf(*statement.bound),
                     step = IntegerOf(*statement.step);
    const Polynomial symbol = Polynomial::Symbol(loop.symbol);
    const bool inclusive = statement.relation.size() == 2;
    if (const auto constant = step.Constant(); constant && *constant <= 0)
      errors_->Add({statement.step->position},
                   absl::StrCat("this loop steps by ", *constant, "; it never ends"));
    if (step == Polynomial(1)) {
      loop.value = symbol;
      std::vector<Polynomial>& first = statement.down ? loop.highs : loop.lows;
      std::vector<Polynomial>& last = statement.down ? loop.lows : loop.highs;
      loop.bounded &= AddBounds(*statement.start, statement.down, 0, &first);
      loop.bounded &= AddBounds(*statement.bound, !statement.down,
                                inclusive        ? 0
                                : statement.down ? 1
                                                 : -1,
                                &last);
    } else {
      loop.value = statement.down ? start - step * symbol : start + step * symbol;
      loop.lows.push_back(Polynomial(0));
      const Polynomial room = statement.down ? loop.value - bound : bound - loop.value;
      loop.conditions.push_back(inclusive ? room : room - 1);
      if (!step.Constant()) loop.conditions.push_back(step - 1);
    }
    loop.bounded &=
        loop.value.exact() && std::all_of(loop.conditions.begin(), loop.conditions.end(),
                                          [](const Polynomial& condition) { return condition.exact(); });
    std::erase_if(loop.conditions, [](const Polynomial& condition) { return !condition.exact(); });
    // Whoever is in the loop knows that it is not empty.
    for (const Polynomial& low : loop.lows)
      for (const Polynomial& high : loop.highs) loop.conditions.push_back(high - low);
    loop.claim = ClaimOf(statement);
    loop.parts = statement.parts;
    TakePrivates(statement, &loop);
    nest_->loops.push_back(loop);
    Name counter{.kind = Name::Kind::kValue,
                 .type = statement.variable.type,
                 .value = loop.value,
                 .owner = number,
                 .counter = true};
    if (!statement.declares) {
      // A counter that is declared further out is shared by the iterations of loops of OpenMP around this
      // one.
      const auto outer = names_.find(loop.counter);
      if (outer == names_.end() || outer->second.empty()) {
        // Fragments leave it out.
      } else if (outer->second.back().counter) {
        errors_->Add({statement.variable.position},
                     absl::StrCat(loop.counter, " counts a loop around this one, too"));
      } else if (outer->second.back().kind == Name::Kind::kArray) {
        errors_->Add({statement.variable.position},
                     absl::StrCat(loop.counter, " is an array, not a counter"));
      } else if (loop.claim != Claim::kOpenMp) {
        nest_->scalars.push_back({.name = loop.counter,
                                  .writes = true,
                                  .position = statement.variable.position,
                                  .loops = loops_,
                                  .branches = branches_,
                                  .counter = true,
                                  .owner = outer->second.back().owner,
                                  .order = order_++});
      }
    }
    const auto before = names_;
    names_[loop.counter].push_back(counter);
    loops_.push_back(number);
    ForgetAssigned(*statement.body[0]);
    Walk(*statement.body[0]);
    loops_.pop_back();
    names_ = before;
    ForgetAssigned(*statement.body[0]);
  }

  // Adds what a bound says: the smaller of two is two upper bounds, the larger two lower ones. Returns false
  // where it is no such thing.
  bool AddBounds(const CExpression& bound, bool upper, int64_t offset, std::vector<Polynomial>* bounds) {
    const CExpression *one = nullptr, *other = nullptr;
    if (bound.kind == CExpression::Kind::kConditional &&
        bound.operands[0]->kind == CExpression::Kind::kBinary) {
      const CExpression& condition = *bound.operands[0];
      const bool less = condition.text == "<" || condition.text == "<=",
                 more = condition.text == ">" || condition.text == ">=";
      const bool straight = CText(*condition.operands[0]) == CText(*bound.operands[1]) &&
                            CText(*condition.operands[1]) == CText(*bound.operands[2]);
      const bool crossed = CText(*condition.operands[0]) == CText(*bound.operands[2]) &&
                           CText(*condition.operands[1]) == CText(*bound.operands[1]);
      const bool smaller = (less && straight) || (more && crossed),
                 larger = (more && straight) || (less && crossed);
      if (upper ? smaller : larger) one = bound.operands[1].get(), other = bound.operands[2].get();
    } else if (bound.kind == CExpression::Kind::kCall && bound.operands.size() == 2 &&
               bound.text == (upper ? "min" : "max")) {
      one = bound.operands[0].get(), other = bound.operands[1].get();
    }
    if (one != nullptr) {
      const bool first = AddBounds(*one, upper, offset, bounds);
      return AddBounds(*other, upper, offset, bounds) && first;
    }
    const Polynomial value = IntegerOf(bound) + offset;
    if (value.exact()) bounds->push_back(value);
    return value.exact();
  }

  Polynomial IntegerOf(const CExpression& expression) {
    return IsIntegerExpression(expression) ? ValueOf(expression) : Polynomial::Inexact();
  }

  // --- Directives ---
  // Those that stand before a block or a `meta_schedule` hold for the loops in it.
  void TakeDirectives(const CStatement& statement) {
    for (const CDirective& directive : statement.directives) {
      if (directive.Has("for") || directive.Has("distribute"))
        errors_->Add({directive.position}, "a loop has to follow this directive");
      for (const CClause& clause : directive.clauses)
        AddPrivate(clause, &directives_.privates, &directives_.reductions);
    }
  }
  static void AddPrivate(const CClause& clause, std::vector<std::string>* privates,
                         std::vector<std::string>* reductions) {
    if (clause.IsPrivate()) privates->insert(privates->end(), clause.names.begin(), clause.names.end());
    if (clause.name == "reduction")
      reductions->insert(reductions->end(), clause.names.begin(), clause.names.end());
  }
  void TakePrivates(const CStatement& statement, NestLoop* loop) {
    loop->privates = directives_.privates;
    loop->reductions = directives_.reductions;
    for (const CDirective& directive : statement.directives)
      for (const CClause& clause : directive.clauses) AddPrivate(clause, &loop->privates, &loop->reductions);
    if (loop->claim == Claim::kOpenMp && statement.directives.empty()) {
      loop->privates.insert(loop->privates.end(), directives_.collapsed_privates.begin(),
                            directives_.collapsed_privates.end());
      loop->reductions.insert(loop->reductions.end(), directives_.collapsed_reductions.begin(),
                              directives_.collapsed_reductions.end());
    }
  }
  Claim ClaimOf(const CStatement& statement) {
    if (statement.meta) return Claim::kMetaFor;
    for (const CDirective& directive : statement.directives) {
      if (directive.Has("for") || directive.Has("distribute") || directive.Has("simd")) {
        directives_.collapsed = 1;
        directives_.collapsed_privates.clear();
        directives_.collapsed_reductions.clear();
        for (const CClause& clause : directive.clauses)
          AddPrivate(clause, &directives_.collapsed_privates, &directives_.collapsed_reductions);
        for (const CClause& clause : directive.clauses)
          if (clause.name == "collapse" && clause.expressions.size() == 1)
            directives_.collapsed = static_cast<int>(
                std::clamp<int64_t>(IntegerOf(*clause.expressions[0]).Constant().value_or(1), 1, 12));
      }
    }
    if (directives_.collapsed > 0) {
      --directives_.collapsed;
      return Claim::kOpenMp;
    }
    return directives_.asked ? Claim::kAsked : Claim::kNone;
  }

  // Teams of OpenMP do not wait for one another between two loops that are shared out to them.
  void CheckTeams() {
    std::set<int> reported;
    for (const NestAccess& a : nest_->accesses)
      for (const NestAccess& b : nest_->accesses) {
        if (a.teams < 0 || a.teams != b.teams || a.array != b.array || !a.writes ||
            nest_->arrays[a.array].local)
          continue;
        const int one = SharedLoop(a), other = SharedLoop(b);
        if (one < 0 || other < 0 || one == other || !reported.insert(a.teams).second) continue;
        errors_->Add({teams_positions_[a.teams]},
                     absl::StrCat("teams do not wait for one another between the loops at ",
                                  nest_->loops[std::min(one, other)].position.line, " and ",
                                  nest_->loops[std::max(one, other)].position.line, ", which share ",
                                  nest_->arrays[a.array].variable.name, "; give each its own target teams"));
      }
  }
  int SharedLoop(const NestAccess& access) const {
    for (int loop : access.loops)
      if (nest_->loops[loop].claim == Claim::kOpenMp) return loop;
    return -1;
  }

  // --- Uses ---
  void Read(const CExpression& expression) {
    using Kind = CExpression::Kind;
    if (expression.kind == Kind::kName) {
      Name* name = Find(expression);
      if (name == nullptr) return;
      if (name->kind == Name::Kind::kParameter) NoteParameter(expression.text);
      if (name->kind == Name::Kind::kScalar) AddScalar(expression, *name, false, false);
      if (name->kind == Name::Kind::kArray)
        errors_->Add({expression.position},
                     absl::StrCat(expression.text, " is an array; its entries have indices"));
      return;
    }
    if (expression.kind == Kind::kCall &&
        std::find(std::begin(kFunctions), std::end(kFunctions), expression.text) == std::end(kFunctions) &&
        reported_.insert(expression.text).second)
      errors_->Add({expression.position},
                   absl::StrCat("the function ", expression.text,
                                " is not known; functions are not followed, and of C's those of numbers "
                                "are: sqrt, exp, fabs ...; write what it does in its place"));
    for (const CExpressionPtr& operand : expression.operands) Read(*operand);
    if (expression.kind == Kind::kUnary && expression.text.size() == 2) {  // x++
      const CExpression& target = *expression.operands[0];
      Name* name = Find(target);
      if (name != nullptr && target.kind == Kind::kName && !IsCounter(target, *name))
        AddScalar(target, *name, true, false);
      if (name != nullptr && target.kind == Kind::kSubscript) AddAccess(target, *name, true, false);
    }
    if (expression.kind == Kind::kSubscript)
      if (Name* name = Find(expression)) AddAccess(expression, *name, false, false);
  }

  void AddAccess(const CExpression& expression, const Name& name, bool writes, bool accumulates) {
    if (name.kind != Name::Kind::kArray) {
      if (reported_.insert(expression.text).second)
        errors_->Add({expression.position}, absl::StrCat(expression.text, " is no array"));
      return;
    }
    const NestArray& array = nest_->arrays[name.array];
    if (expression.operands.size() != array.extents.size()) {
      errors_->Add({expression.position},
                   absl::StrCat(expression.text, " has ", array.extents.size(),
                                array.extents.size() == 1 ? " dimension" : " dimensions", ", not ",
                                expression.operands.size()));
      return;
    }
    if (writes && IsPrivate(array) && reported_.insert(expression.text).second)
      errors_->Add(
          {expression.position},
          absl::StrCat(expression.text,
                       " is an array that a clause makes private, and kernels have one of it for all "
                       "threads; declare it in the loop"));
    NestAccess access{.array = name.array,
                      .writes = writes,
                      .accumulates = accumulates,
                      .position = expression.position,
                      .text = CText(expression),
                      .loops = loops_,
                      .guards = guards_,
                      .teams = directives_.teams};
    for (const CExpressionPtr& index : expression.operands) access.index.push_back(IntegerOf(*index));
    nest_->accesses.push_back(std::move(access));
  }

  // Returns whether a clause around this place gives each thread another array in place of this one.
  bool IsPrivate(const NestArray& array) const {
    const auto has_it = [&](const std::vector<std::string>& privates) {
      return std::find(privates.begin(), privates.end(), array.variable.name) != privates.end();
    };
    if (!array.local && has_it(directives_.privates)) return true;
    for (auto loop = loops_.rbegin(); loop != loops_.rend() && *loop != array.owner; ++loop)
      if (has_it(nest_->loops[*loop].privates)) return true;
    return false;
  }

  void AddScalar(const CExpression& use, const Name& name, bool writes, bool accumulates) {
    nest_->scalars.push_back({.name = use.text,
                              .writes = writes,
                              .accumulates = accumulates,
                              .position = use.position,
                              .loops = loops_,
                              .branches = branches_,
                              .owner = name.owner,
                              .order = order_++});
  }

  const CProgram& program_;
  const CRegion& region_;
  ErrorList* errors_;
  std::unique_ptr<Nest> nest_ = std::make_unique<Nest>();
  std::map<std::string, std::vector<Name>> names_;  // inner meanings last
  std::map<std::string, ScalarUse> uses_;
  std::set<std::string> may_be_parameter_, positive_, reported_, noted_, symbols_of_loops_;
  std::vector<int> loops_;         // around the statement
  std::vector<NestGuard> guards_;  // likewise
  std::vector<int> branches_;      // likewise
  int next_branch_ = 0;
  Directives directives_;
  int order_ = 0;
  std::vector<SourcePosition> teams_positions_;
};

}  // namespace

std::unique_ptr<Nest> BuildNest(const CProgram& program, const CRegion& region, ErrorList* errors) {
  return NestBuilder(program, region, errors).Build();
}

Polynomial FlatIndex(const Nest& nest, const NestAccess& access) {
  Polynomial flat(0);
  for (size_t i = 0; i < access.index.size(); ++i)
    flat = i == 0 ? access.index[i] : flat * nest.arrays[access.array].extents[i] + access.index[i];
  return flat;
}

std::vector<NestQuotient> QuotientsThatDrop(const Nest& nest, const std::set<std::string>& names) {
  const auto has = [&](const Polynomial& polynomial) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return polynomial.Has(name); });
  };
  std::vector<NestQuotient> drop;
  for (const NestQuotient& quotient : nest.quotients)
    if (has(quotient.denominator) && has(quotient.numerator - (quotient.denominator - 1)))
      drop.push_back(quotient);
  return drop;
}

}  // namespace fusion
