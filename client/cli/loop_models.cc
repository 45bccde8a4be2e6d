#include "client/cli/loop_models.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/loops/check.h"
#include "server/loops/mapping.h"
#include "server/loops/result_scalars.h"
#include "server/parse/error_list.h"

namespace fusion {
namespace {

IntegerValues SizesOf(const SourceFile& file) {
  return {file.source.size_values().begin(), file.source.size_values().end()};
}

std::vector<Measure<Formula>> FormulasOf(const ModelledProgram& program) {
  return MeasuresOf(program.Launches(), Formula(program.Cells()), SymbolicMachine());
}

std::string ValuesText(const IntegerValues& values) {
  return absl::StrJoin(values, " ", absl::PairFormatter("="));
}

}  // namespace

absl::StatusOr<ModelledProgram> ModelsOf(const SourceFile& file) {
  std::set<std::string> sizes;
  for (const auto& [name, value] : file.source.size_values()) sizes.insert(name);
  FUSION_ASSIGN_OR_RETURN(CheckedProgram checked, CheckLoops(file.text, file.name, sizes));
  checked = WithResultsInArrays(std::move(checked));
  ErrorList errors(file.name);
  const MappedLoops mapped = MapLoops(checked, {.in_strips = false}, &errors);
  if (!errors.empty()) return errors.ToStatus();
  return ModelledProgram(mapped);
}

Json ModelsJson(const ModelledProgram& program) {
  Json kernels = Json::array(), models = Json::array();
  for (const ModelledKernel& kernel : program.kernels()) {
    const KernelCounts& counts = kernel.counts;
    Json arrays = Json::object();
    for (const auto& [name, entries] : kernel.arrays) arrays[name] = program.Text(entries);
    kernels.push_back({{"kernel", kernel.name},
                       {"launches", program.Text(kernel.launches)},
                       {"blocks", program.Text(counts.blocks)},
                       {"threads", program.Text(counts.threads)},
                       {"operations", program.Text(counts.thread.operations)},
                       {"coalesced_reads", program.Text(counts.thread.coalesced_reads)},
                       {"scattered_reads", program.Text(counts.thread.scattered_reads)},
                       {"coalesced_writes", program.Text(counts.thread.coalesced_writes)},
                       {"scattered_writes", program.Text(counts.thread.scattered_writes)},
                       {"block_words", program.Text(counts.block_words)},
                       {"arrays", std::move(arrays)}});
  }
  const std::vector<Measure<Formula>> formulas = FormulasOf(program);
  for (const ModelDescription& model : ModelDescriptions()) {
    Json measures = Json::object();
    for (const Measure<Formula>& measure : formulas)
      if (measure.model == model.name) measures[measure.name] = program.Text(measure.value);
    models.push_back({{"model", model.name},
                      {"source", model.source},
                      {"formula", model.formula},
                      {"measures", std::move(measures)}});
  }
  return {{"kernels", std::move(kernels)}, {"names", program.meanings()}, {"models", std::move(models)}};
}

std::string ModelsText(const ModelledProgram& program) {
  std::string text;
  for (const ModelledKernel& kernel : program.kernels()) {
    const KernelCounts& counts = kernel.counts;
    const auto words = [&](const Polynomial& coalesced, const Polynomial& scattered) {
      return absl::StrCat(program.Text(coalesced), " coalesced, ", program.Text(scattered), " scattered");
    };
    absl::StrAppend(&text, kernel.name, "\n  launches    ", program.Text(kernel.launches), "\n  blocks      ",
                    program.Text(counts.blocks), " of ", program.Text(counts.threads),
                    " threads\n  a thread    ", program.Text(counts.thread.operations),
                    " operations\n  reads       ",
                    words(counts.thread.coalesced_reads, counts.thread.scattered_reads), "\n  writes      ",
                    words(counts.thread.coalesced_writes, counts.thread.scattered_writes), "\n  a block     ",
                    program.Text(counts.block_words), " words of its own\n");
  }
  if (!program.meanings().empty())
    absl::StrAppend(&text, "with ", absl::StrJoin(program.meanings(), ", "), "\n");
  const std::vector<Measure<Formula>> formulas = FormulasOf(program);
  for (const ModelDescription& model : ModelDescriptions()) {
    absl::StrAppend(&text, model.name, " (", model.source, "): ", model.formula, "\n");
    for (const Measure<Formula>& measure : formulas)
      if (measure.model == model.name)
        absl::StrAppendFormat(&text, "  %-14s %s\n", measure.name, program.Text(measure.value));
  }
  return absl::StrCat(
      text,
      "P: cores; L, U: cycles of an access to memory, and of a transfer; C: words of a coalesced access;\n"
      "Z: words of private memory of Q cores; X: threads that a core may have. Words have four bytes.\n"
      "Of what may vary, the most is counted.\n");
}

absl::StatusOr<ModelNumbers> ModelNumbersOf(const ModelledProgram& program, const SourceFile& file,
                                            const v1::Candidate& choice,
                                            const v1::DeviceDescription& device) {
  const IntegerValues sizes = SizesOf(file);
  ModelNumbers numbers;
  numbers.parameters = {choice.parameters().begin(), choice.parameters().end()};
  bool cached = false;
  for (const v1::KernelSummary& kernel : choice.kernels()) cached |= kernel.shared_bytes() > 0;
  FUSION_ASSIGN_OR_RETURN(const auto launches, program.LaunchesAt(sizes, numbers.parameters, cached));
  const auto cells = program.CellsAt(sizes, numbers.parameters);
  if (!cells) return absl::InvalidArgumentError("nobody says how many entries the arrays have");
  const MachineParameters<double> machine = MachineOf(device);
  numbers.measures = MeasuresOf(launches, *cells, machine);
  for (Measure<double>& time : TimesOf(launches, machine)) numbers.measures.push_back(std::move(time));
  for (const ModelledKernel& kernel : program.kernels()) {
    if (kernel.granularity.empty() || numbers.preferred.count(kernel.granularity) > 0) continue;
    const auto preferred =
        program.PreferredGranularity(kernel.granularity, sizes, numbers.parameters, cached, machine);
    if (preferred) numbers.preferred[kernel.granularity] = *preferred;
  }
  return numbers;
}

Json NumbersJson(const ModelNumbers& numbers) {
  Json models = Json::array();
  for (const ModelDescription& model : ModelDescriptions()) {
    Json measures = Json::object();
    for (const Measure<double>& measure : numbers.measures)
      if (measure.model == model.name) measures[measure.name] = measure.value;
    models.push_back({{"model", model.name}, {"measures", std::move(measures)}});
  }
  return {{"parameters", numbers.parameters},
          {"models", std::move(models)},
          {"preferred_granularity", numbers.preferred}};
}

std::string NumbersText(const ModelNumbers& numbers) {
  std::string text =
      absl::StrCat("models", numbers.parameters.empty() ? "" : " with ", ValuesText(numbers.parameters),
                   "; times and bounds are cycles, for a latency and a transfer of 500\n");
  for (const ModelDescription& model : ModelDescriptions()) {
    absl::StrAppend(&text, model.name, "\n");
    for (const Measure<double>& measure : numbers.measures)
      if (measure.model == model.name)
        absl::StrAppendFormat(&text, "  %-14s %.6g\n", measure.name, measure.value);
  }
  if (!numbers.preferred.empty())
    absl::StrAppend(&text, "MCM prefers ", ValuesText(numbers.preferred),
                    ": the power of two with the least bound, each with the other values as above\n");
  return text;
}

}  // namespace fusion
