// A 0/1 program with equality rows, solved by lp_solve. The only file pair that knows lp_solve.
#pragma once

#include <string>
#include <vector>

#include "server/cover/deadline.h"

namespace fusion {

enum class ProgramOutcome {
  kOptimal,
  kFeasible,  // the time ran out; the best solution found
  kInfeasible,
  kOutOfTime,  // no solution found in time
  kFailed,     // lp_solve gave up (numerical failure)
};

struct ProgramSolution {
  ProgramOutcome outcome = ProgramOutcome::kFailed;
  std::vector<double> values;  // one per variable, for kOptimal and kFeasible
  double objective = 0;
  std::vector<double>
      row_prices;  // dual values of all rows, in order of adding; for a relaxed program that is kOptimal
};

// minimise cost * x, each of `rows` sums of variables = 1, further sums <= limit, x in {0, 1}.
// Costs should be about 1. Not thread safe; separate objects are independent.
class LinearProgram {
 public:
  LinearProgram(int rows, int columns);  // columns: how many variables will be added
  ~LinearProgram();
  LinearProgram(const LinearProgram&) = delete;
  LinearProgram& operator=(const LinearProgram&) = delete;

  // rows from 0, ascending; `sums`: in which sums of AddAtMost so far it stands, likewise.
  void AddVariable(double cost, std::vector<int> rows, const std::vector<int>& sums = {});
  void AddAtMost(const std::vector<int>& variables, int limit);
  // Of a relaxed program: a variable that is closed stays 0.
  void SetClosed(int variable, bool closed);
  void SetNames(const std::vector<std::string>& rows, const std::vector<std::string>& variables);

  // `relaxed`: 0 <= x <= 1. May be called again after further AddAtMost and AddVariable; a relaxed program then goes on from its
  // last solution.
  ProgramSolution Solve(bool relaxed, Deadline deadline);
  std::string Text() const;  // .lp format

 private:
  struct Model;
  Model* model_;
  int rows_;                // sums that are 1
  bool continues_ = false;  // the last solution was of a relaxed program
  bool relaxed_ = false;    // what the first `typed_` variables are
  int typed_ = 0;
};

}  // namespace fusion
