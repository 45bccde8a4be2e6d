#include "server/loops/logarithmic_program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

std::string Sum(const std::vector<std::pair<int, double>>& terms, const std::vector<std::string>& names) {
  return absl::StrJoin(terms, " + ", [&](std::string* out, const std::pair<int, double>& term) {
    if (term.second != 1) absl::StrAppendFormat(out, "%g ", term.second);
    out->append(names[term.first]);
  });
}

}  // namespace

std::optional<LogarithmicProgram> LogarithmicProgramOf(const CaseDiscussion& discussion, int64_t words) {
  LogarithmicProgram result;
  // In the order of the text.
  for (const std::string& parameter : discussion.parameters)
    if (discussion.granular_words.Has(parameter) || discussion.threads.Has(parameter))
      result.names.push_back(parameter);
  const auto row = [&](const Monomial& monomial, Relation relation, double right) {
    LinearRow made{.terms = {}, .relation = relation, .right = right};
    for (const auto& [symbol, power] : monomial) {
      const auto at = std::find(result.names.begin(), result.names.end(), symbol);
      if (at == result.names.end()) return false;
      made.terms.emplace_back(static_cast<int>(at - result.names.begin()), power);
    }
    std::sort(made.terms.begin(), made.terms.end());
    result.program.rows.push_back(std::move(made));
    return true;
  };
  if (!discussion.granular_words.exact() || !discussion.threads.exact()) return std::nullopt;
  const auto& terms = discussion.granular_words.terms();
  const auto count = static_cast<double>(terms.size());
  for (const auto& [monomial, coefficient] : terms) {
    if (coefficient <= 0) return std::nullopt;
    if (monomial.empty()) continue;  // a constant is small beside the others
    if (!row(monomial, Relation::kAtMost,
             std::log2(static_cast<double>(words) / count / static_cast<double>(coefficient))))
      return std::nullopt;
  }
  const auto& threads = discussion.threads.terms();
  if (threads.size() != 1 || threads.begin()->second != 1 || threads.begin()->first.empty())
    return std::nullopt;
  if (!row(threads.begin()->first, Relation::kAtLeast, 5) ||
      !row(threads.begin()->first, Relation::kAtMost, 10))
    return std::nullopt;
  result.program.objective.assign(result.names.size(), 1);
  return result;
}

std::string LogarithmicText(const LogarithmicProgram& program, const GeneralSolution& solution) {
  std::string text = absl::StrCat("maximise ", absl::StrJoin(program.names, " + "),
                                  ", where each is a logarithm to the base 2\n");
  for (const LinearRow& row : program.program.rows)
    absl::StrAppend(&text, "  ", Sum(row.terms, program.names),
                    row.relation == Relation::kAtMost ? " <= " : " >= ", absl::StrFormat("%.4g", row.right),
                    "\n");
  if (solution.outcome != GeneralOutcome::kOptimal) return absl::StrCat(text, "no optimum\n");
  absl::StrAppend(&text, absl::StrFormat("optimum %.4g:", solution.objective));
  for (size_t i = 0; i < program.names.size(); ++i)
    absl::StrAppendFormat(&text, " %s = 2^%.4g", program.names[i], solution.values[i]);
  return text + "\n";
}

}  // namespace fusion
