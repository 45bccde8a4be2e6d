// Covers: choices of disjoint node sets that together compute the graph, in an order in which they can run,
// of minimum predicted time (Fousek 2010, section 4.3.5; Filipovic et al. 2015). A 0/1 program for lp_solve
// finds the k best in order, with cuts against covers that no order can run.
//
// A cover is schedulable when the graph whose nodes are its sets (an edge where an edge of the DAG crosses)
// has no cycle. Convex sets do not ensure it: with the edges c->b, a->b, c->d, a->d the sets {a,d} and {c,b}
// wait for each other.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/graph/node_set.h"

namespace fusion {

struct EngineAnswer;

struct CoverProblem {
  int node_count = 0;
  std::vector<std::vector<int>> successors;  // of a DAG, one list per node; any order of nodes
  struct Column {
    NodeSet nodes;
    double seconds = 0;  // finite, > 0
  };
  std::vector<Column> columns;  // several may have the same nodes
};

struct CoverSolution {
  // The columns in schedule order: of the sets that can run next, the one with the smallest node.
  std::vector<int> columns;
  double seconds = 0;  // sum over the columns
  friend bool operator==(const CoverSolution&, const CoverSolution&) = default;
};

struct CoverOptions {
  int count = 1;                                                        // covers wanted, >= 1
  std::chrono::duration<double> time_limit = std::chrono::seconds(10);  // > 0
  // When set, receives the 0/1 program of the best cover, with its cuts, in lp_solve's .lp format.
  std::string* lp_text = nullptr;
  // When set, sees every answer of lp_solve before it is used, and may change it (partition_program.h): so
  // tests check what is done about wrong answers.
  std::function<void(EngineAnswer&)> filter;
};

struct CoverResult {
  std::vector<CoverSolution> covers;  // each once, by seconds (then by columns): the `count` best
  bool proved_optimal = false;        // covers[0] is the best of all
  double bound_seconds = 0;           // no cover is faster; covers[0].seconds when proved_optimal
  bool exhausted = false;             // fewer covers exist than were asked for
  std::vector<std::string> notes;     // what a limit or a numerical failure cost, for people
};

// lp_solve is the engine; its answers are checked (relaxation.h). A wrong one is replaced, with a note, by
// the best over down-sets, where there are few, or by the cover of single nodes; all covers are checked once
// more at the end (CheckedCovers). At the time limit the result is the best covers found, with a bound; the
// k-th is then the k-th best found. InvalidArgument: a node in no column (named), an index out of range, a
// cycle, an empty column, a time that is not finite and positive, or no schedulable cover. DeadlineExceeded:
// no cover was found in time. Internal: lp_solve failed, and there is no other way to a cover. Thread safe.
absl::StatusOr<CoverResult> SolveCovers(const CoverProblem& problem, const CoverOptions& options);

// Does what SolveCovers does, by listing every cover. For tests: it is exponential, and does not look at the
// time.
absl::StatusOr<CoverResult> BruteForceCovers(const CoverProblem& problem, const CoverOptions& options);

// Finds the best cover alone, by dynamic programming over down-sets (sets of nodes closed under
// predecessors): whatever has run after some steps of a schedule is one. Ignores `count`. For narrow graphs,
// of any number of nodes: InvalidArgument when schedules reach more than kMaxDownSets down-sets;
// DeadlineExceeded at the time limit.
absl::StatusOr<CoverResult> DownSetCovers(const CoverProblem& problem, const CoverOptions& options);
inline constexpr size_t kMaxDownSets = 200'000;

// Returns OK when the columns cover each node once, in an order in which they can run, and take as long as
// the cover says; else what is wrong. The check uses the problem alone: it shares nothing with the engines.
absl::Status CheckCover(const CoverProblem& problem, const CoverSolution& cover);

// Returns what is right of a result by CheckCover, and claims no more of it than can be: a cover that is
// wrong is left out, with a note, and nothing is proved then; a bound above the fastest cover is none.
// Internal when no cover is left.
absl::StatusOr<CoverResult> CheckedCovers(const CoverProblem& problem, CoverResult result);

}  // namespace fusion
