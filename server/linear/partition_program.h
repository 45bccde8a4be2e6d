// A 0/1 program with equality rows whose relaxed form lp_solve solves. This is the only file pair that knows
// lp_solve.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/linear/deadline.h"

namespace fusion {

enum class ProgramOutcome {
  kOptimal,
  kInfeasible,
  kOutOfTime,
  kFailed,  // lp_solve gave up (numerical failure)
};

struct ProgramSolution {
  ProgramOutcome outcome = ProgramOutcome::kFailed;
  // These fields are filled for kOptimal. The prices are dual values of all rows, in order of adding; empty
  // when lp_solve has none.
  std::vector<double> values;  // one per variable
  std::vector<double> row_prices;
};

// One call of lp_solve's solve() says this.
struct EngineAnswer {
  int status = 0;  // its return value, as lp_lib.h lists them; 0: optimal
  // These fields are filled for an optimal solution.
  std::vector<double> values;      // one per variable
  std::vector<double> row_prices;  // dual values of all rows; empty when there are none
};
// Sees each answer before anything else does, and may change it, just as lp_solve itself may fail or be off.
using AnswerFilter = std::function<void(EngineAnswer&)>;

// Minimises cost * x, where each of `rows` sums of variables = 1, further sums <= limit, x >= 0. Costs should
// be about 1. Not thread safe; separate objects are independent.
class LinearProgram {
 public:
  // `columns` says how many variables will be added. An empty `filter` is none.
  LinearProgram(int rows, int columns, AnswerFilter filter = {});
  ~LinearProgram();
  LinearProgram(const LinearProgram&) = delete;
  LinearProgram& operator=(const LinearProgram&) = delete;

  // `rows` ascend and count from 0; `sums` are those of AddAtMost so far in which the variable stands,
  // likewise, as often as it counts there.
  void AddVariable(double cost, const std::vector<int>& rows, const std::vector<int>& sums = {});
  // `variables` ascend; one that stands there twice counts twice.
  void AddAtMost(const std::vector<int>& variables, int limit);
  // A variable that is closed stays 0.
  void SetClosed(int variable, bool closed);
  void SetNames(const std::vector<std::string>& rows, const std::vector<std::string>& variables);

  // May be called again after further AddAtMost, AddVariable and SetClosed, and then goes on from the last
  // solution.
  ProgramSolution Solve(Deadline deadline);
  // A basis says what the last solution is made of, from which another one can go on. Entries are variables,
  // or ~row for what a row lacks.
  using Basis = std::vector<int>;
  Basis LastBasis() const;  // empty when there is no last solution
  // The next Solve goes on from `basis`: a LastBasis of this program, to which rows and variables may have
  // come since.
  void GoOnFrom(const Basis& basis);
  void Restart() { continues_ = false; }  // the next Solve goes on from nothing
  // Returns the program in .lp format, with x in {0, 1}.
  std::string Text() const;

 private:
  struct Model;
  EngineAnswer CallSolve();

  Model* model_;
  const AnswerFilter filter_;
  int rows_;                // sums that are 1
  bool continues_ = false;  // there is a last solution
};

}  // namespace fusion
