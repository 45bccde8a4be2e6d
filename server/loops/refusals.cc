#include "server/loops/refusals.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/similar_name.h"

namespace fusion {
namespace {

constexpr absl::string_view kJumps[] = {"break", "continue", "return", "goto"};
constexpr absl::string_view kUncounted[] = {"while", "do"};
constexpr absl::string_view kSwitches[] = {"switch", "case", "default"};
constexpr absl::string_view kForkJoin[] = {"meta_fork", "meta_join", "cilk_spawn", "cilk_sync"};

constexpr absl::string_view kConstructs[] = {"target", "teams", "distribute", "parallel", "for", "simd"};
constexpr absl::string_view kOtherConstructs[] = {
    "task",      "taskwait", "taskloop", "taskyield", "critical",      "atomic", "barrier",   "sections",
    "section",   "single",   "master",   "ordered",   "threadprivate", "flush",  "declare",   "end",
    "taskgroup", "cancel",   "data",     "enter",     "exit",          "update", "workshare", "cancellation"};
constexpr absl::string_view kConstructsOf5[] = {
    "loop",   "masked",        "scan",   "tile",     "unroll",  "interchange", "reverse",       "fuse",
    "stripe", "metadirective", "begin",  "assume",   "assumes", "requires",    "interop",       "dispatch",
    "error",  "nothing",       "depobj", "allocate", "scope",   "allocators",  "workdistribute"};
constexpr absl::string_view kConstructsAndClauses[] = {"ordered", "allocate", "update"};

constexpr absl::string_view kKnownClauses[] = {
    "map",     "num_teams",    "thread_limit", "num_threads", "collapse", "schedule",  "dist_schedule",
    "private", "firstprivate", "lastprivate",  "shared",      "default",  "reduction", "if",
    "nowait",  "proc_bind",    "safelen",      "simdlen",     "device",   "linear"};
constexpr absl::string_view kOtherClauses[] = {
    "is_device_ptr", "use_device_ptr", "aligned",   "ordered",  "depend",   "defaultmap", "copyin",
    "copyprivate",   "untied",         "mergeable", "final",    "priority", "grainsize",  "num_tasks",
    "nogroup",       "hint",           "uniform",   "inbranch", "link",     "notinbranch"};
constexpr absl::string_view kClausesOf5[] = {"order",
                                             "nontemporal",
                                             "allocate",
                                             "in_reduction",
                                             "task_reduction",
                                             "bind",
                                             "has_device_addr",
                                             "inclusive",
                                             "exclusive",
                                             "filter",
                                             "use_device_addr",
                                             "uses_allocators",
                                             "detach",
                                             "affinity",
                                             "induction",
                                             "when",
                                             "otherwise",
                                             "sizes",
                                             "full",
                                             "partial"};

template <class List>
bool Has(const List& list, absl::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// A question, where one of the known words is much like this one.
template <class List>
std::string Similar(absl::string_view word, const List& known, ErrorList* errors) {
  return errors->MaySuggest() ? DidYouMean(SimilarName(word, {std::begin(known), std::end(known)})) : "";
}

}  // namespace

std::string RefusedStatement(absl::string_view word) {
  if (Has(kForkJoin, word))
    return absl::StrCat(word,
                        " is of the fork-join model, which no GPU has; loops for a device are meta_for");
  const char* const instead = Has(kJumps, word)       ? "put what it skips into an if"
                              : Has(kUncounted, word) ? "write a for that counts"
                              : Has(kSwitches, word)  ? "write it as if and else"
                                                      : nullptr;
  if (instead == nullptr) return "";
  return absl::StrCat("\"", word, "\" has no place in loops for a device; ", instead);
}

bool IsConstruct(absl::string_view word) { return Has(kConstructs, word); }

std::string RefusedConstruct(absl::string_view word, bool first, ErrorList* errors) {
  if (!first && Has(kConstructsAndClauses, word)) return "";
  const bool of_5 = Has(kConstructsOf5, word);
  if (!of_5 && !Has(kOtherConstructs, word))
    return first ? absl::StrCat("OpenMP has no directive ", word, Similar(word, kConstructs, errors)) : "";
  const char* instead = "";
  if (word == "barrier") instead = "; what follows it goes into a loop of its own";
  if (word == "critical" || word == "atomic") instead = "; what is only added up wants a reduction clause";
  if (word == "loop") instead = "; write parallel for";
  return absl::StrCat("OpenMP", of_5 ? " 5" : "", "'s ", word,
                      " has no counterpart here: only target, teams, distribute, parallel, for and simd",
                      instead);
}

bool MayStandOutside(absl::string_view word) {
  return word != "loop" && word != "metadirective" &&
         (Has(kConstructsOf5, word) || Has(kOtherConstructs, word));
}

std::string RefusedClause(absl::string_view name, ErrorList* errors) {
  if (Has(kKnownClauses, name)) return "";
  if (Has(kOtherClauses, name))
    return absl::StrCat("the clause ", name,
                        " is not supported; leave it out if the loops mean the same without");
  if (Has(kClausesOf5, name))
    return absl::StrCat("the clause ", name, " is of OpenMP 5, and 4.5 is read here; leave it out");
  const std::string similar = Similar(name, kKnownClauses, errors);
  return absl::StrCat("the clause ", name, " is unknown",
                      similar.empty() ? Similar(name, kConstructs, errors) : similar);
}

std::string RefusedVariable(absl::string_view word, absl::string_view name) {
  return name.empty()
             ? absl::StrCat(word, " has no place in loops for a device; declare the variable without")
             : absl::StrCat(name, " is ", word,
                            ", which has no place in loops for a device; declare it without");
}

}  // namespace fusion
