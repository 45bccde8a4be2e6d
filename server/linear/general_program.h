// A linear program with any coefficients, solved once by lp_solve. Every function here is thread safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/linear/deadline.h"

namespace fusion {

enum class Relation { kEqual, kAtMost, kAtLeast };

// The sum of coefficient times variable, by number, in this relation to `right`. A variable stands there
// once.
struct LinearRow {
  std::vector<std::pair<int, double>> terms;
  Relation relation = Relation::kEqual;
  double right = 0;
};

// Maximises objective * x under all rows, x >= 0.
struct GeneralProgram {
  std::vector<double> objective;  // one for each variable
  std::vector<LinearRow> rows;
  bool integers = false;  // all variables are integers
};

enum class GeneralOutcome {
  kOptimal,
  kInfeasible,
  kUnbounded,
  kUnknown
};  // unknown: out of time, or lp_solve failed

struct GeneralSolution {
  GeneralOutcome outcome = GeneralOutcome::kUnknown;
  double objective = 0;        // with `values`, filled for kOptimal
  std::vector<double> values;  // one for each variable
};

GeneralSolution SolveLinearProgram(const GeneralProgram& program, Deadline deadline);

}  // namespace fusion
