// Corrections of predicted times, learned from measured ones: a linear regression of log(measured /
// predicted) on what a kernel is made of, one for each class of devices and state of the caches.
//
// The time of a cover is the sum of its kernels' times, so the features of a cover are the means of its
// kernels' features, weighted by their predicted times: exp(features * coefficients), applied to each kernel,
// changes the sum alike to first order.
//
// Candidates of one job have an error in common (a graph is unlike what the model was made for) and errors of
// their own, so that thirty candidates do not count as thirty graphs: log(measured / predicted) = x *
// coefficients + graph + own, where both errors are normal and independent. Coefficients have a normal prior
// around 0; what was never measured is not corrected.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/model.pb.h"
#include "fusion/v1/search.pb.h"
#include "server/model/residual_features.h"

namespace fusion {

// Raise when predictions of the cost model change: what was learned of the old ones is forgotten. A test
// notices.
inline constexpr int kCostModelVersion = 17;

// A measured candidate: the features of its kernels, their predicted times without corrections, and the
// measured time of all. Times are in seconds.
struct ResidualObservation {
  std::vector<ResidualFeatures> kernels;
  std::vector<double> predicted_seconds;
  double measured_seconds = 0;
  double deviation = 0;  // of the logarithm of the measured time, by its interval; 0: next to none
};

// Returns the deviation of a time whose interval of 95 % is given; 0 where `low` is not above 0.
double IntervalDeviation(double low, double high);

// Adds the candidates of one job; those with times that are not finite and positive are left out. The less
// sure a time, the less it counts: half where its deviation is as large as that of predictions. Older jobs
// count less: each new one takes 1/200 of what they weigh. Statistics of another version of the model, or
// that do not fit together, begin anew.
void AddJob(const std::vector<ResidualObservation>& candidates, v1::ResidualStatistics* statistics);

// Immutable; thread safe.
class Residual {
 public:
  // Makes one that has learned nothing and corrects nothing.
  Residual();
  // Solves for the coefficients, which takes a time that does not depend on how much was measured.
  Residual(const v1::ResidualStatistics& statistics, v1::Target target);

  // Reads a message that ToMessage made. DataLoss: it has another number of coefficients.
  static absl::StatusOr<Residual> FromMessage(const v1::Corrections& message);
  v1::Corrections ToMessage() const;

  // The predicted time of a kernel with these features is multiplied with this: 1/3 to 3.
  double Correction(const ResidualFeatures& features) const;
  // Standard deviation of log(measured / predicted): of candidates of one graph about their mean, and of
  // these means.
  double deviation() const { return own_; }
  double graph_deviation() const { return graph_; }
  int64_t jobs() const { return jobs_; }
  int64_t candidates() const { return candidates_; }
  // The time of the last job, in microseconds since 1970; 0: not known.
  int64_t learned_micros() const { return learned_micros_; }
  // The features that change predictions most, with what they change: "bulk copies x1.12, ...". Empty:
  // nothing was learned.
  std::string Explain() const;

 private:
  int64_t jobs_ = 0, candidates_ = 0, learned_micros_ = 0;
  double own_, graph_;
  ResidualFeatures coefficients_{};
};

}  // namespace fusion
