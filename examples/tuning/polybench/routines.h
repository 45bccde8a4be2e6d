// gemm, gesummv and syrk of PolyBench/C 4.2 as partitioned loops: their inputs, their sequential results, and
// what each iteration touches (Baier 2016, chapter 6).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/tuner/partitioned_for.h"

namespace polybench {

// Doubles in memory of their own pages, on huge pages where the system has them: what the GPU reads by itself
// is pinned, and pinning four thousand bytes at a time takes long.
class HostArray {
 public:
  explicit HostArray(int64_t count);
  double* data() const { return data_.get(); }
  int64_t count() const { return count_; }

 private:
  struct Free {
    void operator()(double* data) const;
  };
  int64_t count_;
  std::unique_ptr<double, Free> data_;
};

class Routine {
 public:
  virtual ~Routine() = default;

  // Makes the routine of this name with PolyBench's sizes in its order (gemm: ni nj nk, gesummv: n, syrk: n
  // m); null: there is none, or the sizes are wrong.
  static std::unique_ptr<Routine> Make(const std::string& name, const std::vector<int64_t>& sizes);

  std::string name;
  std::vector<std::pair<std::string, int64_t>> sizes;
  int64_t iterations = 0;
  double flops = 0;
  double bytes_up = 0, bytes_down = 0;  // where the device has all iterations

  // Sets the outputs as PolyBench initialises them. Without it they grow from run to run, as beta is 1.2.
  virtual void RestoreOutputs() = 0;
  // Runs the sequential loop on outputs of its own; returns seconds.
  virtual double RunSequential() = 0;
  virtual void AddTo(fusion::PartitionedLoop& loop) = 0;
  // All inputs are in the host's memory before and all outputs after.
  virtual fusion::PartitionedRun Run(fusion::PartitionedLoop& loop) = 0;
  // Largest relative difference from the sequential results, after RestoreOutputs and one Run.
  virtual double LargestError() const = 0;
  // The sums of Run are in another order. All terms are positive, so that each addition adds half a unit of
  // the last place at most.
  double error_bound = 0;
};

}  // namespace polybench
