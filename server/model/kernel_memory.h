// Measured times of kernels, remembered from earlier jobs: what is known of a kernel by itself stands in the
// place of a prediction, and what is known of its relatives corrects the predictions of the others.
//
// Relatives are kernels of one family: they compute the same functions of values of the same types, in any
// way and at any size. The errors that the model and its regression (residual.h) leave, log(measured /
// predicted), are taken to be normal: a part that all of the family share, one that those of equal sizes
// share, and one of each kernel, which kernels of similar features share by how similar they are (a Gaussian
// process). So the kernel itself, measured before, is predicted by its measured time, and others of its
// family by the means of their neighbours.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/model/residual.h"

namespace fusion {

// Raise when a kernel of the same family, sizes and variant is made or named differently: remembered ones are
// then forgotten.
inline constexpr int kKernelTimeVersion = 4;

// The identity of a kernel: `family` says what it computes but for sizes, `variant` says how. The texts have
// no names of variables.
struct KernelIdentity {
  std::string family;
  std::string sizes;
  std::string variant;
  friend auto operator<=>(const KernelIdentity&, const KernelIdentity&) = default;
};

// A measured kernel of a family. Times are those of CostModel: without StartSeconds.
struct RememberedKernel {
  std::string sizes;
  std::string variant;
  double seconds = 0;
  double deviation = 0;  // standard deviation of log(seconds)
  // The model's prediction, without corrections; 0: there is none of this version of the model, so that its
  // error is not known.
  double predicted_seconds = 0;
  ResidualFeatures features{};
  int64_t jobs = 0;            // number of jobs that measured it; 0: not known
  int64_t learned_micros = 0;  // microseconds since 1970, of the last of them; 0: not known
};

// Finds remembered kernels. Thread safe.
class KernelMemory {
 public:
  virtual ~KernelMemory() = default;
  // Returns the kernels of the family, newest first; few enough to be compared with each other.
  virtual std::vector<RememberedKernel> Find(const std::string& family) const = 0;
  // Lists the families of which Find may give any, each once.
  virtual std::vector<std::string> Families() const = 0;
};

// The knowledge of one family at some sizes. Immutable; thread safe.
class FamilyTimes {
 public:
  // Makes one that knows nothing.
  FamilyTimes() = default;
  // Where there are more than kMostRelatives kernels, those of these sizes and the newest are used.
  FamilyTimes(std::vector<RememberedKernel> kernels, std::string sizes, const Residual& residual);
  bool empty() const { return kernels_.empty() && known_.empty(); }

  struct Answer {
    // The predicted time with the regression's correction is multiplied by this, unless `seconds` is known.
    double factor = 1;
    std::optional<double> seconds;  // of this kernel itself, where it was measured: whatever the model says
    int64_t jobs = 0, learned_micros = 0;  // with `seconds`: those of RememberedKernel
  };
  // Answers for the kernel of this variant and these features, at the sizes of the constructor.
  Answer Of(const std::string& variant, const ResidualFeatures& features) const;
  // Returns the standard deviation of log(measured / predicted) that is left then; it costs as much as the
  // number of relatives times Of.
  double DeviationOf(const std::string& variant, const ResidualFeatures& features) const;

 private:
  double Covariance(const RememberedKernel& a, const RememberedKernel& b) const;

  std::string sizes_;
  std::vector<RememberedKernel> kernels_;          // those whose errors are known
  std::map<std::string, RememberedKernel> known_;  // at these sizes, by variant: those with well known times
  std::vector<double> weights_;  // of their errors: inverse of the covariances times the errors
  std::vector<double> factor_;   // Cholesky's, row by row
  double of_family_ = 0, of_sizes_ = 0, own_ = 0;  // variances
};
inline constexpr int kMostRelatives = 128;

// A kernel of a measured cover, as it is known before.
struct KernelBelief {
  double seconds = 0;
  double deviation = 0;  // of its logarithm
};
// Standard deviation of the logarithm of the time of a kernel that was not measured.
inline constexpr double kUnmeasuredDeviation = 0.25;

// Returns what is stored of a kernel that was believed to take `before` seconds, remembered or predicted,
// ahead of a job. One job may have been disturbed all the time, and a kernel that seems slow is not tried
// again. So a time that became longer by more than a quarter is no surer than that `before` lies two
// deviations from it: later jobs take the kernel for a candidate again, and the next one that measures it
// decides. Times that became shorter need no such rule, as they bring the kernel into the next job.
KernelBelief Doubted(const KernelBelief& measured, double before);

// Learns about the kernels of a cover once all of them together took `measured_seconds`, whose logarithm has
// `measured_deviation` by its interval: what was not foreseen is shared out by how unsure each was (a Kalman
// filter without covariances). One kernel alone takes nearly all of it; a sure time that refutes what was
// believed of it (by a factor of 3.5 for one that was not measured before) is taken as it is; kernels that
// were measured alone take nothing of what they took together with others. A kernel that the cover runs twice
// stands in it twice.
void LearnFromCover(double measured_seconds, double measured_deviation,
                    const std::vector<KernelBelief*>& kernels);

}  // namespace fusion
