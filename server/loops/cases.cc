#include "server/loops/cases.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/loops/check.h"
#include "server/loops/footprint.h"
#include "server/loops/mapping.h"
#include "server/loops/metafork.h"
#include "server/loops/nest.h"
#include "server/loops/result_scalars.h"

namespace fusion {
namespace {

using Strategies = std::vector<Strategy>;

// Looks for them once for each counter.
void AppendSearch(Strategies* strategies) {
  strategies->insert(strategies->end(), 2, Strategy::kCommonSubexpressions);
}

// Grows the tree over two counters. First the registers of a thread fit: accept them. Or they do not: look
// for common subexpressions, once for each counter, reduce the granularity, accept what is left. Then the
// words of a block fit: cache. Or they do not: reduce the granularity, if that was not done yet, and look
// again; else do not cache. Common subexpressions are looked for on every path.
class Tree {
 public:
  Tree(const CaseDiscussion& discussion, const CRegisters& registers)
      : discussion_(discussion), registers_(registers) {}

  std::vector<KernelCase> Grow() {
    const bool granular = !discussion_.granularity.empty();
    KernelCase accepted{.strategies = {Strategy::kAcceptRegisters},
                        .words = {},
                        .least_registers = registers_.granular,
                        .granular = granular};
    Cache(std::move(accepted), granular, false);
    if (!granular || registers_.single >= registers_.granular) return std::move(cases_);
    KernelCase reduced{.strategies = {},
                       .words = {},
                       .least_registers = registers_.single,
                       .below_registers = registers_.granular,
                       .granular = false};
    AppendSearch(&reduced.strategies);
    reduced.strategies.insert(reduced.strategies.end(),
                              {Strategy::kReduceGranularity, Strategy::kAcceptRegisters});
    Cache(std::move(reduced), false, true);
    return std::move(cases_);
  }

 private:
  void Cache(KernelCase path, bool reducible, bool searched) {
    const Polynomial& words = path.granular ? discussion_.granular_words : discussion_.single_words;
    KernelCase fits = path;
    fits.strategies.insert(fits.strategies.end(), {Strategy::kCache, Strategy::kKeepGranularity});
    if (!searched) AppendSearch(&fits.strategies);
    fits.words.push_back({words, true});
    cases_.push_back(std::move(fits));
    path.words.push_back({words, false});
    if (reducible) {
      path.strategies.push_back(Strategy::kReduceGranularity);
      path.granular = false;
      Cache(std::move(path), false, searched);
      return;
    }
    // With a larger granularity it did not fit either, which this says already.
    path.words = {path.words.back()};
    if (!searched) AppendSearch(&path.strategies);
    path.strategies.push_back(Strategy::kRefuseCaching);
    path.cached = false;
    cases_.push_back(std::move(path));
  }

  const CaseDiscussion& discussion_;
  const CRegisters registers_;
  std::vector<KernelCase> cases_;
};

}  // namespace

const char* StrategyName(Strategy strategy) {
  switch (strategy) {
    case Strategy::kAcceptRegisters:
      return "(1)";
    case Strategy::kCommonSubexpressions:
      return "(2)";
    case Strategy::kKeepGranularity:
      return "(3a)";
    case Strategy::kReduceGranularity:
      return "(3b)";
    case Strategy::kCache:
      return "(4a)";
    case Strategy::kRefuseCaching:
      return "(4b)";
  }
  return "";
}

absl::StatusOr<std::vector<CaseDiscussion>> DiscussCases(absl::string_view text, const std::string& file_name,
                                                         const std::vector<CRegisters>& registers) {
  FUSION_ASSIGN_OR_RETURN(CheckedProgram checked, CheckLoops(text, file_name));
  checked = WithResultsInArrays(std::move(checked));
  ErrorList errors(file_name);
  const MappedLoops mapped = MapLoops(checked, {}, &errors);
  std::vector<CaseDiscussion> discussions;
  size_t number = 0;
  for (const CRegion& region : mapped.program.regions) {
    const std::unique_ptr<const Nest> nest = BuildNest(mapped.program, region, &errors);
    const std::vector<const CStatement*> statements = LoopsOf(*region.statement);
    for (const KernelLoops& kernel : KernelsOf(*nest)) {
      const NestLoop& root = nest->loops[kernel.root];
      const CRegisters* const given = region.registers            ? &*region.registers
                                      : number < registers.size() ? &registers[number]
                                                                  : nullptr;
      ++number;
      if (root.highs == std::vector<Polynomial>{Polynomial(0)}) continue;  // one thread does it
      if (given == nullptr) {
        errors.Add({root.position},
                   "registers are not known: say \"#pragma fusion registers WITH ONE\" before these loops, "
                   "for threads of the granularity in the text and for threads of one entry");
        continue;
      }
      CaseDiscussion discussion;
      discussion.kernel = absl::StrCat(root.counter, " at ", root.position.line, ":", root.position.column);
      discussion.granularity = kernel.granularity;
      for (const CParameter& parameter : mapped.program.parameters)
        discussion.parameters.push_back(parameter.name);
      Footprint footprint = FootprintOf(*nest, kernel, false);
      discussion.cached = std::move(footprint.arrays);
      discussion.granular_words = footprint.words;
      discussion.single_words = FootprintOf(*nest, kernel, true).words;
      discussion.threads = Polynomial(1);
      for (size_t i = kernel.metas.size() / 2; i < kernel.metas.size(); ++i) {
        const std::vector<Polynomial>& highs = nest->loops[kernel.metas[i]].highs;
        discussion.threads = discussion.threads * (highs.size() == 1 ? highs[0] + 1 : Polynomial::Inexact());
      }
      if (!discussion.granular_words.exact() || !discussion.single_words.exact()) {
        errors.Add({root.position},
                   "the words that a block touches are no polynomial, so there is nothing to discuss");
        continue;
      }
      discussion.cases = Tree(discussion, *given).Grow();
      for (KernelCase& one : discussion.cases)
        one.code = KernelText(mapped.program, region, *statements[kernel.root],
                              one.cached ? discussion.cached : std::vector<std::string>(),
                              one.granular ? "" : discussion.granularity);
      discussions.push_back(std::move(discussion));
    }
  }
  if (!errors.empty()) return errors.ToStatus();
  if (discussions.empty())
    return absl::NotFoundError(absl::StrCat(file_name, ": no loops are parallel, so there are no kernels"));
  return discussions;
}

bool GivesRegisters(const CProgram& program) {
  return std::all_of(program.regions.begin(), program.regions.end(),
                     [](const CRegion& region) { return region.registers.has_value(); });
}

std::string ConstraintsText(const KernelCase& one, const std::vector<std::string>& parameters) {
  std::vector<std::string> parts;
  std::string fits, exceeds;
  for (const WordsBound& bound : one.words) (bound.fits ? fits : exceeds) = bound.words.ToString(parameters);
  if (!fits.empty() && !exceeds.empty()) {
    parts.push_back(absl::StrCat(fits, " <= Z_B < ", exceeds));
  } else {
    parts.push_back(fits.empty() ? absl::StrCat("Z_B < ", exceeds) : absl::StrCat(fits, " <= Z_B"));
  }
  std::string registers = absl::StrCat(one.least_registers, " <= R_B");
  if (one.below_registers > 0) absl::StrAppend(&registers, " < ", one.below_registers);
  parts.push_back(std::move(registers));
  return absl::StrJoin(parts, ", ");
}

bool Holds(const KernelCase& one, const std::map<std::string, int64_t>& values, int64_t words,
           int64_t registers) {
  if (registers < one.least_registers || (one.below_registers > 0 && registers >= one.below_registers))
    return false;
  return std::all_of(one.words.begin(), one.words.end(), [&](const WordsBound& bound) {
    const std::optional<int64_t> needed = bound.words.Evaluate(values);
    return needed.has_value() && (*needed <= words) == bound.fits;
  });
}

}  // namespace fusion
