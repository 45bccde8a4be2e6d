// Runs generated code on the host, whatever device it was lowered for: prints it with the host printer,
// compiles it with the system compiler, and executes launches over guarded buffers. The kernels report what a
// GPU would access at once (FUSION_AT_ONCE in the device runtime): at an address that does not permit it, a
// run fails here as it would there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/program.pb.h"
#include "server/graph/graph.h"
#include "server/lowering/fusion_code.h"

namespace fusion::testing {

// The compiler of kernels.
struct HostCompiler {
  std::string command = "c++ -O1";  // the compiler and its options
  std::string before;               // text before the device runtime
};

// Compiled kernels of many fusions; kernels of different fusions may have the same name.
class HostModule {
 public:
  ~HostModule();
  // Internal, with the compiler's output, when it does not compile.
  static absl::StatusOr<std::unique_ptr<HostModule>> Compile(const std::vector<const FusionCode*>& codes,
                                                             const HostCompiler& compiler = {});
  using Kernel = void (*)(long long grid, void* const* arguments);
  Kernel Find(const FusionCode* code, const std::string& kernel) const;
  // Accesses since the last call at addresses that are no multiple of what is accessed at once.
  int64_t TakeMisaligned() const;

 private:
  HostModule() = default;
  void* handle_ = nullptr;
  std::map<const FusionCode*, int> numbers_;
};

// Values of all variables, as f64; guarded memory of each variable's type is made for the run.
using Values = std::map<int, std::vector<double>>;

// Returns how many entries behind a multiple of 16 bytes the buffer of a value begins.
using EntriesOff = std::function<int(ValueId)>;

// The kernel that a launch takes, of the two that it may have, as exported code chooses it.
std::string ChosenKernel(const KernelLaunch& launch, const SizeValues& sizes, const EntriesOff& entries_off);

// Runs the fusions in order as if on a device of `multiprocessors`. `given` are at hand in *values before the
// run; `wanted` are there after it, NaN where nothing was written. Internal when a kernel writes outside of
// its buffers, or accesses at once what its address does not permit.
absl::Status RunOnHost(const Graph& graph, const SizeValues& sizes, const HostModule& module,
                       const std::vector<const FusionCode*>& codes, int multiprocessors, bool force_f64,
                       const std::vector<ValueId>& given, const std::vector<ValueId>& wanted, Values* values,
                       const EntriesOff& entries_off = nullptr);

// Each node by itself in f64, for the host: what generated code is compared with.
absl::StatusOr<std::vector<FusionCode>> LowerReference(const Graph& graph, const SizeValues& sizes);

// Kernels under test, compiled together with the reference of their graph.
class ComparedCodes {
 public:
  // `graph` and `codes` must outlive it; the reference is lowered for `sizes`, and runs at any.
  static absl::StatusOr<std::unique_ptr<ComparedCodes>> Compile(const Graph& graph, const SizeValues& sizes,
                                                                const std::vector<FusionCode>& codes);
  const HostModule& module() const { return *module_; }
  // Runs the reference: from the inputs in *values to those of `wanted`.
  absl::Status RunReference(const SizeValues& sizes, const std::vector<ValueId>& wanted,
                            Values* values) const;

 private:
  ComparedCodes(const Graph& graph, std::vector<FusionCode> reference)
      : graph_(graph), reference_(std::move(reference)) {}
  const Graph& graph_;
  const std::vector<FusionCode> reference_;
  std::unique_ptr<HostModule> module_;
};

// Random inputs: fills the values of all inputs of the graph.
void RandomInputs(const Graph& graph, const SizeValues& sizes, unsigned seed, Values* values);

// max |a - reference| / max(|reference|, rms(reference)); NaN equals NaN.
double RelativeError(const std::vector<double>& a, const std::vector<double>& reference);

}  // namespace fusion::testing
