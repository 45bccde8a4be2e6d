// The choice among variants of exported loops: which of them are in a folder, and which runs at which sizes.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/loop_kernels/exported_loops.h"
#include "server/model/cost_model.h"
#include "server/optimize/loop_candidates.h"

namespace fusion {

// Predicts at sizes that are apart by factors of two, and scales predictions by what was measured at those of
// the submission.
class LoopChooser {
 public:
  // `ranked`: the candidates with their times. InvalidArgument as CaseFinder::Sample.
  static absl::StatusOr<LoopChooser> Make(const LoopSubmission& submission, const CostModel& model,
                                          const LoopCandidates& candidates,
                                          const std::vector<v1::Candidate>& ranked);

  struct Chosen {
    std::vector<LoopVariant> variants;
    VariantTable table;
  };
  // Returns the case at this position of the candidates, those that are faster at many other sizes, and the
  // one that any sizes permit. At the sizes of the submission the first one comes first.
  Chosen Choose(int position) const;

 private:
  LoopChooser() = default;

  struct Contender {
    LoopVariant variant;
    int position = -1;            // of the candidates; -1: of none
    std::vector<double> seconds;  // in each cell of the table
  };
  VariantTable grid_;  // without variants
  size_t own_ = 0;     // its cell with the sizes of the submission
  std::vector<Contender> contenders_;
};

}  // namespace fusion
