// Kernels of a program as models of computation (models.h) see them: in symbols, and at known sizes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/loop_kernels/formula.h"
#include "server/loop_kernels/modelled_kernel.h"
#include "server/loop_kernels/models.h"
#include "server/loops/evaluate.h"
#include "server/loops/mapping.h"

namespace fusion {

// The kernels of a program with names for people: of counters, and of quotients.
class ModelledProgram {
 public:
  explicit ModelledProgram(const MappedLoops& mapped);

  const std::vector<ModelledKernel>& kernels() const { return kernels_; }
  // Returns formulas of the kernels: of each at most.
  std::vector<LaunchCounts<Formula>> Launches() const;
  Polynomial Cells() const;  // entries of all arrays

  // Returns the polynomial with readable names, or "unknown".
  std::string Text(const Polynomial& polynomial) const;
  std::string Text(const Formula& formula) const { return formula.ToString(order_); }
  // Returns what names of quotients stand for: "dim = floor(N/B)".
  const std::vector<std::string>& meanings() const { return meanings_; }

  // Returns the launches at these sizes with these values of the parameters, one after the other.
  // InvalidArgument: there is no such code, or a count is not known.
  absl::StatusOr<std::vector<LaunchCounts<double>>> LaunchesAt(const IntegerValues& sizes,
                                                               const IntegerValues& parameters,
                                                               bool cached) const;
  std::optional<double> CellsAt(const IntegerValues& sizes, const IntegerValues& parameters) const;

  // Returns the power of two for a granularity, within its range and leaving nothing out, with which the
  // Graham-Brent bound of the program is least, the other parameters being these; nothing where none has one.
  std::optional<int64_t> PreferredGranularity(const std::string& granularity, const IntegerValues& sizes,
                                              IntegerValues parameters, bool cached,
                                              const MachineParameters<double>& machine) const;

 private:
  Polynomial Readable(Polynomial polynomial) const;
  bool LeavesNothingOut(const std::string& parameter, const IntegerValues& values) const;

  MappedLoops mapped_;
  std::vector<ModelledKernel> kernels_;
  std::vector<std::string> order_;                          // parameters, in the order of the text
  std::vector<std::pair<std::string, std::string>> names_;  // of symbols
  std::vector<std::string> meanings_;
};

}  // namespace fusion
