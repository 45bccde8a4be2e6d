// Building the code of all candidates.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/codegen/program.h"
#include "server/model/architecture.h"
#include "server/service/job_stages.h"

namespace fusion {
namespace {

// Enough of a compiler's log to see what is wrong.
std::string Excerpt(const std::string& log) {
  constexpr size_t kMost = 2000;
  return log.size() <= kMost ? log : log.substr(0, kMost) + "...";
}

}  // namespace

absl::StatusOr<BuiltCode> BuildCode(GeneratedCode* code, const PipelineContext& context) {
  auto emit = [&](int done, int total, int reused, int failed) {
    v1::JobEvent event;
    v1::BuildProgress* progress = event.mutable_build();
    progress->set_done(done);
    progress->set_total(total);
    progress->set_reused(reused);
    progress->set_failed(failed);
    if (context.emit) context.emit(std::move(event));
  };
  auto outcomes = context.dispatcher.Build(context.job, code->library->BuildTasks(), context.cancellation, emit);
  if (!outcomes.ok()) return outcomes.status();
  BuiltCode built;
  std::map<const CodeUnit*, const v1::BuildResult*> failed;
  for (size_t i = 0; i < outcomes->size(); ++i) {
    const CodeUnit* unit = code->library->units()[i].get();
    ++built.builds;
    if ((*outcomes)[i].reused) ++built.reused;
    const v1::BuildResult& result = (*outcomes)[i].result;
    if (result.outcome() == v1::OK)
      built.binaries[unit] = result.binary();
    else
      failed[unit] = &result;
  }
  auto first_failed = [&](const std::vector<const CodeUnit*>& units) -> const CodeUnit* {
    for (const CodeUnit* unit : units)
      if (failed.count(unit)) return unit;
    return nullptr;
  };
  auto not_built = [&](const char* what, const CodeUnit* unit) {
    const v1::BuildResult& result = *failed.at(unit);
    return absl::FailedPreconditionError(absl::StrCat(unit->code.launches.front().kernel.name, ", ", what,
                                                      ", was not built (", v1::Outcome_Name(result.outcome()), "):\n",
                                                      Excerpt(result.log())));
  };
  if (const CodeUnit* unit = first_failed(code->reference)) return not_built("part of the f64 reference", unit);
  const CodeUnit* unfused_failed = first_failed(code->unfused.front());
  std::erase_if(code->unfused, [&](const auto& units) { return first_failed(units) != nullptr; });
  if (code->unfused.empty()) return not_built("an unfused kernel", unfused_failed);
  for (PlannedCandidate& planned : code->candidates)
    if (const CodeUnit* unit = first_failed(planned.units)) {
      planned.candidate.set_outcome(failed.at(unit)->outcome());
      planned.candidate.set_message(
          absl::StrCat(unit->code.launches.front().kernel.name, ": ", Excerpt(failed.at(unit)->log())));
    }
  return built;
}

v1::Program ProgramOfUnits(const Submission& submission, const DeviceDescription& device, const BuiltCode& built,
                           const std::vector<const CodeUnit*>& units, const std::string& name, bool force_f64) {
  std::vector<CompiledFusion> fusions;
  for (const CodeUnit* unit : units) fusions.push_back({&unit->code, built.binaries.at(unit)});
  return BuildProgram(*submission.graph, submission.sizes, fusions,
                      {.name = name,
                       .multiprocessors = std::max(1, device.multiprocessors()),
                       .force_f64 = force_f64,
                       .programmatic = ComputeCapability(device) >= 90});
}

}  // namespace fusion
