#include "tests/mutation/exported_examples.h"

#include <stdlib.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/codegen/exported_folder.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/verification.h"
#include "server/target/target.h"
#include "tests/integration/exported_folder_build.h"

namespace fusion::testing {
namespace {

constexpr char kIncludes[] = "#include \"fusion_device.h\"\n";

std::string Quoted(const std::string& path) { return absl::StrCat("'", path, "'"); }

}  // namespace

ExportedExamples::~ExportedExamples() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

v1::Artifact ExportedExamples::Export(const FusionCode& of_subject) const {
  ExportRequest request{.target = TargetOf(device_.target()),
                        .arch = device_.arch(),
                        .sizes = subject_.sizes,
                        .tolerances = OutputTolerances(*subject_.graph, subject_.sizes)};
  for (size_t i = 0; i < fusions_.size(); ++i)
    request.fusions.push_back(i == of_subject_ ? &of_subject : &fusions_[i]);
  for (const FusionCode& code : reference_) request.reference.push_back(&code);
  return ExportFolder(*subject_.graph, request);
}

std::string ExportedExamples::Compiler() const {
  return cuda() ? absl::StrCat("nvcc -w -O1 -std=c++17 -arch=", device_.arch())
                : "g++ -w -O1 -fopenmp -std=c++17";
}

absl::StatusOr<std::unique_ptr<ExportedExamples>> ExportedExamples::Create(
    const Subject& subject, const v1::DeviceDescription& device, const std::vector<const FusionCode*>& order,
    const std::vector<FusionCode>& reference) {
  auto examples = std::unique_ptr<ExportedExamples>(new ExportedExamples(subject, device));
  // The subject's kernels keep their names, by which mutations find them.
  std::vector<FusionCode> numbered = {subject.code};
  for (const FusionCode* code : order)
    if (code != &subject.code) numbered.push_back(*code);
  NumberEqualNames(&numbered);
  size_t next = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] == &subject.code) examples->of_subject_ = i;
    examples->fusions_.push_back(numbered[order[i] == &subject.code ? 0 : next++]);
  }
  examples->reference_ = reference;
  NumberEqualNames(&examples->reference_);
  std::string pattern = (std::filesystem::temp_directory_path() / "fusion-mutants-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return absl::InternalError("no folder for exported examples");
  examples->folder_ = pattern;
  const v1::Artifact folder = examples->Export(subject.code);
  for (const v1::ArtifactFile& file : folder.files())
    std::ofstream(absl::StrCat(pattern, "/", file.path())) << file.content();
  const std::string suffix = examples->cuda() ? "cu" : "cc";
  const CommandResult compiled = RunCommand(
      absl::StrCat("cd ", Quoted(pattern), " && ", examples->Compiler(), " -c example.", suffix,
                   " && g++ -w -O1 -fopenmp -std=c++17 -c reference.cc && ", examples->Compiler(), " fused.",
                   suffix, " example.o reference.o ", examples->cuda() ? "-lgomp " : "", "-o original"));
  if (compiled.exit_code != 0) return absl::InternalError(compiled.output);
  const CommandResult ran =
      RunCommand(absl::StrCat("OMP_NUM_THREADS=2 timeout 120 ", Quoted(pattern), "/original --once"));
  if (ran.exit_code != 0)
    return absl::InternalError(absl::StrCat("the example of the original fails: ", ran.output));
  return examples;
}

std::string ExportedExamples::Source(MutableCode mutant) const {
  const auto print = [&](const ir::Kernel& kernel) { return TargetOf(device_.target()).Print(kernel); };
  std::string source;
  const v1::Artifact folder = Export(mutant.code);
  for (const v1::ArtifactFile& file : folder.files())
    if (file.path() == absl::StrCat("fused.", TargetOf(device_.target()).suffix())) source = file.content();
  for (const ElementaryFunction* function : mutant.code.functions)
    absl::StrReplaceAll({{absl::StrCat("\n// ", function->name, "\n", function->source), ""}}, &source);
  if (mutant.change_text)
    for (const KernelLaunch& launch : mutant.code.launches)
      for (const ir::Kernel& kernel : LaunchableKernels(launch)) {
        const std::string printed = print(kernel);
        absl::StrReplaceAll({{printed, mutant.change_text(printed)}}, &source);
      }
  return absl::StrReplaceAll(
      source, {{kIncludes, absl::StrCat(kIncludes, mutant.routines, "\n", mutant.runtime, "\n")}});
}

absl::StatusOr<bool> ExportedExamples::Passes(const Mutation& mutation) const {
  static std::atomic<int> numbers = 0;
  MutableCode mutant = Unchanged(fusions_[of_subject_]);
  mutation.apply(&mutant);
  const std::string name = absl::StrCat("mutant_", ++numbers),
                    source = absl::StrCat(name, cuda() ? ".cu" : ".cc");
  std::ofstream(absl::StrCat(folder_, "/", source)) << Source(std::move(mutant));
  const CommandResult compiled =
      RunCommand(absl::StrCat("cd ", Quoted(folder_), " && ", Compiler(), " ", source,
                              " example.o reference.o ", cuda() ? "-lgomp " : "", "-o ", name));
  if (compiled.exit_code != 0) return absl::InternalError(compiled.output.substr(0, 2000));
  // One that hangs does not pass.
  const CommandResult ran = RunCommand(
      absl::StrCat("OMP_NUM_THREADS=2 timeout 60 ", Quoted(absl::StrCat(folder_, "/", name)), " --once"));
  std::error_code ignored;
  for (const std::string& file : {name, source})
    std::filesystem::remove(absl::StrCat(folder_, "/", file), ignored);
  return ran.exit_code == 0;
}

}  // namespace fusion::testing
