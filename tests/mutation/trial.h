// Builds mutants of one kernel, has the worker verify them, and finds out of those that pass whether they
// compute anything else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/program.pb.h"
#include "fusion/v1/worker.pb.h"
#include "server/codegen/source.h"
#include "tests/mutation/comparison.h"
#include "tests/mutation/mutants.h"
#include "tests/mutation/subjects.h"
#include "worker/build/builder.h"
#include "worker/measure/runner_process.h"

namespace fusion::testing {

enum class Fate {
  kNotBuilt,   // the compiler refuses it: it does not count
  kCaught,     // the verification refuses it
  kSame,       // it passes, and computed the same bits of all data that were tried
  kRounding,   // it passes, and differed by no more than another order of the same operations explains
  kMissed,     // it passes, and computes something else of some data
  kNotJudged,  // something failed that is no fault of the mutant's
};
struct Judgement {
  Fate fate = Fate::kNotJudged;
  std::string message;  // of the verification; of a missed one the data and the entry; of others the reason
};
// The verdict of the exported folder's example on a mutant that the verification refuses.
enum class ExampleFate {
  kNotTried,
  kCaught,
  kHarmless,  // it passes, and so it may: outputs differ on no data (the worker saw a write behind the end,
              // say)
  kMissed,
};

struct TrialOptions {
  v1::DeviceDescription device;
  Builder* builder = nullptr;
  unsigned at_once = 2;         // builds, comparisons and examples
  int together = 16;            // mutants that are compiled and verified together
  int data_sets = 270;          // on which those that pass are compared with the original, about
  double run_seconds = 2;       // that a run may take
  bool examples = false;        // those that are caught are tried in exported folders too
  double compare_seconds = 60;  // that comparing one may take
  uint64_t seed = 1;            // of the data
};

// One kernel with those of its mutants that are tried. Built first; verified by one thread after another.
class Trial {
 public:
  // `mutations` must be of the subject's code; both must outlive it.
  Trial(const Subject& subject, std::vector<Mutation> mutations, const TrialOptions& options)
      : subject_(subject), mutations_(std::move(mutations)), options_(options) {
    judgements_.resize(mutations_.size());
    example_fates_.assign(mutations_.size(), ExampleFate::kNotTried);
  }

  // Compiles all. An error: what is right does not compile either.
  absl::Status Build();
  // Verifies all in runners, as workers do: SessionData, MeasurePrograms and all that lies between. Each task
  // has the original too: where that is refused, company was bad, and each mutant of the task is tried alone.
  absl::Status Verify(RunnerProcess* runner);
  // Compares those that passed with the original, in processes of their own.
  absl::Status Compare();
  // Has the examples of exported folders run what was caught, if that is asked for.
  absl::Status TryExamples();

  const Subject& subject() const { return subject_; }
  const std::vector<Mutation>& mutations() const { return mutations_; }
  const std::vector<Judgement>& judgements() const { return judgements_; }
  const std::vector<ExampleFate>& example_fates() const { return example_fates_; }

 private:
  struct Batch {
    std::vector<size_t> members;  // positions of mutations
    std::vector<v1::Program> programs;
    v1::Program original;
  };

  absl::Status BuildSession();
  absl::Status BuildBatch(std::vector<size_t> members, Batch* batch);
  absl::StatusOr<std::string> Compile(const std::string& source, std::string* log);
  v1::Program ProgramWith(const FusionCode& code, const std::string& binary, const std::string& name) const;
  v1::TimeTask TaskOf(const std::vector<const v1::Program*>& programs) const;
  absl::StatusOr<v1::TimeResult> Execute(RunnerProcess* runner, const v1::TimeTask& task) const;
  Difference Compared(const Batch& batch, size_t member) const;

  const Subject& subject_;
  const std::vector<Mutation> mutations_;
  const TrialOptions options_;
  v1::Target target() const { return options_.device.target(); }
  std::vector<FusionCode> unfused_;                         // by node, with names of their own
  std::vector<FusionCode> plain_unfused_, host_reference_;  // by node, as exported
  std::string session_binary_;  // digest of the code of the reference and the unfused kernels
  v1::Session session_;
  std::vector<Batch> batches_;
  std::map<std::string, std::string> binaries_;
  std::vector<Judgement> judgements_;
  std::vector<ExampleFate> example_fates_;
};

}  // namespace fusion::testing
