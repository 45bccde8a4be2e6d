#include "server/tuner/strategies/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "server/tuner/strategies/turns.h"

namespace fusion {
namespace {

// These beliefs hold before anything is measured: medians and deviations of the logarithms.
constexpr double kUsualLength = -1.2, kLengthDeviation = 0.5;  // 0.3 of the range of an axis
constexpr double kAmplitudeDeviation = 1;
constexpr double kNoiseDeviation = 0.5;
constexpr double kJitter = 1e-8;

double Prior(double value, double median, double deviation) {
  const double z = (value - median) / deviation;
  return -0.5 * z * z;
}

}  // namespace

GaussianProcess::GaussianProcess(std::vector<bool> categorical) : categorical_(std::move(categorical)) {
  parameters_.lengths =
      Eigen::VectorXd::Constant(static_cast<Eigen::Index>(categorical_.size()), kUsualLength);
}

Eigen::MatrixXd GaussianProcess::Kernel(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                        const Parameters& parameters) const {
  Eigen::ArrayXXd squares = Eigen::ArrayXXd::Zero(a.rows(), b.rows());
  for (Eigen::Index axis = 0; axis < a.cols(); ++axis) {
    const double inverse = std::exp(-parameters.lengths[axis]);
    for (Eigen::Index j = 0; j < b.rows(); ++j) {
      if (categorical_[static_cast<size_t>(axis)])
        squares.col(j) += (a.col(axis).array() != b(j, axis)).cast<double>() * (inverse * inverse);
      else
        squares.col(j) += ((a.col(axis).array() - b(j, axis)) * inverse).square();
    }
  }
  LetOthersRun();
  const Eigen::ArrayXXd distance = (5 * squares).sqrt();
  return (std::exp(parameters.amplitude) * (1 + distance + distance.square() / 3) * (-distance).exp())
      .matrix();
}

double GaussianProcess::LogLikelihood(const Parameters& parameters) const {
  Eigen::MatrixXd covariance = Kernel(inputs_, inputs_, parameters);
  covariance.diagonal().array() += std::exp(parameters.noise) * variances_.array() + kJitter;
  LetOthersRun();
  const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
  if (factor.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
  const Eigen::VectorXd half = factor.matrixL().solve(targets_);
  double result = -0.5 * half.squaredNorm() - factor.matrixLLT().diagonal().array().log().sum();
  for (Eigen::Index axis = 0; axis < parameters.lengths.size(); ++axis)
    result += Prior(parameters.lengths[axis], kUsualLength, kLengthDeviation);
  return result + Prior(parameters.amplitude, 0, kAmplitudeDeviation) +
         Prior(parameters.noise, 0, kNoiseDeviation);
}

// Coordinate search with steps that become smaller: the likelihood is smooth, and has few maxima under the
// prior.
void GaussianProcess::Choose(Choice choice) {
  double best = LogLikelihood(parameters_);
  const auto improve = [&](Eigen::Index parameter, double step) {
    const Eigen::Index axes = parameters_.lengths.size();
    double& coordinate = parameter < axes    ? parameters_.lengths[parameter]
                         : parameter == axes ? parameters_.amplitude
                                             : parameters_.noise;
    const double old = coordinate;
    for (const double by : {step, -step}) {
      coordinate = old + by;
      const double found = LogLikelihood(parameters_);
      if (found > best) {
        best = found;
        return;
      }
    }
    coordinate = old;
  };
  const Eigen::Index parameters = parameters_.lengths.size() + 2;
  if (choice == Choice::kAll) {
    for (double step : {0.8, 0.4, 0.2})
      for (Eigen::Index parameter = 0; parameter < parameters; ++parameter) improve(parameter, step);
  } else {
    const auto turn = static_cast<Eigen::Index>(turn_++ % static_cast<uint64_t>(2 * parameters));
    improve(turn % parameters, turn < parameters ? 0.4 : 0.2);
  }
}

void GaussianProcess::Factorize() {
  Eigen::MatrixXd covariance = Kernel(inputs_, inputs_, parameters_);
  covariance.diagonal().array() += std::exp(parameters_.noise) * variances_.array() + kJitter;
  factor_.compute(covariance);
  // Observations that nearly repeat each other without noise.
  for (double jitter = 1e-6; factor_.info() != Eigen::Success && jitter < 1; jitter *= 10) {
    covariance.diagonal().array() += jitter;
    factor_.compute(covariance);
  }
  weights_ = factor_.solve(targets_);
}

void GaussianProcess::Fit(Eigen::MatrixXd inputs, const Eigen::VectorXd& observations,
                          const Eigen::VectorXd& variances, Choice choice) {
  inputs_ = std::move(inputs);
  mean_ = observations.mean();
  scale_ = std::sqrt((observations.array() - mean_).square().mean());
  if (!(scale_ > 1e-12)) scale_ = 1;
  targets_ = (observations.array() - mean_) / scale_;
  variances_ = variances / (scale_ * scale_);
  Choose(choice);
  Factorize();
}

void GaussianProcess::Predict(const Eigen::MatrixXd& inputs, Eigen::VectorXd& means,
                              Eigen::VectorXd& deviations) const {
  constexpr Eigen::Index kTogether = 64;
  means.resize(inputs.rows());
  deviations.resize(inputs.rows());
  for (Eigen::Index first = 0; first < inputs.rows(); first += kTogether) {
    const Eigen::Index count = std::min(kTogether, inputs.rows() - first);
    const Eigen::MatrixXd covariance = Kernel(inputs_, inputs.middleRows(first, count), parameters_);
    LetOthersRun();
    means.segment(first, count) = (covariance.transpose() * weights_).array() * scale_ + mean_;
    const Eigen::MatrixXd half = factor_.matrixL().solve(covariance);
    deviations.segment(first, count) =
        (std::exp(parameters_.amplitude) - half.colwise().squaredNorm().transpose().array())
            .max(1e-12)
            .sqrt() *
        scale_;
  }
}

void GaussianProcess::Believe(const Eigen::MatrixXd& inputs) {
  Eigen::VectorXd means, deviations;
  Predict(inputs, means, deviations);
  const Eigen::Index n = inputs_.rows(), more = inputs.rows();
  inputs_.conservativeResize(n + more, Eigen::NoChange);
  inputs_.bottomRows(more) = inputs;
  targets_.conservativeResize(n + more);
  targets_.tail(more) = (means.array() - mean_) / scale_;
  variances_.conservativeResize(n + more);
  variances_.tail(more).setConstant(variances_.head(n).mean());
  Factorize();
}

}  // namespace fusion
