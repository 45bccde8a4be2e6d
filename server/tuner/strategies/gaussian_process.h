// Regression by a Gaussian process: what a function is likely to be where it was not measured.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cstdint>
#include <vector>

namespace fusion {

// Matern 5/2 kernel with a length for each axis (Rasmussen and Williams, "Gaussian Processes for Machine
// Learning", 2006, sections 4.2, 5.4). Axes of categories know equal and different only.
class GaussianProcess {
 public:
  // categorical[i]: axis i has categories.
  explicit GaussianProcess(std::vector<bool> categorical);

  // Lengths, amplitude and a factor of the noise are chosen by their likelihood, which costs some cubes of
  // the number of observations: all of them several times, or one, in turn, once.
  enum class Choice { kAll, kOne };
  // inputs: a row for each observation, in the unit cube; observations: any values; variances: of the noise
  // of each, in squared units of the observations.
  void Fit(Eigen::MatrixXd inputs, const Eigen::VectorXd& observations, const Eigen::VectorXd& variances,
           Choice choice);

  // Mean and standard deviation of the function itself, without noise, at each row.
  void Predict(const Eigen::MatrixXd& inputs, Eigen::VectorXd& means, Eigen::VectorXd& deviations) const;

  // Does what Fit would do with more observations that are exactly as predicted: the inputs are measured now.
  void Believe(const Eigen::MatrixXd& inputs);

 private:
  // The parameters are logarithms.
  struct Parameters {
    Eigen::VectorXd lengths;
    double amplitude = 0;
    double noise = 0;
  };
  Eigen::MatrixXd Kernel(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                         const Parameters& parameters) const;
  double LogLikelihood(const Parameters& parameters) const;
  void Choose(Choice choice);
  void Factorize();

  std::vector<bool> categorical_;
  uint64_t turn_ = 0;  // of the parameters that are chosen one at a time
  Parameters parameters_;
  Eigen::MatrixXd inputs_;
  Eigen::VectorXd targets_;    // observations, of mean 0 and deviation 1
  Eigen::VectorXd variances_;  // in squared units of targets_
  double mean_ = 0, scale_ = 1;
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::VectorXd weights_;
};

}  // namespace fusion
