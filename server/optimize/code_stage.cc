#include "server/optimize/code_stage.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/source.h"
#include "server/codegen/verification.h"
#include "server/skeletons/skeletons.h"

namespace fusion {

namespace {

void AddBuilds(const std::vector<const CodeUnit*>& units, v1::CandidateSet* set) {
  for (const CodeUnit* unit : units) set->mutable_builds()->insert({unit->build.key(), unit->build});
}

}  // namespace

absl::StatusOr<CoverCode> GenerateCover(const Submission& submission, const CostModel& model,
                                        const SearchSpace& space, const CoverSolution& cover,
                                        int predicted_rank, CodeLibrary& library) {
  CoverCode code;
  v1::Candidate* description = code.candidate.mutable_description();
  *description = DescribeCover(*submission.graph, space, cover, predicted_rank);
  std::string keys;
  for (int member : cover.columns) {
    const FusionImplementation& implementation = space.implementations[member];
    FUSION_ASSIGN_OR_RETURN(auto unit, library.Add(implementation, false));
    code.units.push_back(unit);
    absl::StrAppend(&keys, unit->key, "\n");
    for (const KernelLaunch& launch : unit->code.launches) {
      v1::KernelSummary* kernel = description->add_kernels();
      kernel->set_name(LaunchedName(launch, LaunchesWhole(launch, submission.sizes)));
      kernel->set_skeleton(implementation.skeleton->name());
      kernel->set_threads(launch.kernel.threads);
      kernel->set_blocks(GridBlocks(launch.grid, submission.sizes, model.device().multiprocessors()));
      kernel->set_shared_bytes(SharedBytes(launch.shared, submission.sizes));
      if (NeedsAlignment(launch, submission.sizes)) code.candidate.set_pointer_alignment(kPointerAlignment);
    }
  }
  description->set_key("sha256:" + Sha256Hex(keys));
  *code.candidate.mutable_program() = library.ProgramOf(code.units, description->key(), false);
  return code;
}

void AddCandidate(CoverCode cover, GeneratedCode* code) {
  AddBuilds(cover.units, &code->set);
  code->units.push_back(std::move(cover.units));
  *code->set.add_candidates() = std::move(cover.candidate);
}

absl::StatusOr<GeneratedCode> GenerateCode(const Submission& submission, const CostModel& model,
                                           const Plans& plans) {
  const Graph& graph = *submission.graph;
  GeneratedCode code;
  code.library = std::make_unique<CodeLibrary>(graph, submission.sizes, model.device());
  v1::CandidateSet& set = code.set;
  set.set_name(graph.name());
  set.set_hash(submission.summary.hash());
  set.mutable_sizes()->insert(submission.sizes.begin(), submission.sizes.end());
  set.set_library_hash(graph.catalog().hash());
  *set.mutable_session() = MakeSession(graph, submission.sizes, TolerancesOf(submission));
  // There are many nodes, and the code of each by itself takes the host's compiler a third of a second.
  const bool together = !TargetOf(model.device().target()).profile().measuring().quick_rounds();
  const auto add = [&](const std::vector<FusionImplementation>& implementations,
                       bool force_f64) -> absl::StatusOr<std::vector<const CodeUnit*>> {
    if (together) return code.library->AddTogether(implementations, force_f64);
    std::vector<const CodeUnit*> units;
    for (const FusionImplementation& implementation : implementations) {
      FUSION_ASSIGN_OR_RETURN(const CodeUnit* unit, code.library->Add(implementation, force_f64));
      units.push_back(unit);
    }
    return units;
  };
  std::vector<FusionImplementation> nodes;
  for (const Node& node : graph.nodes())
    nodes.push_back(ReferenceImplementation(graph, node.id, submission.sizes, model));
  FUSION_ASSIGN_OR_RETURN(const std::vector<const CodeUnit*> reference, add(nodes, true));
  AddBuilds(reference, &set);
  *set.mutable_reference() = code.library->ProgramOf(reference, "reference", true);
  std::set<std::vector<const CodeUnit*>> unfused;
  for (const CoverSolution& cover : UnfusedCovers(plans.space)) {
    std::vector<FusionImplementation> members;
    for (int position : cover.columns) members.push_back(plans.space.implementations[position]);
    FUSION_ASSIGN_OR_RETURN(std::vector<const CodeUnit*> units, add(members, false));
    if (!unfused.insert(units).second) continue;
    AddBuilds(units, &set);
    *set.add_unfused() = code.library->ProgramOf(units, "unfused", false);
  }
  for (size_t i = 0; i < plans.covers.covers.size(); ++i) {
    FUSION_ASSIGN_OR_RETURN(auto cover, GenerateCover(submission, model, plans.space, plans.covers.covers[i],
                                                      static_cast<int>(i) + 1, *code.library));
    AddCandidate(std::move(cover), &code);
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

std::string PrintCandidateSource(const std::vector<const CodeUnit*>& units, v1::Target target) {
  std::string text;
  for (const CodeUnit* unit : units)
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
  for (int i = 0; i < code.set.candidates_size(); ++i)
    Dump(context, absl::StrFormat("candidate%03d.txt", i + 1),
         code.set.candidates(i).description().DebugString());
  Dump(context, "candidates.textproto", code.set.DebugString());
}

}  // namespace fusion
