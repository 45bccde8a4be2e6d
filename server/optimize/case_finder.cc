#include "server/optimize/case_finder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/loop_kernels/launches.h"
#include "server/loops/build_c.h"
#include "server/target/target.h"

namespace fusion {
namespace {

constexpr size_t kMostPoints = 4000;     // values of parameters that are looked at
constexpr int64_t kLargestValue = 1024;  // of a parameter
constexpr int kSampledLaunches = 4;      // of a kernel, for its prediction
constexpr int64_t kPlainThreads = 256;
// Launches of so many others find what they need in the second cache, where it fits this share of it.
constexpr size_t kManyLaunches = 8;
constexpr double kShareOfCache = 0.8;
// The blocks of a sum, where a parameter says how many there are: enough for a large GPU, or for a host's
// processors.
constexpr double kPlainBlocks = 1024, kPlainHostBlocks = 16;

std::set<std::string> NamesOf(const std::vector<CParameter>& parameters) {
  std::set<std::string> names;
  for (const CParameter& parameter : parameters) names.insert(parameter.name);
  return names;
}

}  // namespace

CaseFinder::CaseFinder(const LoopSubmission& submission, const MappedLoops& mapped,
                       const std::vector<CParameter>& parameters, const DeviceDescription& device)
    : submission_(submission),
      mapped_(mapped),
      parameters_(parameters),
      device_(device),
      predictor_(mapped, NamesOf(parameters)) {
  FindWhole();
}

absl::StatusOr<std::vector<IntegerValues>> CaseFinder::Points() {
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

IntegerValues CaseFinder::Plain(const std::vector<IntegerValues>& points) const {
  double best = 1e300;
  IntegerValues plain;
  std::set<std::string> strips;
  for (const CParameter& parameter : parameters_)
    if (parameter.strips) strips.insert(parameter.name);
  const double plain_blocks = TargetOf(device_.target()).simt() ? kPlainBlocks : kPlainHostBlocks;
  for (const IntegerValues& point : points) {
    double cost = std::abs(std::log2(static_cast<double>(LeastThreads(point)) / kPlainThreads));
    for (const auto& [name, value] : point)
      if (blocks_names_.count(name) > 0)
        cost += std::abs(std::log2(plain_blocks / static_cast<double>(value))) * 4;
      else if (strips.count(name) > 0)
        cost -= std::log2(static_cast<double>(value));  // the fewer strips, the more as without them
      else if (threads_names_.count(name) == 0)
        cost += std::log2(static_cast<double>(value)) * 4;
    // Threads of a row lie next to each other.
    double square = 0;
    for (const auto& [name, value] : point)
      if (threads_names_.count(name) > 0) square += std::pow(std::log2(static_cast<double>(value)), 2) * 0.01;
    cost += square;
    if (cost < best) best = cost, plain = point;
  }
  return plain;
}

absl::StatusOr<IntegerValues> CaseFinder::PlainPoint() {
  FUSION_ASSIGN_OR_RETURN(const std::vector<IntegerValues> points, Points());
  return Plain(points);
}

absl::Status CaseFinder::Sample(const IntegerValues& sizes, const IntegerValues& point) {
  if (!code_) {
    ErrorList errors(submission_.file_name);
    LoopCode code = LowerLoops(mapped_, {.constants = point}, &errors);
    if (!errors.empty()) return errors.ToStatus();
    code_ = std::move(code);
  }
  IntegerValues given = sizes;
  for (const auto& [name, value] : point) given[name] = value;
  samples_.clear();
  double bytes = 0;
  for (const LoopArray& array : submission_.interface.arrays)
    bytes += static_cast<double>(EntriesOf(array.variable, given).value_or(0)) *
             (array.variable.type == CType::kDouble || array.variable.type == CType::kLong ? 8 : 4);
  std::map<int, std::vector<IntegerValues>> launches;
  FUSION_RETURN_IF_ERROR(ForEachLaunch(*code_, given, [&](int kernel, int64_t, const IntegerValues& values) {
    launches[kernel].push_back(values);
    return absl::OkStatus();
  }));
  size_t count_of_launches = 0;
  for (const auto& [kernel, of_kernel] : launches) count_of_launches += of_kernel.size();
  warm_ =
      count_of_launches >= kManyLaunches && bytes <= kShareOfCache * static_cast<double>(device_.l2_bytes());
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

std::optional<LoopCase> CaseFinder::Predict(const IntegerValues& point, bool cached,
                                            const CostModel& model) const {
  LoopCase predicted{.parameters = point, .cached = cached, .predicted_seconds = model.StartSeconds()};
  for (const SampledLaunch& sample : samples_) {
    IntegerValues values = sample.values;
    for (const auto& [name, value] : point) values[name] = value;
    const RunTimeEstimate estimate = predictor_.Estimate(sample.kernel, values, cached, warm_, model);
    if (cached && estimate.shared_bytes > SharedLimit()) return std::nullopt;
    predicted.predicted_seconds += sample.weight * estimate.total_seconds;
    predicted.registers = std::max(predicted.registers, estimate.registers);
  }
  return predicted;
}

double CaseFinder::WorkOfThread(const IntegerValues& point) const {
  double work = 0;
  for (const SampledLaunch& sample : samples_) {
    IntegerValues values = sample.values;
    for (const auto& [name, value] : point) values[name] = value;
    if (TargetOf(device_.target()).simt()) {
      work += sample.weight * predictor_.Work(sample.kernel, values, false, false).instructions;
      continue;
    }
    const KernelTraits traits = predictor_.Traits(sample.kernel, values, false);
    work += sample.weight * traits.instructions / (static_cast<double>(traits.blocks) * traits.threads);
  }
  return work;
}

int64_t CaseFinder::SharedLimit() const {
  return TargetOf(device_.target()).simt() ? device_.shared_bytes_per_block() : int64_t{1} << 17;
}

IntegerValues CaseFinder::With(const IntegerValues& point) const {
  IntegerValues values = submission_.sizes;
  for (const auto& [name, value] : point) values[name] = value;
  return values;
}

std::string CaseFinder::Names() const {
  return absl::StrJoin(parameters_, ", ",
                       [](std::string* out, const CParameter& parameter) { out->append(parameter.name); });
}

void CaseFinder::FindWhole() {
  const std::set<std::string> names = NamesOf(parameters_);
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
        for (size_t i = 0; i < path.size() / 2; ++i)
          if (path[i]->bound->kind == CExpression::Kind::kName) blocks_names_.insert(path[i]->bound->text);
        threads_.push_back(std::move(threads));
      }
      if (statement.meta) path.pop_back();
    };
    walk(walk, *region.statement);
  }
}

bool CaseFinder::IsPossible(const IntegerValues& point) const {
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

int64_t CaseFinder::LeastThreads(const IntegerValues& point) const {
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

absl::StatusOr<std::vector<LoopCase>> FindLoopCases(const LoopSubmission& submission, const CostModel& model,
                                                    size_t most, bool plain_first) {
  CaseFinder finder(submission, submission.mapped, submission.parameters, model.device());
  FUSION_ASSIGN_OR_RETURN(const std::vector<IntegerValues> points, finder.Points());
  FUSION_RETURN_IF_ERROR(finder.Sample(submission.sizes, points[0]));
  std::vector<LoopCase> cases;
  for (const IntegerValues& point : points)
    for (const bool cached : {false, true})
      if (std::optional<LoopCase> predicted = finder.Predict(point, cached, model))
        cases.push_back(*std::move(predicted));
  const IntegerValues plain = finder.Plain(points);
  // The plain case is tried whatever is predicted: nobody wants to get less than it.
  std::stable_sort(cases.begin(), cases.end(), [&](const LoopCase& a, const LoopCase& b) {
    const bool first = plain_first && !a.cached && a.parameters == plain,
               second = plain_first && !b.cached && b.parameters == plain;
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

}  // namespace fusion
