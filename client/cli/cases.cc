#include "server/loops/cases.h"

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/api/client.h"
#include "client/cli/c_source.h"
#include "client/cli/invocation.h"
#include "client/cli/loop_models.h"
#include "client/cli/render.h"
#include "client/cli/source_file.h"
#include "client/cli/target_option.h"
#include "server/linear/general_program.h"
#include "server/loop_kernels/register_probe.h"
#include "server/loops/check.h"
#include "server/loops/logarithmic_program.h"
#include "worker/agent/local_compiler.h"

namespace fusion {
namespace {

constexpr int kShownChoices = 10;
// Shared memory that a block may have on any device, in words of four bytes.
constexpr int64_t kWordsOfTheProgram = 48 * 1024 / 4;
constexpr std::chrono::seconds kProgramTime(5);

std::string StrategiesText(const KernelCase& one) {
  return absl::StrJoin(one.strategies, " ",
                       [](std::string* out, Strategy strategy) { out->append(StrategyName(strategy)); });
}

std::string KernelWords(const CaseDiscussion& discussion, const KernelCase& one) {
  std::string text =
      one.cached ? absl::StrCat("cache(", absl::StrJoin(discussion.cached, ", "), ")") : "no cache";
  if (!discussion.granularity.empty())
    absl::StrAppend(&text, one.granular ? absl::StrCat(", ", discussion.granularity, " entries a thread")
                                        : ", one entry a thread");
  return text;
}

struct CasesOptions {
  std::string file;
  std::string arch = "sm_90", device;
  std::vector<std::string> select;  // sizes
  v1::Target target = v1::CUDA;
  bool lp = false, code = false, models = false;
};

// Asks a compiler of this machine for the registers that the kernels take, where the text does not say them.
absl::StatusOr<std::vector<CRegisters>> CompiledRegistersOf(const std::string& text,
                                                            const CasesOptions& options) {
  FUSION_ASSIGN_OR_RETURN(const RegisterProbe probe, ProbeRegisters(text, options.file));
  auto counted = CompiledRegisters(probe.source, options.arch);
  if (absl::IsFailedPrecondition(counted.status()))
    return absl::FailedPreconditionError(absl::StrCat(
        "registers are not known: say \"#pragma fusion registers WITH ONE\" before the loops, or "
        "install NVRTC, which tells them: ",
        counted.status().message()));
  if (!counted.ok()) return counted.status();
  std::vector<CRegisters> registers(probe.kernels);
  for (int i = 0; i < probe.kernels; ++i) {
    registers[i].granular = (*counted)[absl::StrCat("granular", i)];
    registers[i].single = (*counted)[absl::StrCat("single", i)];
  }
  return registers;
}

// The best values as predicted, with the case that they are of.
ExitCode Select(const Invocation& invocation, const CasesOptions& options) {
  absl::StatusOr<SourceFile> file = ReadLoops(options.file, options.select);
  if (!file.ok()) return invocation.Report(file.status());
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation, {});
  if (!client.ok()) return invocation.Report(client.status());
  v1::ExplainRequest request;
  *request.mutable_source() = file->source;
  request.set_target(options.target);
  request.set_device(options.device);
  if (options.target != v1::HOST && options.device.empty()) request.set_arch(options.arch);
  request.set_candidates(kShownChoices);
  const absl::StatusOr<v1::ExplainResponse> explained = (*client)->Explain(request);
  if (!explained.ok()) return ReportWithSource(invocation, explained.status(), *file);
  Json list = Json::array();
  if (!invocation.json) std::cout << "as predicted for " << explained->device().name() << "\n";
  int rank = 0;
  for (const v1::Candidate& candidate : explained->candidates()) {
    const v1::KernelEstimate& estimate = candidate.estimates(0);
    ++rank;
    if (!invocation.json)
      std::cout << absl::StrFormat("%3d  %10.1f us  %3.0f%% of threads  ", rank,
                                   candidate.predicted_seconds() * 1e6, 100 * estimate.occupancy())
                << candidate.description() << "\n";
    list.push_back({{"description", candidate.description()},
                    {"predicted_seconds", candidate.predicted_seconds()},
                    {"occupancy", estimate.occupancy()},
                    {"threads", candidate.kernels(0).threads()},
                    {"shared_bytes", candidate.kernels(0).shared_bytes()},
                    {"parameters", std::map<std::string, int64_t>(candidate.parameters().begin(),
                                                                  candidate.parameters().end())}});
  }
  Json json = {
      {"schema", "fusion.choices/1"}, {"device", explained->device().name()}, {"choices", std::move(list)}};
  if (options.models && explained->candidates_size() > 0) {
    const auto models = ModelsOf(*file);
    if (!models.ok()) return ReportWithSource(invocation, models.status(), *file);
    const auto numbers = ModelNumbersOf(*models, *file, explained->candidates(0), explained->device());
    if (!numbers.ok()) return invocation.Report(numbers.status());
    json["models"] = NumbersJson(*numbers);
    if (!invocation.json) std::cout << "\n" << NumbersText(*numbers);
  }
  if (invocation.json) std::cout << JsonText(json);
  return kDone;
}

ExitCode Cases(const Invocation& invocation, const CasesOptions& options) {
  if (!options.select.empty()) return Select(invocation, options);
  absl::StatusOr<std::string> text = ReadC(options.file);
  if (!text.ok()) return invocation.Report(text.status());
  const SourceFile file{.name = options.file, .source = {}, .text = *text};
  const auto report = [&](const absl::Status& status) { return ReportWithSource(invocation, status, file); };
  const auto checked = CheckLoops(*text, options.file);
  if (!checked.ok()) return report(checked.status());
  std::vector<CRegisters> registers;
  const bool compiled = !GivesRegisters(checked->program);
  if (compiled) {
    auto found = CompiledRegistersOf(*text, options);
    if (!found.ok()) return report(found.status());
    registers = *std::move(found);
  }
  const auto discussions = DiscussCases(*text, options.file, registers);
  if (!discussions.ok()) return report(discussions.status());
  Json list = Json::array();
  for (const CaseDiscussion& discussion : *discussions) {
    if (!invocation.json) std::cout << discussion.kernel << "\n";
    Json cases = Json::array();
    int number = 0;
    for (const KernelCase& one : discussion.cases) {
      const std::string constraints = ConstraintsText(one, discussion.parameters);
      ++number;
      if (!invocation.json)
        std::cout << "  " << number << "  " << constraints << "\n     " << StrategiesText(one) << "  "
                  << KernelWords(discussion, one) << "\n";
      if (options.code && !invocation.json)
        for (const absl::string_view line : absl::StrSplit(one.code, '\n', absl::SkipEmpty()))
          std::cout << "       " << line << "\n";
      cases.push_back({{"constraints", constraints},
                       {"strategies", StrategiesText(one)},
                       {"cached", one.cached},
                       {"granular", one.granular},
                       {"code", one.code}});
    }
    Json kernel = {{"kernel", discussion.kernel},
                   {"granularity", discussion.granularity},
                   {"arrays", discussion.cached},
                   {"words", discussion.granular_words.ToString(discussion.parameters)},
                   {"cases", std::move(cases)}};
    if (options.lp) {
      const auto program = LogarithmicProgramOf(discussion, kWordsOfTheProgram);
      const std::string solved =
          program
              ? LogarithmicText(*program, SolveLinearProgram(program->program, DeadlineAfter(kProgramTime)))
              : "words and threads are no products of parameters: there is no such program\n";
      if (!invocation.json) std::cout << "\n" << solved;
      kernel["lp"] = solved;
    }
    list.push_back(std::move(kernel));
  }
  absl::StatusOr<ModelledProgram> models = absl::UnknownError("");
  if (options.models) {
    models = ModelsOf(file);
    if (!models.ok()) return report(models.status());
  }
  if (invocation.json) {
    Json json = {{"schema", "fusion.cases/1"}, {"kernels", std::move(list)}};
    if (options.models) json["models"] = ModelsJson(*models);
    if (compiled) json["registers_of"] = options.arch;
    std::cout << JsonText(json);
    return kDone;
  }
  std::cout << "\nZ_B: words of four bytes that a block may share; R_B: registers that a thread may have\n";
  if (compiled)
    std::cout << "registers: as compiled for " << options.arch << ", with a granularity of "
              << kProbedGranularity << " and of 1\n";
  std::cout << "(1) accept the registers, (2) common subexpressions, (3a) keep the granularity, (3b) "
               "reduce it to 1,\n"
               "(4a) cache, (4b) refuse caching\n";
  if (options.models) std::cout << "\n" << ModelsText(*models);
  return kDone;
}

}  // namespace

void AddCasesCommand(CLI::App* app, Invocation* invocation) {
  auto options = std::make_shared<CasesOptions>();
  CLI::App* command = app->add_subcommand(
      "cases", "Discuss kernels of loops in C: one for each case of parameters and machines");
  command->add_option("FILE", options->file, "Loops: .c")->required();
  command
      ->add_option("--arch", options->arch, "Architecture that registers are counted and times predicted for")
      ->capture_default_str();
  command
      ->add_option("--select", options->select,
                   "Value of a size, as n=4096; may be repeated: choose values of the parameters for these "
                   "sizes, the ten best as predicted")
      ->allow_extra_args(false);
  AddTargetOption(command, &options->target);
  AddDeviceOption(command, &options->device);
  command->add_flag("--lp", options->lp,
                    "Also print the linear program in logarithms of the parameters, with 48 KiB of shared "
                    "memory, and its optimum");
  command->add_flag("--code", options->code, "Also print the kernel of each case, as MetaFork");
  command->add_flag(
      "--models", options->models,
      "Also print what models of computation say: PRAM, fork-join, TMM and MCM; with --select in "
      "numbers, for the best choice");
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Cases(*invocation, *options); }; });
}

}  // namespace fusion
