#include "server/optimize/code_stage.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/source.h"
#include "server/skeletons/skeletons.h"

namespace fusion {

absl::StatusOr<PlannedCandidate> PlanCandidate(const Submission& submission, const CostModel& model,
                                               const SearchSpace& space, const CoverSolution& cover,
                                               int predicted_rank, CodeLibrary& library) {
  PlannedCandidate planned;
  planned.candidate = DescribeCover(*submission.graph, space, cover, predicted_rank);
  std::string keys;
  for (int member : cover.columns) {
    const FusionImplementation& implementation = space.implementations[member];
    FUSION_ASSIGN_OR_RETURN(auto unit, library.Add(implementation, false));
    planned.units.push_back(unit);
    absl::StrAppend(&keys, unit->key, "\n");
    for (const KernelLaunch& launch : unit->code.launches) {
      v1::KernelSummary* kernel = planned.candidate.add_kernels();
      kernel->set_name(LaunchedName(launch, LaunchesWhole(launch, submission.sizes)));
      kernel->set_skeleton(implementation.skeleton->name());
      kernel->set_threads(launch.kernel.threads);
      kernel->set_blocks(GridBlocks(launch.grid, submission.sizes, model.device().multiprocessors()));
      kernel->set_shared_bytes(SharedBytes(launch.shared, submission.sizes));
    }
  }
  planned.candidate.set_key("sha256:" + Sha256Hex(keys));
  return planned;
}

absl::StatusOr<GeneratedCode> GenerateCode(const Submission& submission, const CostModel& model,
                                           const Plans& plans) {
  const Graph& graph = *submission.graph;
  GeneratedCode code;
  code.library = std::make_unique<CodeLibrary>(graph, submission.sizes, model.device());
  for (const Node& node : graph.nodes()) {
    FUSION_ASSIGN_OR_RETURN(
        auto reference,
        code.library->Add(ReferenceImplementation(graph, node.id, submission.sizes, model), true));
    code.reference.push_back(reference);
  }
  for (const CoverSolution& cover : UnfusedCovers(plans.space)) {
    std::vector<const CodeUnit*> units;
    for (int position : cover.columns) {
      FUSION_ASSIGN_OR_RETURN(auto unit, code.library->Add(plans.space.implementations[position], false));
      units.push_back(unit);
    }
    if (std::find(code.unfused.begin(), code.unfused.end(), units) == code.unfused.end())
      code.unfused.push_back(std::move(units));
  }
  for (size_t i = 0; i < plans.covers.covers.size(); ++i) {
    FUSION_ASSIGN_OR_RETURN(auto planned,
                            PlanCandidate(submission, model, plans.space, plans.covers.covers[i],
                                          static_cast<int>(i) + 1, *code.library));
    code.candidates.push_back(std::move(planned));
  }
  return code;
}

void Dump(const PipelineContext& context, const std::string& file_name, const std::string& text) {
  if (context.dump_directory.empty()) return;
  const std::filesystem::path path = std::filesystem::path(context.dump_directory) / file_name;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) spdlog::warn("--dump-dir: {} cannot be written", path.string());
}

std::string PrintCandidateSource(const PlannedCandidate& candidate, v1::Target target) {
  std::string text;
  for (const CodeUnit* unit : candidate.units)
    absl::StrAppend(&text, PrintSource(unit->code, TargetOf(target), false), "\n");
  return text;
}

void DumpCode(const PipelineContext& context, const GeneratedCode& code) {
  if (context.dump_directory.empty()) return;
  int number = 0;
  for (const auto& unit : code.library->units()) {
    std::string ir;
    for (const KernelLaunch& launch : unit->code.launches) ir += ir::ToString(launch.kernel);
    const std::string name = absl::StrFormat("unit%03d", number++);
    Dump(context, name + ".ir", ir);
    Dump(context, name + "." + TargetOf(unit->build.target()).suffix(), unit->source);
  }
  for (size_t i = 0; i < code.candidates.size(); ++i)
    Dump(context, absl::StrFormat("candidate%03d.txt", i + 1), code.candidates[i].candidate.DebugString());
}

}  // namespace fusion
