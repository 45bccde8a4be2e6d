// The data of a session on a device: inputs filled once, outputs, and the f64 reference results that every
// program's outputs are compared with. Kept between tasks of one session.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/program.pb.h"
#include "library/verification/input_rules.h"
#include "worker/measure/activity.h"
#include "worker/measure/execution_backend.h"
#include "worker/measure/guarded_memory.h"
#include "worker/measure/phase_times.h"

namespace fusion {

using BinaryMap = std::map<std::string, std::string>;  // digest -> device code, or the entries of an input

// A program whose launches are resolved: kernels found, buffers placed, arguments set.
struct PreparedProgram {
  std::vector<std::shared_ptr<LoadedBinary>> binaries;
  std::vector<std::string> digests;  // of `binaries`, each once, as computed from the bytes that were loaded
  std::vector<PreparedLaunch> launches;
  std::vector<v1::KernelAttributes> kernels;  // each kernel once
  // Temporaries and the workspace: names and bytes, cut from the scratch.
  std::vector<std::pair<std::string, int64_t>> temporaries;
  std::vector<MemoryRange> poison;             // outputs, temporaries and workspace
  std::vector<MemoryCopy> restore;             // of inputs into the outputs that take their memory
  std::unique_ptr<RepeatedLaunches> repeated;  // goes before the binaries
};

// Says how a program did. When it is not OK, outcome and message say why.
struct Verdict {
  v1::Outcome outcome = v1::OK;
  std::string message;
  double max_relative_error = 0;  // of the output that is worst relative to its tolerance
  double tolerance = 0;
};

class SessionData {
 public:
  // Allocates, fills the inputs from the seed, runs the reference. ResourceExhausted when the data do not fit
  // the device (nothing is allocated then); the message says what is needed and what there is.
  // InvalidArgument: the session is wrong. DataLoss: the bytes of a binary are not those of its digest.
  // `phases` may be null; it outlives the session.
  static absl::StatusOr<std::unique_ptr<SessionData>> Create(ExecutionBackend* backend,
                                                             const v1::Session& session,
                                                             const BinaryMap& binaries,
                                                             ActivityPage* activity,
                                                             PhaseTimes* phases = nullptr);

  // Equal keys mean the same data and the same reference.
  static std::string Key(const v1::Session& session);

  // Puts other values into the input buffers, after this pattern, and gets the reference's results for them;
  // scalars handed by value stay, and so does what came from a file. False: there was no room for the
  // reference beside what programs need, so programs prepared earlier must not run any more, and Reserve has
  // to be called again.
  absl::StatusOr<bool> Renew(const DataPattern& pattern, const BinaryMap& binaries, ActivityPage* activity);

  // Makes room for the temporaries of programs, which share one piece of memory: the most that any needs
  // which fits. Call before Prepare; programs prepared earlier must not run any more.
  absl::Status Reserve(const std::vector<const v1::Program*>& programs);

  // Loads and places a program. ResourceExhausted: its temporaries do not fit the device. InvalidArgument: a
  // launch is wrong. DataLoss: the bytes of a binary are not those of its digest.
  absl::StatusOr<std::unique_ptr<PreparedProgram>> Prepare(const v1::Program& program,
                                                           const BinaryMap& binaries);

  // The program's code stays loaded until another is kept: the unfused program is measured again and again.
  void KeepLoaded(const PreparedProgram& program) { kept_ = program.binaries; }

  struct RunCalls {
    std::function<void()> before_launch, after_run;  // as RunOptions
    BlockOrder order = BlockOrder::kUsual;           // likewise
    bool one_thread = false;
  };
  // Does `repeat` runs after `lead` that are not timed, with outputs, temporaries and workspace poisoned
  // before. Returns the seconds of one.
  absl::StatusOr<double> Run(PreparedProgram& program, bool flush_cache, int repeat, int lead,
                             RunCalls calls);
  // Does a run that is looked at afterwards, with guards of this program's layout.
  absl::StatusOr<double> RunInspected(PreparedProgram& program, bool flush_cache, RunCalls calls);
  // Seconds that the last such run waited for what was found.
  double inspection_seconds() const { return inspected_.seconds; }
  // Judges what that run left: outputs against the reference, guards, inputs. What the program damaged is
  // repaired. Where an output is further from the reference than its tolerance allows, it is tried out how
  // far rounding alone can bring it (EstimateRounding), and as much is excused. `is_unfused`: where the
  // unfused program has whole numbers exactly, the programs that are judged after it must have them too,
  // until Renew. Aborted when the reference itself was overwritten.
  absl::StatusOr<Verdict> Judge(bool is_unfused, ActivityPage* activity);
  // Tells people which outputs of the data so far are ill-conditioned or not finite, each once.
  const std::vector<std::string>& remarks() const { return remarks_; }
  const v1::Session& session() const { return session_; }
  const DataPattern& pattern() const { return pattern_; }

  PhaseTimes* phases() const { return phases_; }

 private:
  struct Place {
    v1::Buffer buffer;
    MemoryRange range;
    uint64_t key = 0;             // of the values of an input
    uint64_t hash = 0;            // of an input; of an output's reference
    double value = 0;             // of an input handed by value
    std::string content;          // of an input from a file
    DeviceAddress reference = 0;  // an output's f64 reference
    double scale = 0;             // of errors of an output: root mean square of the reference
    double largest = 0;           // of the reference's finite entries, in magnitude
    uint64_t excused_hash = 0;
    bool is_exact = false;  // the unfused program has these whole numbers exactly
  };
  // Computes the f64 results of the reference, in `results` by output. `trial` above 0: what functions that
  // round read of the inputs, and what they compute, is changed by a little, in another way for each trial.
  absl::Status ComputeReference(const BinaryMap& binaries, ActivityPage* activity, GuardedMemory* results,
                                int trial);
  // Finds by Monte Carlo arithmetic (Parker, 1997) how far results of the reference move when what its
  // functions read and compute is changed by a few units in the last place of the data type. Sets excused_,
  // and remarks on outputs of which that leaves few digits. Left out where there is no memory for it.
  absl::Status EstimateRounding(ActivityPage* activity);

  SessionData(ExecutionBackend* backend, const v1::Session& session, PhaseTimes* phases)
      : backend_(backend), session_(session), phases_(phases) {}
  absl::Status Build(const BinaryMap& binaries, ActivityPage* activity);
  absl::Status FillInput(Place* place);
  // The input whose memory the output takes.
  const Place& InputOf(const Place& output) const;
  DeviceAddress Excused(size_t output) const {
    return excused_ == nullptr || outputs_[output].is_exact ? 0 : excused_->buffers()[output].range.address;
  }
  double Tolerance(size_t output) const;
  void Remark(std::string remark);
  std::vector<Inspection> Inspections() const;
  absl::Status RunReference(const BinaryMap& binaries, ActivityPage* activity);
  absl::StatusOr<std::shared_ptr<LoadedBinary>> LoadBinary(const std::string& digest,
                                                           const BinaryMap& binaries);
  // Fills in launches. `address` gives the address of a buffer id, `value` the scalar of one.
  absl::Status ResolveLaunches(const v1::Program& program, const BinaryMap& binaries,
                               const std::map<int, DeviceAddress>& addresses, DeviceAddress workspace,
                               bool reference, PreparedProgram* prepared);
  // `errors`: the largest of each output, as bits.
  absl::StatusOr<Verdict> JudgeOutputs(absl::Span<const uint64_t> errors, bool is_unfused,
                                       ActivityPage* activity);
  absl::StatusOr<std::string> DescribeEntry(const Place& output, const Comparison& comparison);

  ExecutionBackend* const backend_;
  const v1::Session session_;
  PhaseTimes* const phases_;
  std::vector<Place> inputs_, outputs_;
  std::unique_ptr<GuardedMemory> memory_;      // inputs and outputs
  std::unique_ptr<GuardedMemory> references_;  // f64 outputs
  std::unique_ptr<GuardedMemory> excused_;     // f64 errors of outputs that are rounding; null: not estimated
  bool rounding_estimated_ = false;            // on the data there are, or tried to
  DataPattern pattern_;
  std::vector<std::string> remarks_;
  std::unique_ptr<GuardedMemory> scratch_;  // temporaries and workspace of the program that runs
  int64_t scratch_bytes_ = 0;
  uint64_t renewals_ = 0;
  std::map<std::string, std::weak_ptr<LoadedBinary>> loaded_;
  std::vector<std::shared_ptr<LoadedBinary>> reference_binaries_, kept_;
  Inspected inspected_;  // after the last inspected run
};

// Bytes of a buffer of a session or program.
int64_t BufferBytes(const v1::Buffer& buffer);

}  // namespace fusion
