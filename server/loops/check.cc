#include "server/loops/check.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/loops/parser.h"
#include "server/loops/statement_checks.h"

namespace fusion {
namespace {

const char* ClaimText(Claim claim) {
  switch (claim) {
    case Claim::kMetaFor:
      return "meta_for";
    case Claim::kOpenMp:
      return "the pragma";
    case Claim::kAsked:
    case Claim::kNone:
      break;
  }
  return "nothing";
}

}  // namespace

absl::StatusOr<CheckedProgram> CheckLoops(absl::string_view text, const std::string& file_name,
                                          const std::set<std::string>& sizes) {
  ErrorList errors(file_name);
  CheckedProgram checked{.program = ParseC(text, &errors), .nests = {}, .loops = {}};
  for (CRegion& region : checked.program.regions)
    for (CVariable& variable : region.scope)
      if (variable.constant && sizes.count(variable.name) > 0) {
        variable.constant.reset();
        variable.initial = nullptr;
        variable.type = CType::kInt;
      }
  if (checked.program.regions.size() > kMostRegions) {
    errors.Add({}, absl::StrCat("has ", checked.program.regions.size(), " marked loops; ", kMostRegions,
                                " are allowed"));
    return errors.ToStatus();
  }
  for (const CRegion& region : checked.program.regions) {
    const int before = errors.count();
    CheckStatements(region, &errors);
    std::unique_ptr<const Nest> nest = BuildNest(checked.program, region, &errors);
    if (nest->accesses.size() > kMostAccesses)
      errors.Add({region.statement->position},
                 absl::StrCat("these loops have ", nest->accesses.size(), " accesses to arrays; ",
                              kMostAccesses, " are allowed"));
    if (errors.count() > before) continue;
    const std::vector<const CStatement*> statements = LoopsOf(*region.statement);
    for (LoopVerdict& verdict : FindDependences(*nest)) {
      const NestLoop& loop = nest->loops[verdict.loop];
      if (const std::string changed = ChangedBound(*statements[verdict.loop]);
          !changed.empty() && verdict.verdict == Verdict::kIndependent) {
        verdict.verdict = Verdict::kUnknown;
        verdict.text = absl::StrCat(changed, ", which its range is said by and its iterations write");
        if (IsClaimed(loop.claim))
          errors.Add({loop.position},
                     absl::StrCat("the range of ", loop.counter, " is said by ", changed,
                                  ", which its iterations write, so ", ClaimText(loop.claim),
                                  " is wrong: keep the bound in a variable that nothing in the loop writes"));
      }
      if (IsClaimed(loop.claim) &&
          (verdict.verdict == Verdict::kCarried || verdict.verdict == Verdict::kReduction))
        errors.Add({verdict.position},
                   absl::StrCat("iterations of ", loop.counter, " share ", verdict.text, ", so ",
                                ClaimText(loop.claim), " at ", loop.position.line, ":", loop.position.column,
                                " is wrong: ", verdict.witness,
                                verdict.verdict == Verdict::kReduction
                                    ? "; what is only added up wants a reduction clause"
                                    : ""));
      checked.loops.push_back(
          {checked.nests.size(), loop.counter, loop.position, loop.claim, std::move(verdict)});
    }
    checked.nests.push_back(std::move(nest));
  }
  if (!errors.empty()) return errors.ToStatus();
  if (checked.program.regions.empty())
    return absl::NotFoundError(
        absl::StrCat(file_name,
                     ": no loops are marked: put \"#pragma fusion parametric\" before a loop, or use "
                     "meta_schedule or OpenMP"));
  return checked;
}

std::string LoopText(const CheckedLoop& loop, const std::string& file_name) {
  std::string text =
      absl::StrCat(file_name, ":", loop.position.line, ":", loop.position.column, ": ", loop.counter);
  switch (loop.verdict.verdict) {
    case Verdict::kIndependent:
      return absl::StrCat(text, " is parallel: proved",
                          loop.verdict.own.empty() ? ""
                                                   : absl::StrCat(", where each iteration has its own ",
                                                                  absl::StrJoin(loop.verdict.own, ", ")));
    case Verdict::kReduction:
      return absl::StrCat(text, " adds up ", loop.verdict.text, ": ", loop.verdict.witness);
    case Verdict::kCarried:
      return absl::StrCat(text, " is serial: its iterations share ", loop.verdict.text, ": ",
                          loop.verdict.witness);
    case Verdict::kUnknown:
      break;
  }
  return IsClaimed(loop.claim)
             ? absl::StrCat(text, " is parallel: ", ClaimText(loop.claim),
                            " says so; not proved, because of ", loop.verdict.text)
             : absl::StrCat(text, " is serial: not proved to be parallel, because of ", loop.verdict.text);
}

}  // namespace fusion
