// Building the code of all candidates.
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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
  for (const auto* units : {&code->reference, &code->unfused})
    for (const CodeUnit* unit : *units)
      if (auto it = failed.find(unit); it != failed.end())
        return absl::FailedPreconditionError(absl::StrCat(
            unit->code.launches.front().kernel.name, ", one of the unfused kernels, was not built (",
            v1::Outcome_Name(it->second->outcome()), "):\n", Excerpt(it->second->log())));
  for (PlannedCandidate& planned : code->candidates)
    for (const CodeUnit* unit : planned.units)
      if (auto it = failed.find(unit); it != failed.end()) {
        planned.candidate.set_outcome(it->second->outcome());
        planned.candidate.set_message(
            absl::StrCat(unit->code.launches.front().kernel.name, ": ", Excerpt(it->second->log())));
        break;
      }
  return built;
}

}  // namespace fusion
