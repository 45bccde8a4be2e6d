// The examples of exported folders as judges of mutants: each folder is what a person is given, with one
// kernel that is wrong.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/artifact.pb.h"
#include "fusion/v1/device.pb.h"
#include "tests/mutation/mutants.h"
#include "tests/mutation/subjects.h"

namespace fusion::testing {

class ExportedExamples {
 public:
  // Exports the subject's folder at its sizes and compiles what no mutant changes. `order`: the code of the
  // whole graph as lowered for the target, in schedule order, the code of the subject among it. `reference`:
  // by node, in f64 for the host.
  static absl::StatusOr<std::unique_ptr<ExportedExamples>> Create(const Subject& subject,
                                                                  const v1::DeviceDescription& device,
                                                                  const std::vector<const FusionCode*>& order,
                                                                  const std::vector<FusionCode>& reference);
  ~ExportedExamples();

  // Returns whether the example with this mutant exits with 0. Thread safe. An error: it does not compile.
  absl::StatusOr<bool> Passes(const Mutation& mutation) const;

 private:
  ExportedExamples(const Subject& subject, const v1::DeviceDescription& device)
      : subject_(subject), device_(device) {}
  v1::Artifact Export(const FusionCode& of_subject) const;
  // Returns the text of fused.cu or fused.cc with a mutant.
  std::string Source(MutableCode mutant) const;
  // The compiler with its options.
  std::string Compiler() const;
  bool cuda() const { return device_.target() == v1::CUDA; }

  const Subject& subject_;
  const v1::DeviceDescription device_;
  std::vector<FusionCode> fusions_, reference_;  // in schedule order; names are told apart
  size_t of_subject_ = 0;                        // its place among them
  std::string folder_;
};

}  // namespace fusion::testing
