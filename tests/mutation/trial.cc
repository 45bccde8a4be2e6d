#include "tests/mutation/trial.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codegen/device_runtime.h"
#include "server/codegen/program.h"
#include "server/codegen/source.h"
#include "server/codegen/verification.h"
#include "server/model/cost_model.h"
#include "server/search/implementation_choice.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/mutation/comparison.h"
#include "tests/mutation/exported_examples.h"
#include "worker/measure/time_task.h"

namespace fusion::testing {
namespace {

ProgramOptions OptionsOf(const v1::DeviceDescription& device, const std::string& name, bool force_f64) {
  return {.name = name,
          .multiprocessors = kMultiprocessors,
          .force_f64 = force_f64,
          .programmatic = TargetOf(device.target()).Features(device).overlapping_launches};
}

// The code of a program, in an order in which it can run: `fused` computes its nodes, and each other node has
// a kernel of its own.
std::vector<const FusionCode*> InOrder(const Graph& graph, const FusionImplementation& implementation,
                                       const FusionCode* fused, const std::vector<FusionCode>& unfused) {
  std::vector<const FusionCode*> fusions;
  std::set<int> done;
  const auto is_fused = [&](int node) { return implementation.fusion.nodes.Contains(node); };
  const auto is_ready = [&](const Node& node) {
    return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
      const auto& producer = graph.value(operand).producer;
      return !producer || done.count(producer->value) > 0 ||
             (is_fused(node.id.value) && is_fused(producer->value));
    });
  };
  bool has_fused = false;
  for (size_t before = 1; before != done.size() + 1 || done.empty();) {
    before = done.size() + 1;
    for (const Node& node : graph.nodes())
      if (!is_fused(node.id.value) && !done.count(node.id.value) && is_ready(node)) {
        fusions.push_back(&unfused[node.id.value]);
        done.insert(node.id.value);
      }
    if (!has_fused && std::all_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
          return !is_fused(node.id.value) || is_ready(node);
        })) {
      has_fused = true;
      fusions.push_back(fused);
      for (const Node& node : graph.nodes())
        if (is_fused(node.id.value)) done.insert(node.id.value);
    }
    if (before == done.size() + 1) break;
  }
  return fusions;
}

// Marks where the text of a mutant begins, for messages of the compiler.
std::string Marked(const std::string& name, const std::string& text) {
  return absl::StrCat("#line 1 \"", name, "\"\nnamespace ", name, " {\n", text, "}\n");
}

// Numbers of mutants that the compiler's log says there are errors in.
std::set<size_t> Refused(const std::string& log) {
  static const std::regex kError("mutant_(\\d+)[:(]\\d+[^\\n]*error");
  std::set<size_t> refused;
  for (std::sregex_iterator it(log.begin(), log.end(), kError), end; it != end; ++it)
    refused.insert(std::stoull((*it)[1]));
  return refused;
}

// Calls `work` with numbers below `count`, on so many threads.
void InParallel(unsigned threads, size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < threads; ++i)
    workers.emplace_back([&] {
      for (size_t number = next++; number < count; number = next++) work(number);
    });
}

}  // namespace

absl::StatusOr<std::string> Trial::Compile(const std::string& source, std::string* log) {
  v1::BuildTask task;
  task.set_target(options_.device.target());
  task.set_arch(options_.device.arch());
  task.set_source(source);
  if (target() == v1::HOST)
    for (const char* option : {"-O1", "-w", "-DFUSION_UNROLL="}) task.add_options(option);
  task.set_deadline_seconds(600);
  BuildOutput output = options_.builder->Build(task);
  *log = output.result.log();
  if (output.result.outcome() != v1::OK)
    return absl::InvalidArgumentError(absl::StrCat(v1::Outcome_Name(output.result.outcome()), ": ", *log));
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  binaries_[output.result.binary()] = std::move(output.binary);
  return output.result.binary();
}

absl::Status Trial::BuildSession() {
  const Graph& graph = *subject_.graph;
  const bool cuda = target() == v1::CUDA;
  const CostModel model(DescribedDevice(options_.device.target())), host(DescribedDevice(v1::HOST));
  SearchOptions options;
  options.max_fusion_nodes = 1;
  auto space = SearchFusions(graph, subject_.sizes, model, options);
  if (!space.ok()) return space.status();
  std::vector<FusionCode> reference;
  std::string source = DeviceRuntime();
  const auto print = [&](const std::string& name, const FusionCode& code, std::vector<FusionCode>* codes) {
    MutableCode printed = Unchanged(code);
    source += Marked(name, PrintKernels(&printed, target(), name, subject_.sizes));
    codes->push_back(std::move(printed.code));
  };
  for (const Node& node : graph.nodes()) {
    const FusionImplementation& alone = space->implementations[space->unfused[node.id.value]];
    auto unfused = LowerFusion(graph, alone, {.simt = cuda});
    auto in_f64 = LowerFusion(graph, ReferenceImplementation(graph, node.id, subject_.sizes, model),
                              {.force_f64 = true, .simt = cuda});
    if (!unfused.ok()) return unfused.status();
    if (!in_f64.ok()) return in_f64.status();
    plain_unfused_.push_back(*unfused);
    auto on_host = LowerFusion(graph, ReferenceImplementation(graph, node.id, subject_.sizes, host),
                               {.force_f64 = true, .simt = false});
    if (!on_host.ok()) return on_host.status();
    host_reference_.push_back(*std::move(on_host));
    print(absl::StrCat("unfused_", node.id.value), *unfused, &unfused_);
    print(absl::StrCat("reference_", node.id.value), *in_f64, &reference);
  }
  std::string log;
  auto binary = Compile(source, &log);
  if (!binary.ok()) return binary.status();
  session_binary_ = *binary;
  std::vector<CompiledFusion> of_reference, of_unfused;
  for (const FusionCode& code : reference) of_reference.push_back({&code, session_binary_});
  for (const FusionCode& code : unfused_) of_unfused.push_back({&code, session_binary_});
  const auto program = [&](const std::vector<CompiledFusion>& fusions, const std::string& name, bool f64) {
    return BuildProgram(graph, subject_.sizes, fusions, OptionsOf(options_.device, name, f64));
  };
  session_ = MakeSession(graph, subject_.sizes, OutputTolerances(graph, subject_.sizes));
  *session_.mutable_reference() = program(of_reference, "reference", true);
  *session_.mutable_unfused() = program(of_unfused, "unfused", false);
  session_.set_seed(options_.seed);
  session_.set_key(session_binary_);
  return absl::OkStatus();
}

v1::Program Trial::ProgramWith(const FusionCode& code, const std::string& binary,
                               const std::string& name) const {
  std::vector<CompiledFusion> fusions;
  for (const FusionCode* part : InOrder(*subject_.graph, subject_.implementation, &code, unfused_))
    fusions.push_back({part, part == &code ? binary : session_binary_});
  return BuildProgram(*subject_.graph, subject_.sizes, fusions, OptionsOf(options_.device, name, false));
}

absl::Status Trial::BuildBatch(std::vector<size_t> members, Batch* batch) {
  while (true) {
    std::string source = DeviceRuntime();
    MutableCode original = Unchanged(subject_.code);
    source += Marked("original", PrintKernels(&original, target(), "original", subject_.sizes));
    std::vector<MutableCode> mutants;
    for (const size_t member : members) {
      MutableCode mutant = Unchanged(subject_.code);
      mutations_[member].apply(&mutant);
      const std::string name = absl::StrCat("mutant_", member);
      source += Marked(name, PrintKernels(&mutant, target(), name, subject_.sizes));
      mutants.push_back(std::move(mutant));
    }
    std::string log;
    auto binary = Compile(source, &log);
    if (binary.ok()) {
      batch->members = members;
      batch->original = ProgramWith(original.code, *binary, "original");
      for (size_t i = 0; i < members.size(); ++i)
        batch->programs.push_back(ProgramWith(mutants[i].code, *binary, absl::StrCat("mutant_", members[i])));
      return absl::OkStatus();
    }
    const std::set<size_t> refused = Refused(log);
    if (members.empty() || (refused.empty() && members.size() == 1)) {
      if (members.empty()) return binary.status();
      judgements_[members[0]] = {Fate::kNotBuilt, log};
      members.clear();
      continue;
    }
    if (refused.empty())
      return absl::InternalError(absl::StrCat("nobody is named in: ", log.substr(0, 2000)));
    for (const size_t member : refused) judgements_[member] = {Fate::kNotBuilt, log.substr(0, 300)};
    std::erase_if(members, [&](size_t member) { return refused.count(member) > 0; });
  }
}

absl::Status Trial::Build() {
  if (auto built = BuildSession(); !built.ok()) return built;
  std::vector<std::vector<size_t>> parts;
  for (size_t i = 0; i < mutations_.size(); ++i) {
    if (i % options_.together == 0) parts.emplace_back();
    parts.back().push_back(i);
  }
  batches_.resize(parts.size());
  std::vector<absl::Status> built(parts.size());
  InParallel(options_.at_once, parts.size(),
             [&](size_t part) { built[part] = BuildBatch(parts[part], &batches_[part]); });
  for (const absl::Status& status : built)
    if (!status.ok()) return status;
  return absl::OkStatus();
}

v1::TimeTask Trial::TaskOf(const std::vector<const v1::Program*>& programs) const {
  v1::TimeTask task;
  *task.mutable_session() = session_;
  for (const v1::Program* program : programs) *task.add_programs() = *program;
  v1::MeasurementMethod* method = task.mutable_method();
  method->set_minimum_samples(2);
  method->set_maximum_samples(3);
  method->set_relative_half_width(1);
  method->set_seconds_limit(0.01);
  method->set_cold_alone(true);
  method->set_thorough(true);
  method->set_run_deadline_seconds(options_.run_seconds);
  task.set_device_uuid(options_.device.uuid());
  return task;
}

absl::StatusOr<v1::TimeResult> Trial::Execute(RunnerProcess* runner, const v1::TimeTask& task) const {
  auto result = ExecuteTimeTask(*runner, task, [&](const std::string& digest) -> absl::StatusOr<std::string> {
    const auto found = binaries_.find(digest);
    if (found == binaries_.end()) return absl::NotFoundError(digest);
    return found->second;
  });
  if (!result.ok()) return result.status();
  if (!result->failure().empty()) return absl::InternalError(result->failure());
  if (result->unfused().outcome() != v1::OK)
    return absl::InternalError(
        absl::StrCat("the unfused kernels are refused: ", result->unfused().message()));
  return result;
}

absl::Status Trial::Verify(RunnerProcess* runner) {
  for (const Batch& batch : batches_) {
    if (batch.members.empty()) continue;
    const auto judge = [&](const v1::ProgramMeasurement& measured, size_t member) {
      judgements_[member] = measured.outcome() == v1::OK
                                ? Judgement{Fate::kSame, "passed"}
                                : Judgement{Fate::kCaught, absl::StrCat(v1::Outcome_Name(measured.outcome()),
                                                                        ": ", measured.message())};
    };
    std::vector<const v1::Program*> programs;
    for (const v1::Program& program : batch.programs) programs.push_back(&program);
    programs.push_back(&batch.original);
    auto result = Execute(runner, TaskOf(programs));
    if (result.ok() && result->programs(result->programs_size() - 1).outcome() == v1::OK) {
      for (size_t i = 0; i < batch.members.size(); ++i) judge(result->programs(i), batch.members[i]);
      continue;
    }
    // Who runs behind it shows what a mutant has done to others.
    for (size_t i = 0; i < batch.members.size(); ++i) {
      auto alone = Execute(runner, TaskOf({&batch.programs[i]}));
      if (!alone.ok()) {
        judgements_[batch.members[i]] = {Fate::kNotJudged, alone.status().ToString()};
        continue;
      }
      judge(alone->programs(0), batch.members[i]);
    }
    auto original = Execute(runner, TaskOf({&batch.original}));
    if (!original.ok()) return original.status();
    if (original->programs(0).outcome() != v1::OK)
      return absl::InternalError(absl::StrCat("the original is refused: ", original->programs(0).message()));
  }
  return absl::OkStatus();
}

Difference Trial::Compared(const Batch& batch, size_t member) const {
  return CompareOnManyData(session_, batch.original, batch.programs[member], binaries_, options_.device,
                           options_.data_sets, options_.compare_seconds);
}

namespace {

Judgement JudgementOf(const Difference& difference, Fate same) {
  switch (difference.kind) {
    case Difference::Kind::kNone:
      return {same, difference.message};
    case Difference::Kind::kRounding:
      return {Fate::kRounding, difference.message};
    case Difference::Kind::kReal:
      return {Fate::kMissed, difference.message};
    case Difference::Kind::kUnknown:
      break;
  }
  return {Fate::kNotJudged, difference.message};
}

}  // namespace

absl::Status Trial::Compare() {
  std::vector<std::pair<const Batch*, size_t>> passed;
  for (const Batch& batch : batches_)
    for (size_t i = 0; i < batch.members.size(); ++i)
      if (judgements_[batch.members[i]].fate == Fate::kSame) passed.emplace_back(&batch, i);
  InParallel(options_.at_once, passed.size(), [&](size_t number) {
    const auto [batch, i] = passed[number];
    judgements_[batch->members[i]] = JudgementOf(Compared(*batch, i), Fate::kSame);
  });
  return absl::OkStatus();
}

absl::Status Trial::TryExamples() {
  if (!options_.examples) return absl::OkStatus();
  auto examples = ExportedExamples::Create(
      subject_, options_.device,
      InOrder(*subject_.graph, subject_.implementation, &subject_.code, plain_unfused_), host_reference_);
  if (!examples.ok()) return examples.status();
  std::vector<std::pair<const Batch*, size_t>> caught;
  for (const Batch& batch : batches_)
    for (size_t i = 0; i < batch.members.size(); ++i)
      if (judgements_[batch.members[i]].fate == Fate::kCaught) caught.emplace_back(&batch, i);
  std::vector<absl::Status> tried(caught.size());
  InParallel(options_.at_once, caught.size(), [&](size_t number) {
    const auto [batch, i] = caught[number];
    const size_t member = batch->members[i];
    const absl::StatusOr<bool> passes = (*examples)->Passes(mutations_[member]);
    tried[number] = passes.status();
    if (!passes.ok()) return;
    example_fates_[member] = !*passes                                              ? ExampleFate::kCaught
                             : Compared(*batch, i).kind == Difference::Kind::kReal ? ExampleFate::kMissed
                                                                                   : ExampleFate::kHarmless;
  });
  for (const absl::Status& status : tried)
    if (!status.ok()) return status;
  return absl::OkStatus();
}

}  // namespace fusion::testing
