#include "server/model/kernel_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fusion {
namespace {

// Medians of the same kernel in other processes, on other devices of the class, beside other kernels:
// about 1.5 % each.
constexpr double kMeasuredDeviation = 0.015;
// Kernels of a cover find in the caches what the one before left there, which they do not in another cover.
// That much is the same each time that the cover is measured, so no number of measurements makes a kernel
// known better by covers that it shares.
constexpr double kSharedCoverDeviation = 0.03;
// A time that was measured long ago is not surer than this.
constexpr double kLeastDeviation = 0.01;
// A kernel whose own time is known at least so well was measured by itself, or nearly so.
constexpr double kKnownDeviation = 0.05;
// A sure time that is off by more deviations than this refutes what was believed.
constexpr double kRefuted = 5;
// The share of its own error that a kernel has in common with one of equal features; the distance of features
// at which of that exp(-1/2) is left; and what is left of it at other sizes. The first two foretell best, of
// each fusion of 40 graphs on an H200, one half of its measured kernels from the other.
constexpr double kSmoothShare = 0.95, kLength = 1.4, kOtherSizes = 0.1;
// The share of the errors that graphs have in common that holds at all sizes. Little of these and of kernels'
// own errors does: where sizes are as unlike as those of our examples (16 to 64 times as large, or rows that
// are aligned and others that are not), errors at one size foretell none at the other (docs/decisions/0008).
constexpr double kFamilyShare = 0.05;

double Square(double x) { return x * x; }

// Returns whether a time of this kernel alone shows that what was believed of it was not as sure as it was
// taken to be: then the time is taken as it is. A kernel that was measured alone before is not refuted: one
// of the two was measured beside other work.
bool Refutes(double measured_seconds, double noise, const KernelBelief& kernel) {
  const double error = std::abs(std::log(measured_seconds / kernel.seconds));
  return kernel.deviation > kKnownDeviation && noise <= kKnownDeviation && std::isfinite(error) &&
         error > kRefuted * std::hypot(kernel.deviation, noise);
}

}  // namespace

double FamilyTimes::Covariance(const RememberedKernel& a, const RememberedKernel& b) const {
  double distance = 0;
  for (int i = 0; i < kResidualFeatures; ++i) distance += Square(a.features[i] - b.features[i]);
  const double alike = kSmoothShare * own_ * std::exp(-distance / (2 * Square(kLength)));
  if (a.sizes != b.sizes) return of_family_ + kOtherSizes * alike;
  return of_family_ + of_sizes_ + alike + (a.variant == b.variant ? (1 - kSmoothShare) * own_ : 0);
}

FamilyTimes::FamilyTimes(std::vector<RememberedKernel> kernels, std::string sizes, const Residual& residual)
    : sizes_(std::move(sizes)),
      kernels_(std::move(kernels)),
      of_family_(kFamilyShare * Square(residual.graph_deviation())),
      of_sizes_((1 - kFamilyShare) * Square(residual.graph_deviation())),
      own_(Square(residual.deviation())) {
  std::erase_if(kernels_, [](const RememberedKernel& kernel) {
    return !(kernel.seconds > 0) || !(kernel.predicted_seconds >= 0) || !std::isfinite(kernel.seconds) ||
           !std::isfinite(kernel.predicted_seconds) || !std::isfinite(kernel.deviation);
  });
  // Kernels that the features cannot tell apart differ by more than measurements of one do: its own time says
  // more than theirs.
  for (const RememberedKernel& kernel : kernels_)
    if (kernel.sizes == sizes_ && kernel.deviation <= kKnownDeviation)
      known_.try_emplace(kernel.variant, kernel);
  std::erase_if(kernels_, [](const RememberedKernel& kernel) { return kernel.predicted_seconds == 0; });
  std::stable_partition(kernels_.begin(), kernels_.end(),
                        [&](const RememberedKernel& kernel) { return kernel.sizes == sizes_; });
  if (kernels_.size() > kMostRelatives) kernels_.resize(kMostRelatives);
  const size_t n = kernels_.size();
  weights_.resize(n);
  factor_.assign(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    const RememberedKernel& kernel = kernels_[i];
    weights_[i] =
        std::log(kernel.seconds / (kernel.predicted_seconds * residual.Correction(kernel.features)));
    for (size_t j = 0; j <= i; ++j) {
      double sum = Covariance(kernels_[j], kernel);
      if (i == j) sum += Square(std::max(kernel.deviation, kLeastDeviation));
      for (size_t k = 0; k < j; ++k) sum -= factor_[i * n + k] * factor_[j * n + k];
      factor_[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / factor_[j * n + j];
    }
    for (size_t k = 0; k < i; ++k) weights_[i] -= factor_[i * n + k] * weights_[k];
    weights_[i] /= factor_[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) weights_[i] -= factor_[k * n + i] * weights_[k];
    weights_[i] /= factor_[i * n + i];
  }
}

FamilyTimes::Answer FamilyTimes::Of(const std::string& variant, const ResidualFeatures& features) const {
  const RememberedKernel asked{.sizes = sizes_, .variant = variant, .features = features};
  Answer answer;
  double mean = 0;
  if (const auto own = known_.find(variant); own != known_.end()) {
    answer.seconds = own->second.seconds;
    answer.jobs = own->second.jobs;
    answer.learned_micros = own->second.learned_micros;
  }
  for (size_t i = 0; i < kernels_.size(); ++i) mean += Covariance(kernels_[i], asked) * weights_[i];
  answer.factor = std::exp(mean);
  return answer;
}

double FamilyTimes::DeviationOf(const std::string& variant, const ResidualFeatures& features) const {
  const size_t n = kernels_.size();
  if (const auto own = known_.find(variant); own != known_.end() && own->second.predicted_seconds == 0)
    return std::max(own->second.deviation, kLeastDeviation);
  const RememberedKernel asked{.sizes = sizes_, .variant = variant, .features = features};
  double variance = Covariance(asked, asked);
  std::vector<double> shares(n);
  for (size_t i = 0; i < n; ++i) {
    shares[i] = Covariance(kernels_[i], asked);
    for (size_t k = 0; k < i; ++k) shares[i] -= factor_[i * n + k] * shares[k];
    shares[i] /= factor_[i * n + i];
    variance -= Square(shares[i]);
  }
  return std::sqrt(std::max(variance, Square(kLeastDeviation)));
}

KernelBelief Doubted(const KernelBelief& measured, double before) {
  constexpr double kSlow = 1.25;
  KernelBelief doubted = measured;
  if (measured.seconds > kSlow * before && before > 0)
    doubted.deviation = std::max(measured.deviation, std::log(measured.seconds / before) / 2);
  return doubted;
}

void LearnFromCover(double measured_seconds, double measured_deviation,
                    const std::vector<KernelBelief*>& kernels) {
  std::vector<std::pair<KernelBelief*, int>> times;  // each kernel once
  for (KernelBelief* kernel : kernels) {
    const auto known =
        std::find_if(times.begin(), times.end(), [&](const auto& entry) { return entry.first == kernel; });
    if (known == times.end())
      times.emplace_back(kernel, 1);
    else
      ++known->second;
  }
  const bool shared = kernels.size() > 1;
  const double noise =
      std::hypot(kMeasuredDeviation, measured_deviation, shared ? kSharedCoverDeviation : 0.0);
  if (!shared && Refutes(measured_seconds, noise, *kernels.front())) {
    *kernels.front() = {measured_seconds, noise};
    return;
  }
  // A kernel that was measured alone is better known than a shared cover can tell.
  const auto own_variance = [&](const KernelBelief& kernel, int count) {
    return shared && kernel.deviation < kSharedCoverDeviation
               ? 0
               : Square(count * kernel.seconds * kernel.deviation);
  };
  double expected = 0, variance = Square(measured_seconds * noise);
  for (const auto& [kernel, count] : times) {
    kernel->deviation = std::max(kernel->deviation, kLeastDeviation);
    expected += count * kernel->seconds;
    variance += own_variance(*kernel, count);
  }
  if (!(expected > 0) || !(measured_seconds > 0) || !std::isfinite(measured_seconds) ||
      !std::isfinite(variance))
    return;
  for (const auto& [kernel, count] : times) {
    const double gain = own_variance(*kernel, count) / variance;
    if (gain == 0) continue;
    // A cover of several kernels takes none of them below a tenth of its belief: the others were too slow.
    kernel->seconds = std::max(kernel->seconds + gain * (measured_seconds - expected) / count,
                               shared ? kernel->seconds / 10 : 0);
    kernel->deviation =
        std::max(kernel->deviation * std::sqrt(std::max(1 - gain, 0.0)), shared ? kSharedCoverDeviation : 0);
  }
}

}  // namespace fusion
