// Iterations of a loop and of those inside of it as sets of integers, with isl (S. Verdoolaege, ICMS 2010).
// Parameters are numbers that do not change in the loop.
#pragma once

#include <isl/isl-noexceptions.h>
#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "compiler/partition/exact_numbers.h"

namespace fusion {

// Counters of the loop and of loops inside of it, the loop first.
using LoopNest = llvm::SmallVector<const llvm::Loop*, 4>;

class IterationSpace {
 public:
  explicit IterationSpace(ExactNumbers& numbers);
  ~IterationSpace();
  IterationSpace(const IterationSpace&) = delete;
  IterationSpace& operator=(const IterationSpace&) = delete;

  isl::ctx context() const { return isl::ctx(context_); }

  // An exact number as a function of the counters of `nest`. Null where it is not affine.
  isl::pw_aff Affine(const llvm::SCEV* number, const LoopNest& nest);
  isl::pw_aff Constant(int64_t value, const LoopNest& nest) const;
  // Iterations of the innermost loop of `nest`, more where a loop's count is not known.
  isl::set Domain(const LoopNest& nest);
  // Returns true when the loops of `nest` inside of the first one have no more iterations than its domain.
  bool IsExact(const LoopNest& nest);
  // Returns the parameters for which the loop may be reached: counters of the loops around it are in their
  // ranges.
  isl::set Known();
  // Where the loop has two iterations at least: no fewer need to be proved independent.
  isl::set Repeats();
  // Where every loop of `nest` runs twice at least, in some iteration of those around it.
  isl::set Usual(const LoopNest& nest);

  // Returns the number that a parameter of isl's sets stands for.
  static const llvm::SCEV* ParameterOf(const isl::id& name) {
    return static_cast<const llvm::SCEV*>(name.get_user());
  }

 private:
  isl::space Space(const LoopNest& nest) const;
  isl::pw_aff Parameter(const llvm::SCEV* number, const LoopNest& nest);

  ExactNumbers& numbers_;
  isl_ctx* context_;
  std::vector<const llvm::SCEV*> parameters_;
};

}  // namespace fusion
