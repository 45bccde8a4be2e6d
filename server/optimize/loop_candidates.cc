#include "server/optimize/loop_candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/codegen/code_library.h"
#include "server/codegen/device_runtime.h"
#include "server/loop_kernels/launches.h"
#include "server/loop_kernels/prediction.h"
#include "server/loops/build_c.h"
#include "server/target/target.h"

namespace fusion {
namespace {

constexpr size_t kMostPoints = 4000;     // values of parameters that are looked at
constexpr int64_t kLargestValue = 1024;  // of a parameter
constexpr int kSampledLaunches = 4;      // of a kernel, for its prediction
constexpr int64_t kPlainThreads = 256;
// Instructions of a thread, some seconds on a GPU.
constexpr double kMostWorkOfThread = 5e7;

// A launch of a kernel stands for `weight` of them.
struct SampledLaunch {
  size_t kernel = 0;
  IntegerValues values;
  double weight = 1;
};

class CaseFinder {
 public:
  CaseFinder(const LoopSubmission& submission, const MappedLoops& mapped,
             const std::vector<CParameter>& parameters, const DeviceDescription& device)
      : submission_(submission),
        mapped_(mapped),
        parameters_(parameters),
        device_(device),
        predictor_(mapped) {
    FindWhole();
  }

  // All values of the parameters that leave nothing out and make blocks that the device has.
  absl::StatusOr<std::vector<IntegerValues>> Points() {
    std::vector<std::vector<int64_t>> choices;
    for (const CParameter& parameter : parameters_) {
      std::vector<int64_t> values;
      const int64_t high = std::min(parameter.high.value_or(kLargestValue), kLargestValue);
      if (parameter.low > high) values.push_back(parameter.low);
      for (int64_t value = 1; value <= high; value *= 2)
        if (value >= parameter.low) values.push_back(value);
      if (values.empty()) values.push_back(parameter.low);
      choices.push_back(std::move(values));
    }
    std::vector<IntegerValues> points;
    std::vector<size_t> at(choices.size(), 0);
    for (;;) {
      IntegerValues point;
      for (size_t i = 0; i < choices.size(); ++i) point[parameters_[i].name] = choices[i][at[i]];
      if (IsPossible(point)) points.push_back(std::move(point));
      size_t digit = 0;
      while (digit < choices.size() && ++at[digit] == choices[digit].size()) at[digit++] = 0;
      if (digit == choices.size()) break;
    }
    if (points.empty())
      return absl::FailedPreconditionError(absl::StrCat(
          submission_.file_name, ": at these sizes no powers of two for ", Names(),
          " give whole tiles of blocks with 1 to 1024 threads: ", absl::StrJoin(whole_texts_, ", ")));
    // The device's warps want whole blocks of 32 where there are any.
    if (TargetOf(device_.target()).simt()) {
      std::vector<IntegerValues> warps;
      for (const IntegerValues& point : points)
        if (LeastThreads(point) >= 32) warps.push_back(point);
      if (!warps.empty()) points = std::move(warps);
    }
    // Every so-manieth of too many.
    if (points.size() > kMostPoints) {
      std::vector<IntegerValues> fewer;
      for (size_t i = 0; i < kMostPoints; ++i) fewer.push_back(points[i * points.size() / kMostPoints]);
      points = std::move(fewer);
    }
    return points;
  }

  // The point whose blocks have about so many threads, and whose threads do least: one iteration, where it
  // can be.
  IntegerValues Plain(const std::vector<IntegerValues>& points) const {
    double best = 1e300;
    IntegerValues plain;
    for (const IntegerValues& point : points) {
      double cost = std::abs(std::log2(static_cast<double>(LeastThreads(point)) / kPlainThreads));
      for (const auto& [name, value] : point)
        if (threads_names_.count(name) == 0) cost += std::log2(static_cast<double>(value)) * 4;
      // Threads of a row lie next to each other.
      double square = 0;
      for (const auto& [name, value] : point)
        if (threads_names_.count(name) > 0)
          square += std::pow(std::log2(static_cast<double>(value)), 2) * 0.01;
      cost += square;
      if (cost < best) best = cost, plain = point;
    }
    return plain;
  }

  absl::StatusOr<IntegerValues> PlainPoint() {
    FUSION_ASSIGN_OR_RETURN(const std::vector<IntegerValues> points, Points());
    return Plain(points);
  }

  absl::Status Sample(const IntegerValues& point) {
    ErrorList errors(submission_.file_name);
    const LoopCode code = LowerLoops(mapped_, {.constants = point}, &errors);
    if (!errors.empty()) return errors.ToStatus();
    std::map<int, std::vector<IntegerValues>> launches;
    FUSION_RETURN_IF_ERROR(
        ForEachLaunch(code, With(point), [&](int kernel, int64_t, const IntegerValues& values) {
          launches[kernel].push_back(values);
          return absl::OkStatus();
        }));
    for (auto& [kernel, of_kernel] : launches) {
      if (static_cast<size_t>(kernel) >= predictor_.kernels()) continue;
      const size_t count = std::min<size_t>(of_kernel.size(), kSampledLaunches);
      for (size_t i = 0; i < count; ++i)
        samples_.push_back({static_cast<size_t>(kernel),
                            of_kernel[(2 * i + 1) * of_kernel.size() / (2 * count)],
                            static_cast<double>(of_kernel.size()) / static_cast<double>(count)});
    }
    return absl::OkStatus();
  }

  // Nothing: shared memory does not hold what is cached.
  std::optional<double> Predict(const IntegerValues& point, bool cached, const CostModel& model) const {
    double seconds = model.StartSeconds();
    for (const SampledLaunch& sample : samples_) {
      IntegerValues values = sample.values;
      for (const auto& [name, value] : point) values[name] = value;
      const KernelTraits traits = predictor_.Traits(sample.kernel, values, cached, device_);
      if (cached && traits.shared_bytes > SharedLimit()) return std::nullopt;
      seconds += sample.weight * model.Estimate(traits).total_seconds;
    }
    return seconds;
  }
  // Instructions of a thread in all launches, one after the other.
  double WorkOfThread(const IntegerValues& point) const {
    double work = 0;
    for (const SampledLaunch& sample : samples_) {
      IntegerValues values = sample.values;
      for (const auto& [name, value] : point) values[name] = value;
      const KernelTraits traits = predictor_.Traits(sample.kernel, values, false, device_);
      work += sample.weight * traits.instructions / (static_cast<double>(traits.blocks) * traits.threads);
    }
    return work;
  }
  int64_t SharedLimit() const {
    return TargetOf(device_.target()).simt() ? device_.shared_bytes_per_block() : int64_t{1} << 17;
  }

  IntegerValues With(const IntegerValues& point) const {
    IntegerValues values = submission_.sizes;
    for (const auto& [name, value] : point) values[name] = value;
    return values;
  }

 private:
  struct ThreadLoops {
    const CRegion* region;
    std::vector<const CStatement*> loops;
  };

  std::string Names() const {
    return absl::StrJoin(parameters_, ", ",
                         [](std::string* out, const CParameter& parameter) { out->append(parameter.name); });
  }

  // Quotients by parameters have to be whole, unless they are rounded up.
  void FindWhole() {
    std::set<std::string> names;
    for (const CParameter& parameter : parameters_) names.insert(parameter.name);
    for (const CRegion& region : mapped_.program.regions) {
      ErrorList scratch("");
      const std::unique_ptr<Nest> nest = BuildNest(mapped_.program, region, &scratch);
      for (NestQuotient& quotient : QuotientsThatDrop(*nest, names)) {
        whole_texts_.push_back(
            absl::StrCat(quotient.numerator.ToString(), " by ", quotient.denominator.ToString()));
        whole_.push_back(std::move(quotient));
      }
      // Thread loops, in the order of the text.
      std::vector<const CStatement*> path;
      const auto walk = [&](auto&& self, const CStatement& statement) -> void {
        if (statement.meta) path.push_back(&statement);
        bool inner = false;
        for (const CStatementPtr& each : statement.body)
          if (HasMeta(*each)) inner = true, self(self, *each);
        if (statement.meta && !inner) {
          ThreadLoops threads{&region,
                              {path.begin() + static_cast<std::ptrdiff_t>(path.size() / 2), path.end()}};
          for (const CStatement* loop : threads.loops) AddNames(*loop->bound, &threads_names_);
          threads_.push_back(std::move(threads));
        }
        if (statement.meta) path.pop_back();
      };
      walk(walk, *region.statement);
    }
  }
  bool IsPossible(const IntegerValues& point) const {
    const IntegerValues given = With(point);
    const int64_t most =
        std::min<int64_t>(1024, device_.max_threads_per_block() > 0 ? device_.max_threads_per_block() : 1024);
    for (const ThreadLoops& threads : threads_) {
      const IntegerValues values = ScopeValues(threads.region->scope, given);
      int64_t count = 1;
      for (const CStatement* loop : threads.loops) {
        const auto trips = EvaluateC(*TripCount(*loop), values);
        if (!trips || *trips < 1 || *trips > most) return false;
        count *= *trips;
        if (count > most) return false;
      }
    }
    for (const NestQuotient& quotient : whole_) {
      IntegerValues values = given;
      for (const CRegion& region : mapped_.program.regions) values = ScopeValues(region.scope, values);
      const auto numerator = quotient.numerator.Evaluate(values),
                 denominator = quotient.denominator.Evaluate(values);
      if (!numerator || !denominator || *denominator < 1) continue;  // of other quotients
      if (*numerator % *denominator != 0) return false;
    }
    return true;
  }
  int64_t LeastThreads(const IntegerValues& point) const {
    int64_t least = 1024;
    const IntegerValues given = With(point);
    for (const ThreadLoops& threads : threads_) {
      const IntegerValues values = ScopeValues(threads.region->scope, given);
      int64_t count = 1;
      bool chosen = false;
      for (const CStatement* loop : threads.loops) {
        count *= EvaluateC(*TripCount(*loop), values).value_or(1);
        chosen |= loop->bound->kind == CExpression::Kind::kName;
      }
      if (chosen) least = std::min(least, count);
    }
    return least;
  }

  const LoopSubmission& submission_;
  const MappedLoops& mapped_;
  const std::vector<CParameter>& parameters_;
  const DeviceDescription& device_;
  LoopPredictor predictor_;
  std::vector<NestQuotient> whole_;
  std::vector<std::string> whole_texts_;
  std::vector<ThreadLoops> threads_;
  std::set<std::string> threads_names_;
  std::vector<SampledLaunch> samples_;
};

std::string KernelsSource(const std::vector<ir::Kernel>& kernels, const Target& target) {
  std::string source = DeviceRuntime();
  for (const ir::Kernel& kernel : kernels) absl::StrAppend(&source, "\n", target.Print(kernel));
  return source;
}

// Adds the launches of the code; arrays that are written are meant by their outputs.
absl::Status AddLaunches(const LoopSubmission& submission, const LoopCode& code, const IntegerValues& values,
                         const std::string& build, bool reference, const DeviceDescription& device,
                         v1::Program* program) {
  std::set<std::string> written;
  for (const LoopArray& array : submission.interface.arrays)
    if (array.writes) written.insert(array.variable.name);
  const bool programmatic = TargetOf(device.target()).Features(device).overlapping_launches;
  return ForEachLaunch(
      code, values, [&](int number, int64_t blocks, const IntegerValues& now) -> absl::Status {
        const LoopKernel& kernel = code.kernels[number];
        v1::Launch* launch = program->add_launches();
        launch->set_binary(build);
        launch->set_kernel(kernel.kernel.name);
        launch->set_grid(blocks);
        launch->set_threads(kernel.kernel.threads);
        launch->set_shared_bytes(kernel.shared_bytes);
        launch->set_programmatic(programmatic);
        for (const LoopArgument& argument : kernel.arguments) {
          v1::LaunchArgument* to = launch->add_arguments();
          switch (argument.kind) {
            case LoopArgument::Kind::kArray:
              to->set_buffer(written.count(argument.name) > 0 ? OutputId(submission, argument.name)
                                                              : InputId(submission, argument.name));
              if (reference && argument.writes && argument.type != CType::kInt)
                launch->add_results(OutputId(submission, argument.name));
              break;
            case LoopArgument::Kind::kScalar:
              to->set_scalar_buffer(InputId(submission, argument.name));
              break;
            case LoopArgument::Kind::kInteger: {
              const auto value = now.find(argument.name);
              if (value == now.end())
                return absl::InvalidArgumentError(absl::StrCat(argument.name, " has no value at a launch"));
              to->set_integer(value->second);
              break;
            }
          }
        }
        return absl::OkStatus();
      });
}

// Outputs of the reference have memory of their own, which begins as their inputs are.
ir::Kernel CopyKernel() {
  ir::Kernel kernel;
  kernel.name = "fu_copy";
  kernel.comment = "Copies an array.";
  kernel.parameters = {
      {"double* FUSION_RESTRICT", "to"}, {"const double* FUSION_RESTRICT", "from"}, {"fu_index", "count"}};
  kernel.threads = kPlainThreads;
  kernel.sections.push_back({.group_threads = static_cast<int>(kPlainThreads),
                             .lane_variables = {},
                             .body = {ir::LanePhase({"const fu_index at = block * lanes + lane;",
                                                     "if (at < count) to[at] = from[at];"})}});
  return kernel;
}

IntegerValues With(IntegerValues values, const IntegerValues& more) {
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

std::vector<ir::Kernel> IrKernelsOf(const LoopCode& code) {
  std::vector<ir::Kernel> kernels;
  for (const LoopKernel& kernel : code.kernels) kernels.push_back(kernel.kernel);
  return kernels;
}

absl::Status AddReference(const LoopSubmission& submission, const DeviceDescription& device,
                          v1::CandidateSet* set) {
  CaseFinder written(submission, submission.reference, submission.reference_parameters, device);
  FUSION_ASSIGN_OR_RETURN(IntegerValues point, written.PlainPoint());
  FUSION_RETURN_IF_ERROR(written.Sample(point));
  // The loops as they were written may leave all the work to few threads, which take too long.
  const bool turned = written.WorkOfThread(point) > kMostWorkOfThread;
  if (turned) {
    CaseFinder finder(submission, submission.turned_reference, submission.turned_parameters, device);
    FUSION_ASSIGN_OR_RETURN(point, finder.PlainPoint());
  }
  const MappedLoops& mapped = turned ? submission.turned_reference : submission.reference;
  ErrorList errors(submission.file_name);
  const LoopCode code = LowerLoops(
      mapped, {.constants = point, .reuse = false, .force_f64 = true, .prefix = "reference"}, &errors);
  if (!errors.empty()) return errors.ToStatus();
  std::vector<ir::Kernel> kernels = IrKernelsOf(code);
  kernels.push_back(CopyKernel());
  const v1::BuildTask build = BuildOf(KernelsSource(kernels, TargetOf(device.target())), device);
  v1::Program* program = set->mutable_reference();
  program->set_name("reference");
  for (const v1::Buffer& output : set->session().outputs()) {
    v1::Launch* launch = program->add_launches();
    launch->set_binary(build.key());
    launch->set_kernel("fu_copy");
    launch->set_grid((output.count() + kPlainThreads - 1) / kPlainThreads);
    launch->set_threads(kPlainThreads);
    launch->set_programmatic(TargetOf(device.target()).Features(device).overlapping_launches);
    launch->add_arguments()->set_buffer(output.id());
    launch->add_arguments()->set_buffer(output.memory_of());
    launch->add_arguments()->set_integer(output.count());
    if (output.data_type() != v1::I32) launch->add_results(output.id());
  }
  FUSION_RETURN_IF_ERROR(
      AddLaunches(submission, code, With(submission.sizes, point), build.key(), true, device, program));
  (*set->mutable_builds())[build.key()] = build;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<LoopCase>> FindLoopCases(const LoopSubmission& submission, const CostModel& model,
                                                    size_t most) {
  CaseFinder finder(submission, submission.mapped, submission.parameters, model.device());
  FUSION_ASSIGN_OR_RETURN(const std::vector<IntegerValues> points, finder.Points());
  FUSION_RETURN_IF_ERROR(finder.Sample(points[0]));
  std::vector<LoopCase> cases;
  for (const IntegerValues& point : points)
    for (const bool cached : {false, true})
      if (const std::optional<double> seconds = finder.Predict(point, cached, model))
        cases.push_back({point, cached, *seconds});
  const IntegerValues plain = finder.Plain(points);
  // The plain case is tried whatever is predicted: nobody wants to get less than it.
  std::stable_sort(cases.begin(), cases.end(), [&](const LoopCase& a, const LoopCase& b) {
    const bool first = !a.cached && a.parameters == plain, second = !b.cached && b.parameters == plain;
    return first != second ? first : a.predicted_seconds < b.predicted_seconds;
  });
  if (cases.size() > 1)
    cases[0].predicted_seconds = std::min(cases[0].predicted_seconds, cases[1].predicted_seconds);
  // A case whose kernels put nothing into shared memory is that without.
  std::vector<LoopCase> kept;
  for (LoopCase& one : cases) {
    if (kept.size() >= most) break;
    if (one.cached) {
      ErrorList errors(submission.file_name);
      const LoopCode code =
          LowerLoops(submission.mapped, {.constants = one.parameters, .cached = true}, &errors);
      if (!errors.empty() || std::all_of(code.kernels.begin(), code.kernels.end(),
                                         [](const LoopKernel& kernel) { return kernel.cached.empty(); }))
        continue;
      if (std::any_of(code.kernels.begin(), code.kernels.end(),
                      [&](const LoopKernel& kernel) { return kernel.shared_bytes > finder.SharedLimit(); }))
        continue;
    }
    kept.push_back(std::move(one));
  }
  return kept;
}

std::string CaseText(const LoopCase& one, const LoopCode& code) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : one.parameters) parts.push_back(absl::StrCat(name, "=", value));
  std::set<std::string> cached;
  for (const LoopKernel& kernel : code.kernels) cached.insert(kernel.cached.begin(), kernel.cached.end());
  std::string text = absl::StrJoin(parts, " ");
  if (!cached.empty())
    absl::StrAppend(&text, text.empty() ? "" : ", ", "shared ", absl::StrJoin(cached, " "));
  return text.empty() ? "no parameters" : text;
}

absl::StatusOr<LoopCandidates> GenerateLoopCode(const LoopSubmission& submission, std::vector<LoopCase> cases,
                                                const DeviceDescription& device) {
  LoopCandidates candidates;
  v1::CandidateSet& set = candidates.set;
  set.set_name(submission.summary.name());
  set.set_hash(submission.summary.hash());
  set.mutable_sizes()->insert(submission.sizes.begin(), submission.sizes.end());
  *set.mutable_session() = LoopSession(submission);
  FUSION_RETURN_IF_ERROR(AddReference(submission, device, &set));
  const Target& target = TargetOf(device.target());
  const auto lower = [&](const LoopCase& one, bool reuse, v1::Program* program) -> absl::StatusOr<LoopCode> {
    ErrorList errors(submission.file_name);
    LoopCode code = LowerLoops(
        submission.mapped,
        {.constants = one.parameters, .cached = one.cached, .reuse = reuse, .prefix = "loops"}, &errors);
    if (!errors.empty()) return errors.ToStatus();
    const v1::BuildTask build = BuildOf(KernelsSource(IrKernelsOf(code), target), device);
    FUSION_RETURN_IF_ERROR(AddLaunches(submission, code, With(submission.sizes, one.parameters), build.key(),
                                       false, device, program));
    (*set.mutable_builds())[build.key()] = build;
    return code;
  };
  FUSION_ASSIGN_OR_RETURN(
      const IntegerValues plain,
      CaseFinder(submission, submission.mapped, submission.parameters, device).PlainPoint());
  v1::Program* unfused = set.add_unfused();
  unfused->set_name("plain");
  FUSION_RETURN_IF_ERROR(lower({.parameters = plain}, false, unfused).status());
  std::vector<std::string> written;
  for (const LoopArray& array : submission.interface.arrays)
    if (array.writes) written.push_back(array.variable.name);
  for (size_t i = 0; i < cases.size(); ++i) {
    v1::PlannedCandidate* candidate = set.add_candidates();
    FUSION_ASSIGN_OR_RETURN(LoopCode code, lower(cases[i], true, candidate->mutable_program()));
    v1::Candidate* description = candidate->mutable_description();
    description->set_predicted_rank(static_cast<int>(i) + 1);
    description->set_predicted_seconds(cases[i].predicted_seconds);
    description->set_description(CaseText(cases[i], code));
    description->set_asserted(absl::StrJoin(submission.mapped.asserted, ", "));
    description->add_fusions()->mutable_results()->Add(written.begin(), written.end());
    std::set<std::string> told;
    for (const v1::Launch& launch : candidate->program().launches()) {
      if (!told.insert(launch.kernel()).second) continue;
      v1::KernelSummary* kernel = description->add_kernels();
      kernel->set_name(launch.kernel());
      kernel->set_skeleton("loops");
      kernel->set_threads(launch.threads());
      kernel->set_blocks(launch.grid());
      kernel->set_shared_bytes(launch.shared_bytes());
    }
    description->set_key("sha256:" + Sha256Hex(candidate->program().SerializeAsString()));
    candidate->mutable_program()->set_name(description->key());
    candidates.codes.push_back(std::move(code));
  }
  candidates.cases = std::move(cases);
  for (const CParameter& parameter : submission.parameters) candidates.least[parameter.name] = parameter.low;
  return candidates;
}

std::vector<WaitingCandidate> AllCandidates(const LoopCandidates& candidates) {
  std::vector<WaitingCandidate> waiting;
  for (size_t i = 0; i < candidates.cases.size(); ++i)
    waiting.push_back({.position = static_cast<int>(i),
                       .seconds = candidates.cases[i].predicted_seconds,
                       .group = candidates.cases[i].cached ? 1 : 0});
  return waiting;
}

}  // namespace fusion
