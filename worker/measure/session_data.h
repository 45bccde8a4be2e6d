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
#include "worker/measure/activity.h"
#include "worker/measure/execution_backend.h"
#include "worker/measure/guarded_memory.h"

namespace fusion {

using BinaryMap = std::map<std::string, std::string>;  // digest -> device code

// A program whose launches are resolved: kernels found, buffers placed, arguments set.
struct PreparedProgram {
  std::vector<std::shared_ptr<LoadedBinary>> binaries;
  std::vector<PreparedLaunch> launches;
  std::vector<v1::KernelAttributes> kernels;  // each kernel once
  std::vector<std::pair<std::string, int64_t>>
      temporaries;                  // and the workspace: names and bytes, cut from the scratch
  std::vector<MemoryRange> poison;  // outputs, temporaries and workspace
};

// How a program did. Not OK: outcome and message say why.
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
  // InvalidArgument: the session is wrong.
  static absl::StatusOr<std::unique_ptr<SessionData>> Create(ExecutionBackend* backend,
                                                             const v1::Session& session,
                                                             const BinaryMap& binaries,
                                                             ActivityPage* activity);

  // Equal keys: the same data and the same reference.
  static std::string Key(const v1::Session& session);

  // Other values in the input buffers, and the reference's results for them; scalars handed by value stay. Programs prepared
  // earlier must not run any more, and Reserve has to be called again.
  absl::Status Renew(const BinaryMap& binaries, ActivityPage* activity);

  // Makes room for the temporaries of programs, which share one piece of memory: the most that any needs
  // which fits. Call before Prepare; programs prepared earlier must not run any more.
  absl::Status Reserve(const std::vector<const v1::Program*>& programs);

  // Loads and places a program. ResourceExhausted: its temporaries do not fit the device. InvalidArgument: a
  // launch is wrong.
  absl::StatusOr<std::unique_ptr<PreparedProgram>> Prepare(const v1::Program& program,
                                                           const BinaryMap& binaries);

  // `repeat` runs with outputs, temporaries and workspace poisoned before. Seconds of one.
  absl::StatusOr<double> Run(const PreparedProgram& program, bool flush_cache, int repeat,
                             std::function<void()> before_launch);
  // Before a run that is judged: renews the guards for this program's layout.
  absl::Status Arm(const PreparedProgram& program);
  // After that run: outputs against the reference, guards, inputs. What the program damaged is repaired.
  // Aborted when the reference itself was overwritten.
  absl::StatusOr<Verdict> Judge();

 private:
  struct Place {
    v1::Buffer buffer;
    MemoryRange range;
    uint64_t key = 0;             // of the values of an input
    uint64_t hash = 0;            // of an input; of an output's reference
    double value = 0;             // of an input handed by value
    DeviceAddress reference = 0;  // an output's f64 reference
    double scale = 0;             // root mean square of the reference
  };
  SessionData(ExecutionBackend* backend, const v1::Session& session) : backend_(backend), session_(session) {}
  absl::Status Build(const BinaryMap& binaries, ActivityPage* activity);
  absl::Status FillInput(Place* place);
  absl::Status RunReference(const BinaryMap& binaries, ActivityPage* activity);
  absl::StatusOr<std::shared_ptr<LoadedBinary>> LoadBinary(const std::string& digest,
                                                           const BinaryMap& binaries);
  // Fills in launches. `address` gives the address of a buffer id, `value` the scalar of one.
  absl::Status ResolveLaunches(const v1::Program& program, const BinaryMap& binaries,
                               const std::map<int, DeviceAddress>& addresses, DeviceAddress workspace,
                               bool reference, PreparedProgram* prepared);
  absl::StatusOr<Verdict> CompareOutputs();
  absl::StatusOr<std::string> DescribeEntry(const Place& output, const Comparison& comparison);

  ExecutionBackend* const backend_;
  const v1::Session session_;
  std::vector<Place> inputs_, outputs_;
  std::unique_ptr<GuardedMemory> memory_;      // inputs and outputs
  std::unique_ptr<GuardedMemory> references_;  // f64 outputs
  std::unique_ptr<GuardedMemory> scratch_;     // temporaries and workspace of the program that runs
  int64_t scratch_bytes_ = 0;
  uint64_t renewals_ = 0;
  std::map<std::string, std::weak_ptr<LoadedBinary>> loaded_;
};

// Bytes of a buffer of a session or program.
int64_t BufferBytes(const v1::Buffer& buffer);

}  // namespace fusion
