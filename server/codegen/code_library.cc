#include "server/codegen/code_library.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/program.h"
#include "server/codegen/source.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"

namespace fusion {

std::string BuildKey(const v1::BuildTask& task, const std::string& compiler_version) {
  std::string text;
  auto add = [&](const std::string& field) { absl::StrAppend(&text, field.size(), ":", field); };
  add(task.source());
  add(v1::Target_Name(task.target()));
  add(task.arch());
  for (const std::string& option : task.options()) add(option);
  add(compiler_version);
  return "sha256:" + Sha256Hex(text);
}

v1::BuildTask BuildOf(std::string source, const v1::DeviceDescription& device) {
  v1::BuildTask build;
  build.set_target(device.target());
  build.set_arch(device.arch());
  build.set_source(std::move(source));
  build.set_deadline_seconds(120);
  build.set_key(BuildKey(build, device.toolkit_version()));
  return build;
}

namespace {

// Comments are left out: they call values and functions' parameters by names of the graph.
std::string NumberIdentifiers(absl::string_view source) {
  std::string text;
  absl::flat_hash_map<absl::string_view, int> numbers;
  for (size_t begin = 0; begin < source.size();) {
    if (absl::StartsWith(source.substr(begin), "//")) {
      begin = std::min(source.find('\n', begin), source.size());
      continue;
    }
    size_t end = begin;
    while (end < source.size() && (absl::ascii_isalnum(source[end]) || source[end] == '_')) ++end;
    const absl::string_view word = source.substr(begin, end - begin);
    if (word.empty()) {
      text += source[begin++];
      continue;
    }
    if (absl::ascii_isdigit(word[0]))
      absl::StrAppend(&text, word);
    else
      absl::StrAppend(&text, "$", numbers.try_emplace(word, static_cast<int>(numbers.size())).first->second);
    begin = end;
  }
  return text;
}

// A compiler has done so many in seconds.
constexpr size_t kTogetherInABuild = 32;

// Returns how the kernels are launched, which their source does not say.
std::string LaunchText(const FusionCode& code) {
  std::string text;
  const auto add = [&](const auto&... values) { absl::StrAppend(&text, values..., " "); };
  const auto extent = [&](const Extent& e) { add(e.name.size(), ":", e.name, "=", e.constant); };
  for (const KernelLaunch& launch : code.launches) {
    const GridRule& grid = launch.grid;
    add("launch ", launch.kernel.name, " ", launch.kernel.threads, " grid ", grid.items_per_block);
    add(grid.blocks_per_multiprocessor, " ", grid.groups_per_block, " ", grid.cluster_blocks, " ",
        grid.part_entries);
    extent(grid.parts);
    for (const Extent& e : grid.extents) extent(e);
    for (const SharedRule& shared : launch.shared) {
      add("shared ", shared.fixed_bytes, " ", shared.bytes_per_entry);
      extent(shared.extent);
    }
  }
  for (const WorkspaceSlot& slot : code.workspace) {
    add("slot ", slot.entry_bytes, " ", slot.launch, " ", slot.per_group);
    if (slot.per_part) add("parts");
    extent(slot.extent);
  }
  return text;
}

}  // namespace

std::string NamelessBuildKey(const v1::BuildTask& task, const std::string& compiler_version) {
  v1::BuildTask nameless = task;
  nameless.set_source(NumberIdentifiers(task.source()));
  return BuildKey(nameless, compiler_version);
}

CodeLibrary::CodeLibrary(const Graph& graph, const SizeValues& sizes, const v1::DeviceDescription& device,
                         std::optional<bool> simt)
    : graph_(graph), sizes_(sizes), device_(device), simt_(simt.value_or(TargetOf(device.target()).simt())) {}

absl::StatusOr<FusionCode> CodeLibrary::Lower(const FusionImplementation& implementation,
                                              bool force_f64) const {
  return LowerFusion(graph_, implementation, {.force_f64 = force_f64, .simt = simt_});
}

const CodeUnit* CodeLibrary::Keep(FusionCode code, std::string source, v1::BuildTask build) {
  auto unit = std::make_unique<CodeUnit>();
  unit->code = std::move(code);
  unit->source = std::move(source);
  unit->build = std::move(build);
  unit->key = "sha256:" + Sha256Hex(absl::StrCat(unit->build.key(), "\n", LaunchText(unit->code)));
  auto [it, inserted] = by_key_.emplace(unit->key, unit.get());
  if (inserted) units_.push_back(std::move(unit));
  return it->second;
}

absl::StatusOr<const CodeUnit*> CodeLibrary::Add(const FusionImplementation& implementation, bool force_f64) {
  FUSION_ASSIGN_OR_RETURN(FusionCode code, Lower(implementation, force_f64));
  std::string source = PrintSource(code, TargetOf(device_.target()), true, &sizes_);
  v1::BuildTask build = BuildOf(source, device_);
  return Keep(std::move(code), std::move(source), std::move(build));
}

absl::StatusOr<std::vector<const CodeUnit*>> CodeLibrary::AddTogether(
    const std::vector<FusionImplementation>& implementations, bool force_f64) {
  const Target& target = TargetOf(device_.target());
  std::vector<FusionCode> codes;
  for (const FusionImplementation& implementation : implementations) {
    FUSION_ASSIGN_OR_RETURN(FusionCode code, Lower(implementation, force_f64));
    codes.push_back(std::move(code));
  }
  NumberEqualNames(&codes);
  std::vector<const CodeUnit*> units;
  for (size_t first = 0; first < codes.size(); first += kTogetherInABuild) {
    const size_t end = std::min(codes.size(), first + kTogetherInABuild);
    FusionCode all;
    for (size_t i = first; i < end; ++i) {
      all.launches.insert(all.launches.end(), codes[i].launches.begin(), codes[i].launches.end());
      all.functions.insert(all.functions.end(), codes[i].functions.begin(), codes[i].functions.end());
    }
    // Sorted as those of one fusion are, each once.
    std::sort(all.functions.begin(), all.functions.end(),
              [](const ElementaryFunction* a, const ElementaryFunction* b) { return a->name < b->name; });
    all.functions.erase(std::unique(all.functions.begin(), all.functions.end()), all.functions.end());
    const v1::BuildTask build = BuildOf(PrintSource(all, target, true, &sizes_), device_);
    for (size_t i = first; i < end; ++i) {
      std::string source = PrintSource(codes[i], target, true, &sizes_);
      units.push_back(Keep(std::move(codes[i]), std::move(source), build));
    }
  }
  return units;
}

v1::Program CodeLibrary::ProgramOf(const std::vector<const CodeUnit*>& units, const std::string& name,
                                   bool force_f64) const {
  std::vector<CompiledFusion> fusions;
  for (const CodeUnit* unit : units) fusions.push_back({&unit->code, unit->build.key()});
  return BuildProgram(graph_, sizes_, fusions,
                      {.name = name,
                       .multiprocessors = std::max(1, device_.multiprocessors()),
                       .force_f64 = force_f64,
                       .programmatic = TargetOf(device_.target()).Features(device_).overlapping_launches});
}

}  // namespace fusion
