#include "server/model/residual.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/target/target.h"

namespace fusion {
namespace {

constexpr int kSize = kResidualFeatures, kTriangle = kSize * (kSize + 1) / 2;
// Standard deviations before anything was measured: of a candidate's own error and of a graph's. They count
// as so many observations.
constexpr double kPriorOwn = 0.25, kPriorGraph = 0.25, kPriorWeight = 5;
// The deviation of the two features that all kernels of their kind have: the model is likelier to be off as a
// whole, as on a device whose description is wrong by a factor, than for one choice.
constexpr double kPriorConstant = 0.5;
// Candidates of a graph are much alike, so that ten tell as much as one that is independent of them. With
// each counting fully, what sets candidates of a graph apart outweighs how far all of them are off: median
// errors of graphs left out of the learning were 14 % instead of 8 %, in the same order (40 graphs on an
// H200; docs/decisions/0006).
constexpr double kIndependent = 0.1;
constexpr double kForgotten = 1.0 / 200;
constexpr double kMostCorrection = 3;

int Position(int i, int j) { return i * kSize - i * (i - 1) / 2 + (j - i); }  // i <= j

bool Fits(const v1::ResidualStatistics::Sums& sums) {
  const auto finite = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  };
  return sums.squares_size() == kTriangle && sums.products_size() == kSize && finite(sums.squares()) &&
         finite(sums.products()) && std::isfinite(sums.total()) && std::isfinite(sums.weight()) &&
         sums.weight() >= 0;
}
bool Fits(const v1::ResidualStatistics& statistics) {
  return statistics.model_version() == kCostModelVersion && statistics.features() == kSize &&
         statistics.jobs() > 0 && Fits(statistics.within()) && Fits(statistics.between());
}

void Clear(v1::ResidualStatistics::Sums* sums) {
  sums->Clear();
  sums->mutable_squares()->Resize(kTriangle, 0);
  sums->mutable_products()->Resize(kSize, 0);
}

void Scale(double factor, v1::ResidualStatistics::Sums* sums) {
  for (double& value : *sums->mutable_squares()) value *= factor;
  for (double& value : *sums->mutable_products()) value *= factor;
  sums->set_total(sums->total() * factor);
  sums->set_weight(sums->weight() * factor);
}

// `counted`: how many observations it is for the deviation.
void Add(const ResidualFeatures& x, double y, double weight, double counted,
         v1::ResidualStatistics::Sums* sums) {
  for (int i = 0; i < kSize; ++i) {
    for (int j = i; j < kSize; ++j) {
      double& square = *sums->mutable_squares()->Mutable(Position(i, j));
      square += weight * x[i] * x[j];
    }
    double& product = *sums->mutable_products()->Mutable(i);
    product += weight * x[i] * y;
  }
  sums->set_total(sums->total() + weight * y * y);
  sums->set_weight(sums->weight() + counted);
}

// Sum of the squares of what the coefficients leave.
double Left(const v1::ResidualStatistics::Sums& sums, const ResidualFeatures& coefficients) {
  double left = sums.total();
  for (int i = 0; i < kSize; ++i) {
    left -= 2 * coefficients[i] * sums.products(i);
    for (int j = 0; j < kSize; ++j)
      left += coefficients[i] * coefficients[j] * sums.squares(Position(std::min(i, j), std::max(i, j)));
  }
  return std::max(left, 0.0);
}

// Cholesky's method; `matrix` is symmetric and positive definite, row by row.
ResidualFeatures Solve(std::vector<double> matrix, ResidualFeatures right) {
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = matrix[i * kSize + j];
      for (int k = 0; k < j; ++k) sum -= matrix[i * kSize + k] * matrix[j * kSize + k];
      matrix[i * kSize + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / matrix[j * kSize + j];
    }
    for (int k = 0; k < i; ++k) right[i] -= matrix[i * kSize + k] * right[k];
    right[i] /= matrix[i * kSize + i];
  }
  for (int i = kSize - 1; i >= 0; --i) {
    for (int k = i + 1; k < kSize; ++k) right[i] -= matrix[k * kSize + i] * right[k];
    right[i] /= matrix[i * kSize + i];
  }
  return right;
}

double Dot(const ResidualFeatures& a, const ResidualFeatures& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

double IntervalDeviation(double low, double high) {
  constexpr double kHalfWidth = 1.96;  // of 95 % of a normal distribution, in standard deviations
  return low > 0 ? std::log(high / low) / (2 * kHalfWidth) : 0;
}

void AddJob(const std::vector<ResidualObservation>& candidates, v1::ResidualStatistics* statistics) {
  std::vector<ResidualFeatures> features;
  std::vector<double> errors, weights;
  for (const ResidualObservation& candidate : candidates) {
    const double predicted =
        std::accumulate(candidate.predicted_seconds.begin(), candidate.predicted_seconds.end(), 0.0);
    const double error = std::log(candidate.measured_seconds / predicted);
    if (!(predicted > 0) || !std::isfinite(error)) continue;
    ResidualFeatures mean{};
    for (size_t k = 0; k < candidate.kernels.size(); ++k)
      for (int i = 0; i < kSize; ++i)
        mean[i] += candidate.kernels[k][i] * candidate.predicted_seconds[k] / predicted;
    features.push_back(mean);
    errors.push_back(error);
    const double noise = candidate.deviation / kPriorOwn;
    weights.push_back(std::isfinite(noise) ? 1 / (1 + noise * noise) : 1e-6);
  }
  if (features.empty()) return;
  if (!Fits(*statistics)) {
    statistics->Clear();
    statistics->set_model_version(kCostModelVersion);
    statistics->set_features(kSize);
    Clear(statistics->mutable_within());
    Clear(statistics->mutable_between());
  }
  Scale(1 - kForgotten, statistics->mutable_within());
  Scale(1 - kForgotten, statistics->mutable_between());
  const double count = static_cast<double>(features.size());
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  ResidualFeatures mean{};
  for (size_t c = 0; c < features.size(); ++c)
    for (int i = 0; i < kSize; ++i) mean[i] += weights[c] * features[c][i] / weight;
  // A measurement that something disturbed counts no more than one that is off by a factor of four.
  std::vector<double> sorted = errors;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2),
                   sorted.end());
  const double middle = sorted[sorted.size() / 2];
  for (double& error : errors) error = std::clamp(error, middle - std::log(4), middle + std::log(4));
  const double mean_error = std::inner_product(errors.begin(), errors.end(), weights.begin(), 0.0) / weight;
  for (size_t c = 0; c < features.size(); ++c) {
    ResidualFeatures x = features[c];
    for (int i = 0; i < kSize; ++i) x[i] -= mean[i];
    Add(x, errors[c] - mean_error, weights[c], weights[c] * (1 - weights[c] / weight),
        statistics->mutable_within());
  }
  Add(mean, mean_error, weight / count, weight / count, statistics->mutable_between());
  statistics->set_jobs(statistics->jobs() + 1);
  statistics->set_candidates(statistics->candidates() + static_cast<int64_t>(features.size()));
}

Residual::Residual() : own_(kPriorOwn), graph_(kPriorGraph) {}

Residual::Residual(const v1::ResidualStatistics& statistics, v1::Target target) : Residual() {
  if (!Fits(statistics)) return;
  jobs_ = statistics.jobs();
  candidates_ = statistics.candidates();
  learned_micros_ = statistics.learned_micros();
  const auto& within = statistics.within();
  const auto& between = statistics.between();
  const double coefficient = TargetOf(target).profile().correction_prior().value();
  // The deviations depend on the coefficients and these on them: a few turns settle both.
  for (int turn = 0; turn < 5; ++turn) {
    const double own = kIndependent / (own_ * own_);
    const double graph = 1 / (graph_ * graph_ + own_ * own_ * jobs_ / std::max<double>(candidates_, 1));
    std::vector<double> matrix(kSize * kSize);
    ResidualFeatures right;
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) {
        const int at = Position(std::min(i, j), std::max(i, j));
        matrix[i * kSize + j] = own * within.squares(at) + graph * between.squares(at);
      }
      const double prior = IsConstantFeature(i) ? kPriorConstant : coefficient;
      matrix[i * kSize + i] += 1 / (prior * prior);
      right[i] = own * within.products(i) + graph * between.products(i);
    }
    coefficients_ = Solve(std::move(matrix), right);
    own_ = std::sqrt((kPriorWeight * kPriorOwn * kPriorOwn + Left(within, coefficients_)) /
                     (kPriorWeight + within.weight()));
    graph_ = std::sqrt((kPriorWeight * kPriorGraph * kPriorGraph + Left(between, coefficients_)) /
                       (kPriorWeight + between.weight()));
  }
  // Sums that no measurements have: each of them is finite, and what follows from them is not.
  const bool sensible = std::isfinite(own_) && std::isfinite(graph_) &&
                        std::all_of(coefficients_.begin(), coefficients_.end(),
                                    [](double value) { return std::isfinite(value); });
  if (!sensible) *this = Residual();
}

absl::StatusOr<Residual> Residual::FromMessage(const v1::Corrections& message) {
  if (message.coefficients_size() != kSize)
    return absl::DataLossError(absl::StrFormat("%d coefficients", message.coefficients_size()));
  Residual residual;
  residual.jobs_ = message.jobs();
  residual.candidates_ = message.candidates();
  residual.learned_micros_ = message.learned_micros();
  residual.own_ = message.own_deviation();
  residual.graph_ = message.graph_deviation();
  std::copy(message.coefficients().begin(), message.coefficients().end(), residual.coefficients_.begin());
  return residual;
}

v1::Corrections Residual::ToMessage() const {
  v1::Corrections message;
  message.set_jobs(jobs_);
  message.set_candidates(candidates_);
  message.set_learned_micros(learned_micros_);
  message.set_own_deviation(own_);
  message.set_graph_deviation(graph_);
  message.mutable_coefficients()->Add(coefficients_.begin(), coefficients_.end());
  return message;
}

double Residual::Correction(const ResidualFeatures& features) const {
  if (jobs_ == 0) return 1;
  return std::clamp(std::exp(Dot(coefficients_, features)), 1 / kMostCorrection, kMostCorrection);
}

std::string Residual::Explain() const {
  if (jobs_ == 0) return "";
  std::vector<int> order(kSize);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(coefficients_[a]) > std::abs(coefficients_[b]); });
  constexpr int kShown = 6;
  order.resize(kShown);
  return absl::StrJoin(order, ", ", [&](std::string* out, int i) {
    absl::StrAppendFormat(out, "%s x%.2f", kResidualFeatureNames[i], std::exp(coefficients_[i]));
  });
}

}  // namespace fusion
