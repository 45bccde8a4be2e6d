#include "server/linear/partition_program.h"

#include <utility>

#include "server/linear/stop_at.h"

namespace fusion {
namespace {

// Ascending numbers, from `first`, each once, with how often it is there.
void AppendCounted(const std::vector<int>& numbers, int first, std::vector<int>* indices,
                   std::vector<REAL>* values) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && numbers[i] == numbers[i - 1]) {
      values->back() += 1;
      continue;
    }
    indices->push_back(numbers[i] + first);
    values->push_back(1);
  }
}

int AppendText(void* text, char* part) {
  static_cast<std::string*>(text)->append(part);
  return 0;
}

}  // namespace

struct LinearProgram::Model {
  lprec* lp;
};

LinearProgram::LinearProgram(int rows, int columns, AnswerFilter filter)
    : model_(new Model{make_lp(rows, 0)}), filter_(std::move(filter)), rows_(rows) {
  lprec* lp = model_->lp;
  resize_lp(lp, rows, columns);
  set_verbose(lp, NEUTRAL);
  set_minim(lp);
  // Rows and columns hold ones, and the costs come scaled.
  set_scaling(lp, 0);
  set_presolve(lp, PRESOLVE_NONE, 0);
  // From the last basis new sums are reached by the dual simplex and new variables by the primal one: on one
  // random graph of 300 nodes all rounds of new variables took 0.13 s together, and 0.77 s from the beginning
  // each time.
  set_simplextype(lp, SIMPLEX_DUAL_PRIMAL);
  for (int row = 1; row <= rows; ++row) {
    set_constr_type(lp, row, EQ);
    set_rh(lp, row, 1);
  }
}

LinearProgram::~LinearProgram() {
  delete_lp(model_->lp);
  delete model_;
}

void LinearProgram::AddVariable(double cost, const std::vector<int>& rows, const std::vector<int>& sums) {
  std::vector<int> indices = {0};  // of the objective
  std::vector<REAL> values = {cost};
  AppendCounted(rows, 1, &indices, &values);
  AppendCounted(sums, rows_ + 1, &indices, &values);
  add_columnex(model_->lp, static_cast<int>(indices.size()), values.data(), indices.data());
}

void LinearProgram::AddAtMost(const std::vector<int>& variables, int limit) {
  std::vector<int> columns;
  std::vector<REAL> values;
  columns.reserve(variables.size() + 1);  // lp_solve reads the addresses of empty ones too
  values.reserve(variables.size() + 1);
  AppendCounted(variables, 1, &columns, &values);
  add_constraintex(model_->lp, static_cast<int>(columns.size()), values.data(), columns.data(), LE, limit);
}

void LinearProgram::SetClosed(int variable, bool closed) {
  set_upbo(model_->lp, variable + 1, closed ? 0 : get_infinite(model_->lp));
}

void LinearProgram::SetNames(const std::vector<std::string>& rows,
                             const std::vector<std::string>& variables) {
  for (size_t i = 0; i < rows.size(); ++i)
    set_row_name(model_->lp, static_cast<int>(i) + 1, const_cast<char*>(rows[i].c_str()));
  for (size_t i = 0; i < variables.size(); ++i)
    set_col_name(model_->lp, static_cast<int>(i) + 1, const_cast<char*>(variables[i].c_str()));
}

EngineAnswer LinearProgram::CallSolve() {
  lprec* lp = model_->lp;
  EngineAnswer answer{.status = solve(lp)};
  if (answer.status == OPTIMAL) {
    answer.values.resize(get_Ncolumns(lp));
    get_variables(lp, answer.values.data());
    std::vector<REAL> duals(1 + get_Nrows(lp) + get_Ncolumns(lp));  // objective, rows, columns
    if (get_dual_solution(lp, duals.data()))
      answer.row_prices.assign(duals.begin() + 1, duals.begin() + 1 + get_Nrows(lp));
  }
  if (filter_) filter_(answer);
  return answer;
}

ProgramSolution LinearProgram::Solve(Deadline deadline) {
  lprec* lp = model_->lp;
  ProgramSolution solution;
  if (std::chrono::steady_clock::now() >= deadline) {
    solution.outcome = ProgramOutcome::kOutOfTime;
    return solution;
  }
  if (!continues_) default_basis(lp);
  StopAt(&deadline, lp);
  EngineAnswer answer = CallSolve();
  if (continues_ && answer.status != OPTIMAL && answer.status != USERABORT && answer.status != TIMEOUT) {
    default_basis(lp);
    answer = CallSolve();
  }
  put_abortfunc(lp, nullptr, nullptr);
  continues_ = answer.status == OPTIMAL;
  switch (answer.status) {
    case OPTIMAL:
      solution.outcome = ProgramOutcome::kOptimal;
      break;
    case INFEASIBLE:
      solution.outcome = ProgramOutcome::kInfeasible;
      break;
    case SUBOPTIMAL:
    case USERABORT:
    case TIMEOUT:
      solution.outcome = ProgramOutcome::kOutOfTime;
      break;
    default:
      solution.outcome = ProgramOutcome::kFailed;
  }
  if (solution.outcome != ProgramOutcome::kOptimal) return solution;
  solution.values = std::move(answer.values);
  solution.row_prices = std::move(answer.row_prices);
  return solution;
}

LinearProgram::Basis LinearProgram::LastBasis() const {
  if (!continues_) return {};
  const int rows = get_Nrows(model_->lp);
  std::vector<int> indices(1 + rows);  // rows from 1, then variables; the sign says at which bound
  if (!get_basis(model_->lp, indices.data(), FALSE)) return {};
  Basis basis;
  for (int i = 1; i <= rows; ++i) {
    const int index = std::abs(indices[i]);
    basis.push_back(index <= rows ? ~(index - 1) : index - rows - 1);
  }
  return basis;
}

void LinearProgram::GoOnFrom(const Basis& basis) {
  if (basis.empty()) return;
  const int rows = get_Nrows(model_->lp);
  std::vector<int> indices(1 + rows);
  for (int i = 0; i < rows; ++i) {
    const int entry = i < static_cast<int>(basis.size()) ? basis[i] : ~i;
    indices[1 + i] = -(entry < 0 ? ~entry + 1 : rows + 1 + entry);
  }
  continues_ = set_basis(model_->lp, indices.data(), FALSE);
}

std::string LinearProgram::Text() const {
  std::string text;
  for (int column = 1; column <= get_Ncolumns(model_->lp); ++column) set_binary(model_->lp, column, TRUE);
  write_lpex(model_->lp, &text, AppendText);
  for (int column = 1; column <= get_Ncolumns(model_->lp); ++column) {
    set_int(model_->lp, column, FALSE);
    set_upbo(model_->lp, column, get_infinite(model_->lp));
  }
  return text;
}

}  // namespace fusion
