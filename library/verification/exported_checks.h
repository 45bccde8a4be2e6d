// How the example of an exported folder fills its inputs and judges its outputs: as the worker does where
// code is measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "library/verification/entry_operations.h"

namespace fusion {

// One kind of data.
struct ExampleData {
  const char* name;              // for people: "whole numbers"
  bool whole;                    // sums and products of such numbers are exact
  std::vector<InputRule> rules;  // by input
};

// Entries after the rule, and the same in f64.
template <class T>
void FillInput(const InputRule& rule, unsigned long long key, std::vector<T>* entries,
               std::vector<double>* wide) {
  const int64_t count = static_cast<int64_t>(entries->size());
  wide->resize(entries->size());
#pragma omp parallel for
  for (int64_t i = 0; i < count; ++i) {
    (*entries)[i] = static_cast<T>(InputEntry(rule, key, i));
    (*wide)[i] = static_cast<double>((*entries)[i]);
  }
}

// How the reference is computed beside as it is (0): in trials above 0 what functions that round read and
// compute is changed by a few units in the last place, in another way for each; in this one results are
// shortened, so that those which come out the same are whole numbers with room to spare.
inline constexpr int kShortened = -1;

inline void ChangeEntries(double* entries, int64_t count, int trial, int value, bool is_f32) {
  if (trial == 0) return;
  const double most = kChangedUnits * std::ldexp(1.0, is_f32 ? -24 : -53);
  const int bits = is_f32 ? 20 : 48;
#pragma omp parallel for
  for (int64_t i = 0; i < count; ++i) {
    if (trial != kShortened) {
      entries[i] = PerturbedEntry(entries[i], most, MixBits(trial) ^ MixBits(value + 1), i);
    } else if (std::isfinite(entries[i])) {
      int exponent = 0;
      const double fraction = std::frexp(entries[i], &exponent);
      entries[i] = std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
    }
  }
}

// What a function of the reference reads of an input; changed ones are kept in `copies`.
inline const double* ChangedInput(const double* input, int64_t count, int trial, int value, bool is_f32,
                                  std::vector<std::vector<double>>* copies) {
  if (trial <= 0) return input;
  copies->emplace_back(input, input + count);
  ChangeEntries(copies->back().data(), count, trial, value, is_f32);
  return copies->back().data();
}

struct ExampleOutput {
  const char* name;
  int64_t entries;
  bool is_f32;
  double tolerance;  // relative; 0: exact
  bool whole;        // of whole inputs whole multiples of a half come
};

// The f64 reference on the data there are, and how far outputs may be from it.
class ExampleReference {
 public:
  using Results = std::vector<std::vector<double>>;  // by output
  // False: it could not be computed.
  using Compute = std::function<bool(int trial, Results* results)>;

  ExampleReference(std::vector<ExampleOutput> outputs, Compute compute)
      : outputs_(std::move(outputs)), compute_(std::move(compute)) {}

  // After the inputs were filled with `data`. False: it could not be computed.
  bool Renew(const ExampleData& data) {
    excused_.clear();
    exact_.assign(outputs_.size(), false);
    if (!Run(0, &results_)) return false;
    if (!data.whole) return true;
    Results shortened;
    if (!Run(kShortened, &shortened)) return false;
    for (size_t i = 0; i < outputs_.size(); ++i)
      exact_[i] = outputs_[i].whole && Same(results_[i], shortened[i]);
    return true;
  }

  // Whether an output is as close to the reference as it must be; says so, or says nothing where `quiet` and
  // it is.
  template <class T>
  bool Judge(size_t output, const std::vector<T>& entries, const ExampleData& data, bool quiet) {
    const ExampleOutput& of = outputs_[output];
    const double tolerance = exact_[output] ? 0 : of.tolerance;
    Worst worst = Compare(output, entries, nullptr);
    if (!(worst.error <= tolerance) && !exact_[output]) {
      if (excused_.empty()) EstimateRounding();
      worst = Compare(output, entries, excused_.empty() ? nullptr : excused_[output].data());
    }
    const bool good = worst.error <= tolerance;
    if (good && quiet) return true;
    std::printf("%s: largest relative error %.3g, bound %.3g: %s", of.name, worst.error, tolerance,
                good ? "OK\n" : "WRONG");
    if (!good)
      std::printf(" on %s: entry %lld is %.9g and should be %.9g\n", data.name,
                  static_cast<long long>(worst.entry), static_cast<double>(entries[worst.entry]),
                  results_[output][worst.entry]);
    return good;
  }

 private:
  struct Worst {
    double error;
    size_t entry;
  };

  bool Run(int trial, Results* results) const {
    results->clear();
    // What lies between the rows of a matrix stays NaN.
    for (const ExampleOutput& output : outputs_) results->emplace_back(output.entries, std::nan(""));
    return compute_(trial, results);
  }

  static bool Same(const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t i = 0; i < a.size(); ++i)
      if (EntryDifference(a[i], b[i]) != 0) return false;
    return true;
  }

  // Excuses nothing where it could not be computed.
  void EstimateRounding() {
    Results excused, other;
    for (const ExampleOutput& output : outputs_) excused.emplace_back(output.entries, 0.0);
    for (int trial = 1; trial <= kRoundingTrials; ++trial) {
      if (!Run(trial, &other)) return;
      for (size_t i = 0; i < outputs_.size(); ++i)
        for (size_t k = 0; k < excused[i].size(); ++k)
          excused[i][k] = std::max(
              excused[i][k], kExcused * EntryDifference(ReferenceEntry(results_[i][k], outputs_[i].is_f32),
                                                        ReferenceEntry(other[i][k], outputs_[i].is_f32)));
    }
    excused_ = std::move(excused);
  }

  // Relative to the entry or the root mean square of all, whichever is larger.
  template <class T>
  Worst Compare(size_t output, const std::vector<T>& entries, const double* excused) const {
    const std::vector<double>& reference = results_[output];
    const int is_f32 = outputs_[output].is_f32;
    double largest = 0, squares = 0;
    int64_t finite = 0;
    for (const double entry : reference)
      if (IsFiniteEntry(ReferenceEntry(entry, is_f32)))
        ++finite, largest = std::max(largest, std::fabs(entry));
    for (const double entry : reference)
      if (largest > 0 && IsFiniteEntry(ReferenceEntry(entry, is_f32)))
        squares += (entry / largest) * (entry / largest);
    const double scale = finite > 0 ? largest * std::sqrt(squares / static_cast<double>(finite)) : 0;
    Worst worst{0, 0};
    for (size_t i = 0; i < entries.size(); ++i) {
      const double error = EntryError(static_cast<double>(entries[i]), ReferenceEntry(reference[i], is_f32),
                                      scale, excused != nullptr ? excused[i] : 0);
      if (error > worst.error) worst = {error, i};
    }
    return worst;
  }

  const std::vector<ExampleOutput> outputs_;
  const Compute compute_;
  Results results_, excused_;
  std::vector<bool> exact_;
};

}  // namespace fusion
