#include "server/linear/general_program.h"

#include <chrono>
#include <memory>

#include "server/linear/stop_at.h"

namespace fusion {
namespace {

int TypeOf(Relation relation) {
  return relation == Relation::kEqual ? EQ : relation == Relation::kAtMost ? LE : GE;
}

}  // namespace

GeneralSolution SolveLinearProgram(const GeneralProgram& program, Deadline deadline) {
  GeneralSolution solution;
  const int variables = static_cast<int>(program.objective.size()),
            rows = static_cast<int>(program.rows.size());
  if (std::chrono::steady_clock::now() >= deadline) return solution;
  const std::unique_ptr<lprec, decltype(&delete_lp)> model(make_lp(rows, 0), delete_lp);
  lprec* const lp = model.get();
  if (lp == nullptr) return solution;
  set_verbose(lp, NEUTRAL);
  set_maxim(lp);
  StopAt(&deadline, lp);
  std::vector<std::vector<int>> indices(variables);  // by column, with the objective as row 0
  std::vector<std::vector<REAL>> values(variables);
  for (int column = 0; column < variables; ++column) {
    indices[column].push_back(0);
    values[column].push_back(program.objective[column]);
  }
  for (int row = 0; row < rows; ++row) {
    set_constr_type(lp, row + 1, TypeOf(program.rows[row].relation));
    set_rh(lp, row + 1, program.rows[row].right);
    for (const auto& [column, coefficient] : program.rows[row].terms) {
      indices[column].push_back(row + 1);
      values[column].push_back(coefficient);
    }
  }
  for (int column = 0; column < variables; ++column) {
    add_columnex(lp, static_cast<int>(indices[column].size()), values[column].data(), indices[column].data());
    if (program.integers) set_int(lp, column + 1, TRUE);
  }
  switch (solve(lp)) {
    case OPTIMAL:
    case PRESOLVED:
      solution.objective = get_objective(lp);
      solution.outcome =
          is_infinite(lp, solution.objective) ? GeneralOutcome::kUnbounded : GeneralOutcome::kOptimal;
      solution.values.resize(variables);
      get_variables(lp, solution.values.data());
      break;
    case INFEASIBLE:
      solution.outcome = GeneralOutcome::kInfeasible;
      break;
    case UNBOUNDED:
      solution.outcome = GeneralOutcome::kUnbounded;
      break;
    default:
      break;
  }
  return solution;
}

}  // namespace fusion
