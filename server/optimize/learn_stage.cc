#include "server/optimize/learn_stage.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/optimize/stored_kernels.h"
#include "server/search/kernel_identity.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

// The store keeps the times of so many kernels of all devices; 300 to 400 bytes each.
constexpr int64_t kMostKernelTimes = 50000;

ModelStatisticsKey KeyOf(const DeviceDescription& device, v1::CacheState cache) {
  return {
      .device_class = device.name(), .cache = v1::CacheState_Name(cache), .model_version = kCostModelVersion};
}

KernelTimesKey KernelTimesKeyOf(const DeviceDescription& device, v1::CacheState cache) {
  return {.device_class = device.name(),
          .cache = v1::CacheState_Name(cache),
          .toolkit = device.toolkit_version()};
}

// Returns false for sums that no measurements have. Those of another version of the model begin anew without
// a word.
bool AreUsable(const v1::ResidualStatistics& statistics, v1::Target target) {
  return statistics.model_version() != kCostModelVersion || statistics.jobs() == 0 ||
         Residual(statistics, target).jobs() > 0;
}

// Returns the seconds that the kernels of a candidate took together; of very short ones at least a quarter.
double KernelSeconds(const CostModel& model, const v1::Candidate& candidate) {
  const double measured = candidate.measured().median();
  return std::max(measured - model.StartSeconds(), measured / 4);
}

double DeviationOf(const v1::Statistics& measured) {
  return IntervalDeviation(measured.low(), measured.high());
}

// A kernel of the candidates.
struct MeasuredKernel {
  KernelIdentity identity;
  const FusionImplementation* implementation = nullptr;
  std::string build;
  KernelBelief belief;  // at first what was predicted
  int64_t measurements = 0;
  int64_t jobs = 0;  // before this one
};

// The kernels of the candidates that were timed.
struct MeasuredKernels {
  std::vector<MeasuredKernel> kernels;
  std::vector<int> covers;       // positions of the candidates, those of fewest kernels first
  std::map<int, int> of_column;  // which kernel an implementation is; searches that came after each other
                                 // have some in common
};

// Returns whether the kernel has work. One without, since a size is 0, takes what a call takes and says
// nothing of others.
bool HasWork(const Submission& submission, const FusionImplementation& implementation) {
  return std::any_of(implementation.order.begin(), implementation.order.end(), [&](NodeId id) {
    const std::vector<NodeDimension>& dimensions = submission.graph->node(id).dimensions;
    return std::none_of(dimensions.begin(), dimensions.end(), [&](const NodeDimension& dimension) {
      return dimension.extent.Size(submission.sizes) == 0;
    });
  });
}

// Returns whether predictions learn from the measurement of a candidate; they learn from nothing else. Its
// time has to be steady (by the rule of worker/measure/statistics.h, which the worker applied), and each of
// its kernels to have something to do. So a job on a busy machine teaches as much as its machine let it see,
// which may be nothing.
bool Teaches(const Submission& submission, const Plans& plans, const GeneratedCode& code, size_t candidate) {
  const std::vector<int>& members = plans.covers.covers[candidate].columns;
  const v1::Candidate& measured = code.set.candidates(static_cast<int>(candidate)).description();
  return measured.outcome() == v1::OK && measured.steady() &&
         std::all_of(members.begin(), members.end(),
                     [&](int member) { return HasWork(submission, plans.space.implementations[member]); });
}

MeasuredKernels MeasuredKernelsOf(const Submission& submission, const CostModel& model, const Plans& plans,
                                  const GeneratedCode& code) {
  const KernelNames names(*submission.graph, submission.sizes);
  MeasuredKernels measured;
  std::map<KernelIdentity, int> known;
  for (size_t i = 0; i < code.units.size(); ++i) {
    if (!Teaches(submission, plans, code, i)) continue;
    measured.covers.push_back(static_cast<int>(i));
    const std::vector<int>& members = plans.covers.covers[i].columns;
    for (size_t k = 0; k < members.size(); ++k) {
      if (measured.of_column.contains(members[k])) continue;
      const FusionImplementation& implementation = plans.space.implementations[members[k]];
      KernelIdentity identity = names.Of(implementation);
      const auto [place, is_new] = known.try_emplace(identity, static_cast<int>(measured.kernels.size()));
      measured.of_column[members[k]] = place->second;
      if (is_new)
        measured.kernels.push_back(
            {.identity = std::move(identity),
             .implementation = &implementation,
             .build = NamelessBuildKey(code.units[i][k]->build, model.device().toolkit_version()),
             .belief = {implementation.estimate.total_seconds, kUnmeasuredDeviation}});
    }
  }
  // Kernels that were alone come first: they leave nothing to be shared out.
  std::stable_sort(measured.covers.begin(), measured.covers.end(), [&](int a, int b) {
    return plans.covers.covers[a].columns.size() < plans.covers.covers[b].columns.size();
  });
  return measured;
}

// Learns what the candidates say of their kernels.
void LearnKernels(const CostModel& model, const Plans& plans, const GeneratedCode& code,
                  MeasuredKernels* measured) {
  for (int cover : measured->covers) {
    std::vector<KernelBelief*> beliefs;
    std::set<MeasuredKernel*> members;  // fusions of equal functions are one kernel
    for (int member : plans.covers.covers[cover].columns) {
      MeasuredKernel& kernel = measured->kernels[measured->of_column.at(member)];
      beliefs.push_back(&kernel.belief);
      if (members.insert(&kernel).second) ++kernel.measurements;
    }
    const v1::Candidate& candidate = code.set.candidates(cover).description();
    LearnFromCover(KernelSeconds(model, candidate), DeviationOf(candidate.measured()), beliefs);
  }
}

double UncorrectedSeconds(const FusionImplementation& implementation) {
  return implementation.estimate.total_seconds / implementation.estimate.correction;
}

absl::Status RememberKernels(const Submission& submission, const CostModel& model, v1::CacheState cache,
                             const Plans& plans, const GeneratedCode& code, const PipelineContext& context) {
  const MeasuredKernels predicted = MeasuredKernelsOf(submission, model, plans, code);
  if (predicted.kernels.empty()) return absl::OkStatus();
  std::vector<KernelTimeRecord> records;
  for (const MeasuredKernel& kernel : predicted.kernels)
    records.push_back({kernel.identity.family, kernel.identity.sizes, kernel.identity.variant, ""});
  const Timestamp now = TimeOfDay();
  const auto change = [&](std::vector<KernelTimeRecord>* rows) {
    MeasuredKernels measured = predicted;
    for (size_t k = 0; k < measured.kernels.size(); ++k) {
      v1::KernelTime known;
      MeasuredKernel& kernel = measured.kernels[k];
      if (!CheckedKernelTime((*rows)[k]).ok() || !known.ParseFromString((*rows)[k].content) ||
          known.build() != kernel.build)
        continue;
      kernel.belief = {known.seconds(), known.deviation()};
      kernel.measurements = known.measurements();
      kernel.jobs = std::max<int64_t>(known.jobs(), 1);
    }
    std::vector<KernelBelief> before;
    for (const MeasuredKernel& kernel : measured.kernels) before.push_back(kernel.belief);
    LearnKernels(model, plans, code, &measured);
    for (size_t k = 0; k < measured.kernels.size(); ++k) {
      const MeasuredKernel& kernel = measured.kernels[k];
      const ResidualFeatures features = FeaturesOf(*kernel.implementation);
      const KernelBelief belief = Doubted(kernel.belief, before[k].seconds);
      v1::KernelTime time;
      time.set_version(kKernelTimeVersion);
      time.set_build(kernel.build);
      time.set_seconds(belief.seconds);
      time.set_deviation(belief.deviation);
      time.set_jobs(kernel.jobs + 1);
      time.set_learned_micros(now.time_since_epoch().count());
      time.set_measurements(kernel.measurements);
      time.set_model_version(kCostModelVersion);
      time.set_predicted_seconds(UncorrectedSeconds(*kernel.implementation));
      time.mutable_features()->Add(features.begin(), features.end());
      (*rows)[k].content = time.SerializeAsString();
    }
  };
  return context.store.UpdateKernelTimes(KernelTimesKeyOf(model.device(), cache), std::move(records), change,
                                         kMostKernelTimes, now);
}

// The kernels that a job has measured so far, in front of those that were known before it.
class JobKernels final : public KernelMemory {
 public:
  JobKernels(std::shared_ptr<const KernelMemory> before, const MeasuredKernels& measured)
      : before_(std::move(before)) {
    for (const MeasuredKernel& kernel : measured.kernels)
      own_[kernel.identity.family].push_back({.sizes = kernel.identity.sizes,
                                              .variant = kernel.identity.variant,
                                              .seconds = kernel.belief.seconds,
                                              .deviation = kernel.belief.deviation,
                                              .predicted_seconds = UncorrectedSeconds(*kernel.implementation),
                                              .features = FeaturesOf(*kernel.implementation)});
  }

  std::vector<RememberedKernel> Find(const std::string& family) const override {
    std::vector<RememberedKernel> kernels;
    if (const auto own = own_.find(family); own != own_.end()) kernels = own->second;
    if (before_ == nullptr) return kernels;
    const size_t count = kernels.size();
    for (RememberedKernel& kernel : before_->Find(family))
      if (std::none_of(kernels.begin(), kernels.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](const RememberedKernel& own) {
                         return own.sizes == kernel.sizes && own.variant == kernel.variant;
                       }))
        kernels.push_back(std::move(kernel));
    return kernels;
  }

  std::vector<std::string> Families() const override {
    std::set<std::string> families;
    for (const auto& [family, kernels] : own_) families.insert(family);
    if (before_ != nullptr)
      for (std::string& family : before_->Families()) families.insert(std::move(family));
    return {families.begin(), families.end()};
  }

 private:
  const std::shared_ptr<const KernelMemory> before_;
  std::map<std::string, std::vector<RememberedKernel>> own_;
};

std::vector<ResidualObservation> ObservationsOf(const Submission& submission, const CostModel& model,
                                                const Plans& plans, const GeneratedCode& code) {
  std::vector<ResidualObservation> observations;
  for (size_t i = 0; i < code.units.size(); ++i) {
    const v1::Candidate& candidate = code.set.candidates(static_cast<int>(i)).description();
    if (!Teaches(submission, plans, code, i)) continue;
    ResidualObservation observation{.measured_seconds = KernelSeconds(model, candidate),
                                    .deviation = DeviationOf(candidate.measured())};
    for (int member : plans.covers.covers[i].columns) {
      const FusionImplementation& implementation = plans.space.implementations[member];
      observation.kernels.push_back(FeaturesOf(implementation));
      observation.predicted_seconds.push_back(UncorrectedSeconds(implementation));
    }
    observations.push_back(std::move(observation));
  }
  return observations;
}

}  // namespace

absl::StatusOr<Residual> LearnedResidual(const DeviceDescription& device, v1::CacheState cache,
                                         const PipelineContext& context,
                                         const std::vector<ResidualObservation>& candidates,
                                         std::string* note) {
  FUSION_ASSIGN_OR_RETURN(auto stored, context.store.ModelStatistics(KeyOf(device, cache)));
  v1::ResidualStatistics statistics;
  if (!statistics.ParseFromString(stored)) {
    *note = absl::StrCat("what was learned of predictions for ", device.name(),
                         " cannot be read; it is begun anew");
    statistics.Clear();
  } else if (!AreUsable(statistics, device.target())) {
    *note = absl::StrCat("what was learned of predictions for ", device.name(),
                         " holds sums that are not possible; it is begun anew");
    statistics.Clear();
  }
  if (!note->empty()) spdlog::warn("{}", *note);
  if (!candidates.empty()) AddJob(candidates, &statistics);
  return Residual(statistics, device.target());
}

absl::StatusOr<std::shared_ptr<const KernelMemory>> RememberedKernels(const DeviceDescription& device,
                                                                      v1::CacheState cache,
                                                                      const PipelineContext& context) {
  KernelTimesKey key = KernelTimesKeyOf(device, cache);
  FUSION_ASSIGN_OR_RETURN(auto families, context.store.KernelFamilies(key));
  if (families.empty()) return nullptr;
  return std::make_shared<const StoredKernels>(context.store, std::move(key), families);
}

absl::StatusOr<CostModel> TaughtModel(const Submission& submission, const CostModel& model,
                                      v1::CacheState cache, const Plans& plans, const GeneratedCode& code,
                                      const PipelineContext& context) {
  std::string note;  // said at the first search
  FUSION_ASSIGN_OR_RETURN(
      auto residual,
      LearnedResidual(model.device(), cache, context, ObservationsOf(submission, model, plans, code), &note));
  FUSION_ASSIGN_OR_RETURN(auto before, RememberedKernels(model.device(), cache, context));
  MeasuredKernels measured = MeasuredKernelsOf(submission, model, plans, code);
  if (before != nullptr)
    for (MeasuredKernel& kernel : measured.kernels)
      for (const RememberedKernel& known : before->Find(kernel.identity.family))
        if (known.sizes == kernel.identity.sizes && known.variant == kernel.identity.variant)
          kernel.belief = {known.seconds, known.deviation};
  LearnKernels(model, plans, code, &measured);
  return model.Taught(std::move(residual), std::make_shared<const JobKernels>(std::move(before), measured));
}

absl::Status LearnFromCandidates(const Submission& submission, const CostModel& model, v1::CacheState cache,
                                 const Plans& plans, const GeneratedCode& code,
                                 const PipelineContext& context) {
  const std::vector<ResidualObservation> observations = ObservationsOf(submission, model, plans, code);
  const absl::Status remembered = RememberKernels(submission, model, cache, plans, code, context);
  const Timestamp now = TimeOfDay();
  const absl::Status learned = context.store.UpdateModelStatistics(
      KeyOf(model.device(), cache),
      [&](const std::string& stored) {
        v1::ResidualStatistics statistics;
        if (!statistics.ParseFromString(stored) || !AreUsable(statistics, model.device().target()))
          statistics.Clear();
        AddJob(observations, &statistics);
        if (!observations.empty()) statistics.set_learned_micros(now.time_since_epoch().count());
        return statistics.SerializeAsString();
      },
      now);
  return learned.ok() ? remembered : learned;
}

}  // namespace fusion
