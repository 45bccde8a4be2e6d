// LLVM's expressions count in machine words, which wrap; dependences and ranges are of integers. Here an
// expression becomes one of 64-bit integers without casts inside of sums, and what must hold for both to be
// the same number.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Instructions.h>

namespace fusion {

// Returns the comparison that ends a loop with one exit, or null.
const llvm::ICmpInst* EndOf(const llvm::Loop& loop);

class ExactNumbers {
 public:
  // Numbers that occur in `loop`; what does not change in it is known before the loop runs.
  ExactNumbers(llvm::ScalarEvolution& evolution, const llvm::Loop& loop)
      : evolution_(evolution), loop_(loop) {}

  llvm::ScalarEvolution& evolution() const { return evolution_; }
  const llvm::Loop& loop() const { return loop_; }
  llvm::Type* type() const;  // of all exact numbers: 64 bits

  // The number that an integer is, as long as bounds() and not_negative() hold. Null: it is not made of sums,
  // products, minima and maxima of counters and of what does not change in the loop.
  const llvm::SCEV* Exact(const llvm::SCEV* number);

  // Does the same for an operand of a comparison or an extension, which reads the number as a word.
  const llvm::SCEV* OperandOfWord(const llvm::SCEV* operand, bool is_signed);

  // The counter of `inner` (the loop itself, or one inside of it) runs from 0 to this. Null: nobody knows
  // before. Where the loop is not entered the number may be negative.
  const llvm::SCEV* LastCount(const llvm::Loop& inner);
  // Returns true when an iteration of `inner` runs for each number up to that, to its end; else there may be
  // fewer.
  bool RunsToLastCount(const llvm::Loop& inner) const;

  // The absolute value of `number`, and of every sum and product that it is made of, is less than 2^bits.
  struct Bound {
    const llvm::SCEV* number;
    unsigned bits;
    bool operator==(const Bound& other) const { return number == other.number && bits == other.bits; }
  };
  const std::vector<Bound>& bounds() const { return bounds_; }
  void Limit(const llvm::SCEV* number, unsigned bits);
  // In every iteration.
  const llvm::SetVector<const llvm::SCEV*>& not_negative() const { return not_negative_; }

 private:
  const llvm::SCEV* Find(const llvm::SCEV* number);
  const llvm::SCEV* OfOperands(const llvm::SCEVNAryExpr& expression);

  llvm::ScalarEvolution& evolution_;
  const llvm::Loop& loop_;
  llvm::DenseMap<const llvm::SCEV*, const llvm::SCEV*> known_;
  std::vector<Bound> bounds_;
  llvm::SetVector<const llvm::SCEV*> not_negative_;
};

}  // namespace fusion
