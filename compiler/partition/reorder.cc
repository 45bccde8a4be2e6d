#include "compiler/partition/reorder.h"

#include <algorithm>
#include <array>
#include <map>

#include "compiler/partition/elements.h"

namespace fusion {

using namespace llvm;

namespace {

constexpr int kMostTried = 2000;  // times for statements

// The first statement has to run before the second one, for these counters.
struct Dependence {
  size_t first, second;
  isl::map pairs;
};

struct Time {
  unsigned counter;
  isl::pw_aff value;
};

// Returns the map of a statement's counters to the outer ones among them.
isl::map Outer(size_t all, size_t outer, IterationSpace& space) {
  std::string from, to;
  for (size_t at = 0; at < all; ++at) {
    const std::string name = (at == 0 ? "c" : ", c") + std::to_string(at);
    from += name;
    if (at < outer) to += name;
  }
  return isl::map(space.context(), "{ [" + from + "] -> [" + to + "] }");
}

class Reorderer {
 public:
  Reorderer(const NestStatements& nest, const LoopAccesses& accesses, ExactNumbers& numbers,
            IterationSpace& space)
      : nest_(nest), accesses_(accesses), numbers_(numbers), space_(space) {}

  // `which` shape each array is taken to have, of those that it may have.
  Reordering Find(size_t which, bool& is_last) {
    holds_ = nest_.assumed;
    is_last = true;
    isl::set usual = isl::manage(isl_set_universe(isl_space_params_alloc(space_.context().get(), 0)));
    for (const Statement& statement : nest_.statements)
      usual = usual.intersect_params(space_.Usual(statement.nest));
    for (unsigned array = 0; array < accesses_.arrays.size(); ++array)
      if (accesses_.arrays[array].written && !FindElements(array, which, is_last))
        return {"what it touches of " + NameOf(accesses_.arrays[array]) + " is not affine", {}, {}, {}};
    holds_ = holds_.coalesce();
    if (!holds_.intersect_params(usual).is_empty().is_false()) return {"rows may overlap", {}, {}, {}};
    for (const Untouched& untouched : nest_.untouched)
      if (!Holds(untouched)) return {"a number that it carries may not be what is in memory", {}, {}, {}};
    if (!FindDependences()) return Failed();
    return Choose();
  }

 private:
  static Reordering Failed() { return {"it takes too long to find another order", {}, {}, {}}; }

  bool FindElements(unsigned array, size_t which, bool& is_last) {
    size_t valid = 0;
    isl::set within;
    for (const ArrayShape& shape : PossibleShapes(accesses_, array, numbers_)) {
      Elements elements(shape, numbers_, space_);
      std::vector<isl::map> touched;
      bool good = true;
      for (const LoopAccess& access : accesses_.accesses) {
        if (access.array != array) continue;
        touched.push_back(elements.Of(access));
        good = good && !touched.back().is_null();
      }
      if (!good) continue;
      if (valid > which) {
        is_last = false;
        break;
      }
      ++valid;
      within = elements.within();
      size_t at = 0;
      for (const LoopAccess& access : accesses_.accesses)
        if (access.array == array) elements_[&access] = touched[at++];
    }
    if (valid == 0) return false;
    holds_ = holds_.intersect_params(within);
    return true;
  }

  isl::map ElementsOf(const StatementAccess& access, size_t counters) {
    return Outer(counters, access.place->nest.size(), space_).apply_range(elements_[access.place]);
  }

  bool Holds(const Untouched& untouched) {
    const size_t counters = untouched.to.nest.size();
    const isl::map element = ElementsOf(untouched.to, counters).intersect_domain(untouched.domain);
    const isl::map from = Outer(counters, untouched.from.nest.size(), space_);
    for (const Statement& statement : nest_.statements)
      for (const StatementAccess& access : statement.accesses) {
        if ((!access.written && !untouched.or_read) || is_contained(untouched.except, access.place) ||
            access.place->array != untouched.to.place->array)
          continue;
        const isl::map when = Outer(statement.nest.size(), access.nest.size(), space_);
        isl::map both = element.apply_range(ElementsOf(access, statement.nest.size()).reverse())
                            .intersect_range(statement.domain)
                            .intersect_params(holds_);
        both = both.intersect(
            from.apply_range(Earlier(untouched.from, access, nest_, space_)).apply_range(when.reverse()));
        both = both.intersect(when.apply_range(Earlier(access, untouched.to, nest_, space_)).reverse());
        if (!both.is_empty().is_true()) return false;
      }
    return true;
  }

  bool FindDependences() {
    for (size_t first = 0; first < nest_.statements.size(); ++first)
      for (size_t second = 0; second < nest_.statements.size(); ++second) {
        const Statement &one = nest_.statements[first], &other = nest_.statements[second];
        isl::map all;
        bool is_any = false;
        for (const StatementAccess& access : one.accesses)
          for (const StatementAccess& later : other.accesses) {
            if (access.place->array != later.place->array || (!access.written && !later.written)) continue;
            isl::map pairs = ElementsOf(access, one.nest.size())
                                 .apply_range(ElementsOf(later, other.nest.size()).reverse());
            pairs = pairs.intersect(
                Outer(one.nest.size(), access.nest.size(), space_)
                    .apply_range(Earlier(access, later, nest_, space_))
                    .apply_range(Outer(other.nest.size(), later.nest.size(), space_).reverse()));
            pairs = pairs.intersect_domain(one.domain).intersect_range(other.domain).intersect_params(holds_);
            // One run of a statement reads before it writes.
            if (first == second && later.written && !access.written)
              pairs = pairs.subtract(isl::manage(isl_map_identity(isl_map_get_space(pairs.get()))));
            all = is_any ? all.unite(pairs) : pairs;
            is_any = true;
          }
        if (!is_any) continue;
        const isl::boolean none = all.is_empty();  // an error where isl has stopped
        if (none.is_error()) return false;
        if (none.is_false()) dependences_.push_back({first, second, all.coalesce()});
      }
    return true;
  }

  // Counters themselves, and the values that they have in the program: i counts from 0, j = i + 1 from 1.
  std::vector<Time> TimesOf(const Statement& statement) {
    std::vector<Time> times;
    for (size_t at = statement.nest.size(); at-- > 0;) {
      const isl::pw_aff count = isl::manage(isl_pw_aff_from_aff(
          isl_aff_var_on_domain(isl_local_space_from_space(isl_set_get_space(statement.domain.get())),
                                isl_dim_set, static_cast<unsigned>(at))));
      times.push_back({static_cast<unsigned>(at), count});
      for (PHINode& counter : statement.nest[at]->getHeader()->phis()) {
        const SCEV* number = NumberOfCounters(&counter, statement.nest, numbers_);
        auto* recurrence = dyn_cast_or_null<SCEVAddRecExpr>(number);
        if (recurrence == nullptr || recurrence->getLoop() != statement.nest[at] ||
            !recurrence->getStepRecurrence(numbers_.evolution())->isOne())
          continue;
        const isl::pw_aff value = space_.Affine(number, statement.nest);
        if (value.is_null() || value.is_equal(count).is_true()) continue;
        times.push_back({static_cast<unsigned>(at), value});
        break;
      }
    }
    return times;
  }

  // A dependence says one of these of two times.
  enum class Order { kWrong, kSame, kLater, kUnknown };
  Order OrderOf(size_t dependence, size_t time_of_first, size_t time_of_second) {
    auto [known, is_new] = checked_.try_emplace({dependence, time_of_first, time_of_second}, Order::kUnknown);
    if (!is_new) return known->second;
    const Dependence& pair = dependences_[dependence];
    const auto of_first = isl::manage(isl_map_from_pw_aff(times_[pair.first][time_of_first].value.copy())),
               of_second = isl::manage(isl_map_from_pw_aff(times_[pair.second][time_of_second].value.copy()));
    const isl::map before(space_.context(), "{ [a] -> [b] : b < a }");
    const isl::boolean right =
        pair.pairs.intersect(of_first.apply_range(before).apply_range(of_second.reverse())).is_empty();
    if (right.is_error()) return Order::kUnknown;
    if (right.is_false()) return checked_[{dependence, time_of_first, time_of_second}] = Order::kWrong;
    const isl::boolean later = pair.pairs.intersect(of_first.apply_range(of_second.reverse())).is_empty();
    if (later.is_error()) return Order::kUnknown;
    return checked_[{dependence, time_of_first, time_of_second}] =
               later.is_true() ? Order::kLater : Order::kSame;
  }

  // Gives times to the statements from the one at `at` on, the deepest first.
  bool Assign(size_t at, const std::vector<size_t>& statements, std::vector<size_t>& chosen,
              std::vector<size_t>& phases) {
    if (at == statements.size()) return InPhases(chosen, phases);
    const size_t statement = statements[at];
    for (size_t time = 0; time < times_[statement].size(); ++time) {
      if (++tried_ > kMostTried) return false;
      chosen[statement] = time;
      bool good = true;
      for (size_t index = 0; index < dependences_.size() && good; ++index) {
        const Dependence& pair = dependences_[index];
        auto is_chosen = [&](size_t other) {
          return std::find(statements.begin(), statements.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                           other) != statements.begin() + static_cast<std::ptrdiff_t>(at) + 1;
        };
        if ((pair.first != statement && pair.second != statement) || !is_chosen(pair.first) ||
            !is_chosen(pair.second))
          continue;
        const Order order = OrderOf(index, chosen[pair.first], chosen[pair.second]);
        good = order == Order::kLater || (order == Order::kSame && pair.first != pair.second);
      }
      if (good && Assign(at + 1, statements, chosen, phases)) return true;
    }
    return false;
  }

  // Returns true when a loop around the statement, inside of the nest, has independent iterations as it is.
  bool IsInParallelLoop(size_t statement) {
    const LoopNest& nest = nest_.statements[statement].nest;
    for (size_t at = 1; at < nest.size(); ++at) {
      bool is_parallel = true;
      for (const Dependence& pair : dependences_) {
        if (CommonLoops(nest_.statements[pair.first].nest, nest) <= at ||
            CommonLoops(nest_.statements[pair.second].nest, nest) <= at)
          continue;
        isl::map inside = pair.pairs;
        for (size_t outer = 0; outer < at; ++outer)
          inside =
              inside.equate(isl::dim::in, static_cast<int>(outer), isl::dim::out, static_cast<int>(outer));
        const isl::map same =
            inside.equate(isl::dim::in, static_cast<int>(at), isl::dim::out, static_cast<int>(at));
        is_parallel = is_parallel && inside.subtract(same).is_empty().is_true();
      }
      if (is_parallel) return true;
    }
    return false;
  }

  // Orders what runs at one time. Returns false where that cannot be done, or where nothing is won.
  bool InPhases(const std::vector<size_t>& chosen, std::vector<size_t>& phases) {
    bool is_of_use = false;
    for (size_t at = 0; at < chosen.size(); ++at)
      is_of_use = is_of_use || (nest_.statements[at].nest.size() >= kDeep &&
                                times_[at][chosen[at]].counter != 0 && !IsInParallelLoop(at));
    if (!is_of_use) return false;
    phases.clear();
    std::vector<bool> done(chosen.size());
    while (phases.size() < chosen.size()) {
      size_t next = chosen.size();
      for (size_t at = 0; at < chosen.size() && next == chosen.size(); ++at) {
        if (done[at]) continue;
        bool is_first = true;
        for (size_t index = 0; index < dependences_.size(); ++index) {
          const Dependence& pair = dependences_[index];
          if (pair.second == at && pair.first != at && !done[pair.first] &&
              OrderOf(index, chosen[pair.first], chosen[at]) != Order::kLater)
            is_first = false;
        }
        if (is_first) next = at;
      }
      if (next == chosen.size()) return false;
      done[next] = true;
      phases.push_back(next);
    }
    return true;
  }

  Reordering Choose() {
    times_.clear();
    for (const Statement& statement : nest_.statements) times_.push_back(TimesOf(statement));
    std::vector<size_t> statements(nest_.statements.size()), chosen(nest_.statements.size()), phases;
    for (size_t at = 0; at < statements.size(); ++at) statements[at] = at;
    std::stable_sort(statements.begin(), statements.end(), [&](size_t one, size_t other) {
      return nest_.statements[one].nest.size() > nest_.statements[other].nest.size();
    });
    if (!Assign(0, statements, chosen, phases)) return {"it has to run in its own order", {}, {}, {}};
    Reordering found;
    for (size_t at : phases) {
      const Statement& statement = nest_.statements[at];
      const Time& time = times_[at][chosen[at]];
      found.phases.push_back({&statement, time.counter, time.value});
      const isl::set times = statement.domain.apply(isl::manage(isl_map_from_pw_aff(time.value.copy())));
      found.times = found.phases.size() == 1 ? times : found.times.unite(times);
    }
    found.assumed = holds_.intersect_params(found.times.params());
    found.assumed = isl::manage(isl_set_remove_redundancies(found.assumed.coalesce().release()));
    if (!found.assumed.is_empty().is_false()) return Failed();
    return found;
  }

  const NestStatements& nest_;
  const LoopAccesses& accesses_;
  ExactNumbers& numbers_;
  IterationSpace& space_;
  isl::set holds_;
  std::map<const LoopAccess*, isl::map> elements_;
  std::vector<Dependence> dependences_;
  std::vector<std::vector<Time>> times_;  // of each statement
  std::map<std::array<size_t, 3>, Order> checked_;
  int tried_ = 0;
};

}  // namespace

Reordering FindReordering(const NestStatements& nest, const LoopAccesses& accesses, ExactNumbers& numbers,
                          IterationSpace& space) {
  Reordering found;
  bool is_last = false;
  for (size_t which = 0; !is_last; ++which) {
    found = Reorderer(nest, accesses, numbers, space).Find(which, is_last);
    if (found.why_not.empty()) break;
  }
  return found;
}

}  // namespace fusion
